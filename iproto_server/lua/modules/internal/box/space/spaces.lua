-- Spaces: `box.space`, a table of them by name and by number.
--
-- Source: Tarantool reference, "Submodule box.space".
local ffi = require('ffi')
local functions = require('internal.box.functions')
local cursor = require('internal.box.space.cursor')
local indexes = require('internal.box.space.indexes')
local failure = require('internal.box.failure')

local triggers = require('internal.box.space.triggers')
local plain = require('internal.box.plain')

local methods = {}

-- The handle of a space, for a method that was called with a colon.
local function handle_of(space, method)
    if type(space) ~= 'table' or space.id == nil then
        error(('Use space:%s(...) instead of space.%s(...)'):format(method, method))
    end
    local handle = rawget(space, '_handle')
    if handle == nil then
        handle = functions.facade(space.id, nil)
        rawset(space, '_handle', handle)
    end
    return handle
end

local function ask(space, method, ...)
    if type(space) ~= 'table' or space.id == nil then
        error(('Use space:%s(...) instead of space.%s(...)'):format(method, method))
    end
    return functions.ask('space', space.id, method, ...)
end

local function check_primary(space)
    if not space.index[0] then
        failure.raise(35, ("No index #0 is defined in space '%s'"):format(space.name))
    end
end

-- -- rows --

function methods.insert(space, row)
    return functions.insert(handle_of(space, 'insert'), row)
end

function methods.replace(space, row)
    return functions.replace(handle_of(space, 'replace'), row)
end
methods.put = methods.replace

function methods.upsert(space, row, operations, extra)
    local handle = handle_of(space, 'upsert')
    if extra ~= nil then
        failure.raise(32, ('Error: extra argument in upsert call: %s. Usage :upsert(tuple, operations)'):format(
            tostring(extra)))
    end
    if not (indexes.is_list(row) and indexes.is_list(operations)) then error('Usage space:upsert(tuple_key, ops)', 0) end
    functions.upsert(handle, row, operations)
end

for _, name in ipairs{'get', 'select', 'update', 'delete'} do
    local method = indexes.methods[name]
    methods[name] = function(space, ...)
        handle_of(space, name)
        check_primary(space)
        return method(space.index[0], ...)
    end
end

function methods.pairs(space, key, options)
    handle_of(space, 'pairs')
    if not space.index[0] then return require('fun').wrap({}) end
    return space.index[0]:pairs(key, options)
end

function methods.auto_increment(space, row)
    if type(row) ~= 'table' then
        error(("bad argument #1 to 'insert' (table expected, got %s)"):format(type(row)))
    end
    check_primary(space)
    local last = space.index[0]:max()
    return space:insert{last and last[1] + 1 or 1, unpack(row)}
end

-- -- what Python does --

local function create_index(space, name, options)
    local is_there = type(space) == 'table' and space.index and space.index[name] ~= nil
    local described = ask(space, 'create_index', name, options)
    if is_there then return space.index[described.name], 'not created' end
    return space.index[described.name]
end
methods.create_index = create_index

function methods.format(space, format)
    return ask(space, 'format', format)
end

for _, name in ipairs{'count', 'len', 'truncate', 'drop', 'rename'} do
    methods[name] = function(space, ...) return ask(space, name, ...) end
end

function methods.bsize(space)
    return ask(space, 'bsize') + 0ULL
end

for _, name in ipairs{'on_replace', 'before_replace'} do
    methods[name] = function(space, ...)
        return triggers.set(function(...) return ask(space, name, ...) end, ...)
    end
end

-- Let the triggers of a space run from now on, or none of them: false or true, or as a number.
function methods.run_triggers(space, is_on)
    if type(space) ~= 'table' then error('Use space:run_triggers(...) instead of space.run_triggers(...)') end
    local number = type(is_on) ~= 'string' and tonumber(is_on)
    if number then is_on = number ~= 0 end
    if type(is_on) ~= 'boolean' then
        local kind = type(is_on) == 'cdata' and tostring(ffi.typeof(is_on)):match('<(.*)>') or type(is_on)
        error(("bad argument #2 to 'space_run_triggers' (cannot convert '%s' to 'bool')"):format(kind))
    end
    ask(space, 'run_triggers', is_on)
end

function methods.frommap(space, map, options)
    if type(map) ~= 'table' or (options ~= nil and type(options) ~= 'table') then
        error('Usage: space:frommap(map, opts)', 0)
    end
    return plain.results(ask(space, 'frommap', map, options))
end

local meta = {__index = methods}
meta.__serialize = function(space)
    local shown = {}
    for name, value in pairs(space) do
        if name ~= '_handle' then shown[name] = value end
    end
    return shown
end

-- -- the table of spaces --

local spaces = {}
local by_id = {}

local function forget(id)
    local space = by_id[id]
    if not space then return end
    by_id[id] = nil
    spaces[id] = nil
    if spaces[space.name] == space then spaces[space.name] = nil end
end

-- Give a space's object the indexes that it has now.
local function set_indexes(space, described)
    local kept = space.index or {}
    space.index = {}
    for name, index in pairs(described) do
        local object = kept[index.id]
        if object and object.name == index.name then
            for field in pairs(object) do object[field] = nil end
            for field, value in pairs(index) do object[field] = value end
        else
            object = indexes.object(index)
        end
        space.index[name], space.index[index.id] = object, object
    end
end

local function define(described)
    local id = described.id
    local space = by_id[id] or setmetatable({}, meta)
    forget(id)
    local described_indexes = described.index
    described.index = space.index
    for field in pairs(space) do space[field] = nil end
    for field, value in pairs(described) do space[field] = value end
    set_indexes(space, described_indexes)
    by_id[id], spaces[id], spaces[space.name] = space, space, space
end

local module = {all = spaces, ITERATORS = cursor.ITERATORS}

-- Bring the object of a space up to date; called whenever its definition changes.
function module.refresh(id)
    local described = functions.ask('describe_space', id)
    if described then define(plain.table(described)) else forget(id) end
end

function module.refresh_all()
    for id in pairs(by_id) do forget(id) end
    for _, described in ipairs(functions.ask('describe_spaces')) do define(plain.table(described)) end
end

return module
