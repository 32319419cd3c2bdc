-- Describe values as text that is the same for the same values in all implementations of Lua's box.
local function quoted(text)
    return '"' .. text:gsub('[%c"\\\128-\255]', function(c) return ('\\%03d'):format(c:byte()) end) .. '"'
end

local describe
local function described_table(value, seen)
    if seen[value] then return '<circle>' end
    seen[value] = true
    local parts, keys = {}, {}
    for key in pairs(value) do keys[#keys + 1] = key end
    table.sort(keys, function(a, b)
        if type(a) == type(b) and (type(a) == 'number' or type(a) == 'string') then return a < b end
        return type(a) .. tostring(a) < type(b) .. tostring(b)
    end)
    for _, key in ipairs(keys) do
        parts[#parts + 1] = '[' .. describe(key, seen) .. ']=' .. describe(value[key], seen)
    end
    seen[value] = nil
    local meta = getmetatable(value)
    local hint = type(meta) == 'table' and type(meta.__serialize) == 'string' and meta.__serialize .. ':' or ''
    return hint .. '{' .. table.concat(parts, ',') .. '}'
end

function describe(value, seen)
    local kind = type(value)
    if kind == 'string' then return quoted(value) end
    if kind == 'number' then
        if value ~= value then return 'nan' end -- the sign of a NaN depends on the processor
        return ('%.17g'):format(value)
    end
    if kind == 'table' then return described_table(value, seen or {}) end
    if kind == 'cdata' then -- a reference to a struct is a struct
        return 'cdata:' .. tostring(require('ffi').typeof(value)):gsub(' &>$', '>') .. ':' .. tostring(value)
    end
    if kind == 'function' or kind == 'thread' or kind == 'userdata' then return kind end
    return tostring(value)
end

local function all(ok, ...)
    local parts = {ok and 'ok' or 'error'}
    for place = 1, select('#', ...) do parts[#parts + 1] = describe((select(place, ...))) end
    return table.concat(parts, ' ')
end

-- Run a snippet, a chunk that returns values, and describe these or its error.
return function(text)
    local chunk, why = loadstring(text, '=snippet')
    if not chunk then return 'syntax ' .. quoted(why) end
    return all(pcall(chunk))
end
