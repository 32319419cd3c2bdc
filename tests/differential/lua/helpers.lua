-- What random snippets use, beside modules under their names: the same text here and in a real Tarantool.
local places = ...
ffi, fiber, fun, utf8, bit = require('ffi'), require('fiber'), require('fun'), require('utf8'), require('bit')
json, yaml, msgpack = require('json'), require('yaml'), require('msgpack')
decimal, uuid = require('decimal'), require('uuid')
jit.off() -- Tarantool 2.6 compiles a few loops wrongly

local noted = {}

local function list(...)
    local values = {}
    for place = 1, select('#', ...) do
        local value = select(place, ...)
        values[place] = value == nil and box.NULL or value
    end
    return setmetatable(values, {__serialize = 'seq'})
end

-- An error without places in the source.
local function described(value)
    if not ffi.istype('struct error', value) then return value end
    local fields = {type = value.type, code = value.code, message = value.message, errno = value.errno}
    return {error = fields, cause = value.prev and described(value.prev)}
end

local function outcome(ok, ...)
    if ok then return list(...) end
    return {failed = described((...))}
end

-- Call a function. Returns the list of its results, or a map with its error.
function try(f, ...)
    return outcome(pcall(f, ...))
end

-- Returns a function that tries another one and keeps what comes of it, and one that returns all that was kept.
function results()
    local kept = {}
    return function(f) kept[#kept + 1] = try(f) end, function() return unpack(kept) end
end

-- Rows in the order of their texts, since that of a hash is its own affair.
function listed(rows)
    if type(rows) ~= 'table' then return rows end
    table.sort(rows, function(a, b) return tostring(a) < tostring(b) end)
    return rows
end

-- Keep values that functions of changes and of fibers have seen.
function note(...)
    noted[#noted + 1] = list(...)
end

-- Returns what was kept.
function notes()
    return noted
end

-- The results of a function in a fiber of its own.
function joined(f, ...)
    local one = fiber.new(f, ...)
    one:set_joinable(true)
    return one:join()
end

local function drop_all(space, first, drop)
    for _, row in ipairs(box.space[space]:select()) do
        if row[1] >= first then drop(row) end
    end
end

local kept_functions = {}
for _, row in ipairs(box.space._func:select()) do kept_functions[row[1]] = true end

-- Remove all that a snippet has left.
function clean()
    box.rollback()
    noted = {}
    drop_all('_space', 512, function(row) box.space[row[1]]:drop() end)
    drop_all('_sequence', 1, function(row) box.schema.sequence.drop(row[3]) end)
    drop_all('_func', 1, function(row)
        if not kept_functions[row[1]] then box.schema.func.drop(row[3]) end
    end)
    drop_all('_user', 4, function(row)
        if row[1] < 31 or row[1] > 31 then
            box.schema[row[4]].drop(row[3])
        end
    end)
    local schema = box.space._schema
    schema:replace{'max_id', 511}
    schema:delete('oncekey')
    box.schema.user.grant('guest', 'super', nil, nil, {if_not_exists = true})
    box.error.clear()
    collectgarbage()
end

if places then judge = loadstring(places, '=described.lua')() end
