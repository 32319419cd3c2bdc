-- Indexes of spaces.
--
-- Source: Tarantool reference, "Submodule box.index".
local functions = require('internal.box.functions')
local cursor = require('internal.box.space.cursor')
local failure = require('internal.box.failure')

local LIMIT_MAX = 4294967295
local methods = {}

-- The handle of an index, for a method that was called with a colon.
local function handle_of(index, method)
    if type(index) ~= 'table' or index.space_id == nil then
        error(('Use index:%s(...) instead of index.%s(...)'):format(method, method))
    end
    local handle = rawget(index, '_handle')
    if handle == nil then
        local space = box.space[index.space_id]
        if not space then failure.raise(36, ("Space '%s' does not exist"):format(tostring(index.space_id))) end
        handle = functions.facade(index.space_id, index.id)
        rawset(index, '_handle', handle)
    end
    return handle
end

-- Whether a value can be a row, or operations.
local function is_list(value)
    return type(value) == 'table' or box.tuple.is(value)
end

-- Whether each row has one place in the index, behind which an iterator can go on.
local function has_one_place(index)
    if index.type ~= 'TREE' then return false end
    for _, part in ipairs(index.parts) do
        if part.path ~= nil then return false end
    end
    return true
end

local function ask(index, method, ...)
    if type(index) ~= 'table' or index.space_id == nil then
        error(('Use index:%s(...) instead of index.%s(...)'):format(method, method))
    end
    return functions.ask('index', index.space_id, index.id, method, ...)
end

function methods.get(index, key)
    return functions.get(handle_of(index, 'get'), key)
end

function methods.select(index, key, options)
    local handle, offset, limit = handle_of(index, 'select'), 0, LIMIT_MAX
    local iterator = cursor.iterator(options, key)
    if type(options) == 'table' then
        if options.offset ~= nil then offset = options.offset end
        if options.limit ~= nil then limit = options.limit end
    end
    return functions.select(handle, key, iterator, offset, limit)
end

function methods.pairs(index, key, options)
    local handle = handle_of(index, 'pairs')
    return cursor.pairs(handle, key, cursor.iterator(options, key), has_one_place(index))
end

function methods.min(index, key)
    return functions.min(handle_of(index, 'min'), key)
end

function methods.max(index, key)
    return functions.max(handle_of(index, 'max'), key)
end

function methods.update(index, key, operations)
    local handle = handle_of(index, 'update')
    if not is_list(operations) then error('Usage index:update(key, ops)', 0) end
    return functions.update(handle, key, operations)
end

function methods.delete(index, key)
    return functions.delete(handle_of(index, 'delete'), key)
end

function methods.count(index, key, options)
    if type(index) == 'table' then cursor.check(options) end
    return ask(index, 'count', key, options)
end

function methods.random(index, seed)
    local handle, count = handle_of(index, 'random'), ask(index, 'len')
    if count == 0 then return nil end
    return functions.select(handle, nil, cursor.ITERATORS.ALL, math.floor(math.abs(tonumber(seed) or 0)) % count, 1)[1]
end

function methods.bsize(index)
    return ask(index, 'bsize') + 0ULL
end

-- Of the engine vinyl.
function methods.stat(index)
    handle_of(index, 'stat')
    return {}
end
methods.info = methods.stat

function methods.compact(index)
    handle_of(index, 'compact')
end

for _, name in ipairs{'len', 'alter', 'drop', 'rename'} do
    methods[name] = function(index, ...) return ask(index, name, ...) end
end

local meta = {__index = methods}
meta.__serialize = function(index)
    local shown = {}
    for name, value in pairs(index) do
        if name ~= '_handle' then shown[name] = value end
    end
    return shown
end

local indexes = {methods = methods}

-- The object of an index, of what Python says of it.
indexes.is_list = is_list

function indexes.object(described)
    return setmetatable(described, meta)
end

return indexes
