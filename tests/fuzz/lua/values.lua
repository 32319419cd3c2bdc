-- What values and tuples go through: each function gets packed values, and must do no more than fail.
local msgpack, json, yaml = require('msgpack'), require('json'), require('yaml')
local box = rawget(_G, 'box') or require('internal.box.init')

local function decoded(text)
    local ok, value, next_at = pcall(msgpack.decode, text)
    if not ok then return nil end
    if next_at < 2 or next_at > #text + 1 then error('decode says ' .. next_at .. ' of ' .. #text) end
    return value, true
end

-- Decode any bytes, and encode what they are in all ways. Returns the value packed again; nil if it is none.
local function values(text)
    for _, call in ipairs{msgpack.decode_unchecked, msgpack.decode_array_header, msgpack.decode_map_header,
                          json.decode, yaml.decode} do
        pcall(call, text)
    end
    local value, is_value = decoded(text)
    if not is_value then return nil end
    pcall(json.encode, value)
    pcall(yaml.encode, {value})
    pcall(tostring, value)
    local ok, packed = pcall(msgpack.encode, value)
    return ok and packed or nil
end

local METHODS = {
    'totable', 'tomap', 'unpack', 'bsize', 'pairs', 'ipairs', 'next', 'find', 'findall', 'slice', 'transform', 'update',
    'upsert', 'no_such',
}

local function walk(row)
    for number, value in row:pairs() do
        if number == nil then error('no number') end
        pcall(tostring, value)
    end
end

-- Make a tuple of a packed row, and call its methods with packed arguments. Returns whether there is a tuple, the row
-- and the operations packed again, and the row after them; nil if the update has failed.
local function rows(packed_row, packed_operations, packed_arguments)
    local fields, is_row = decoded(packed_row)
    if not is_row then return false end
    local ok, row = pcall(box.tuple.new, fields)
    if not ok then return false end
    walk(row)
    for _, call in ipairs{tostring, json.encode, yaml.encode, function(each) return #each end} do pcall(call, row) end
    local arguments = decoded(packed_arguments)
    if type(arguments) ~= 'table' then arguments = {arguments} end
    for _, name in ipairs(METHODS) do
        pcall(function() return row[name](row, unpack(arguments, 1, 6)) end)
        pcall(function() return row[name](unpack(arguments, 1, 6)) end)
    end
    for _, key in pairs(arguments) do
        pcall(function() return row[key] end)
        pcall(function() row[key] = key end)
        pcall(function() return row == key, key == row, row .. key, row < key end)
    end
    local operations = decoded(packed_operations)
    local _, upserted = pcall(row.upsert, row, operations)
    if box.tuple.is(upserted) then walk(upserted) end
    local is_updated, updated = pcall(row.update, row, operations)
    local _, again = pcall(msgpack.encode, operations)
    if is_updated and box.tuple.is(updated) then
        walk(updated)
        return true, msgpack.encode(row), again, msgpack.encode(updated)
    end
    return true, msgpack.encode(row), again, nil
end

return {values = values, rows = rows}
