-- Spaces and indexes of a server as objects of a connection.
local cursor = require('internal.box.space.cursor')
local codes = require('internal.netbox.codes')
local failures = require('internal.netbox.failures')
local responses = require('internal.netbox.responses')

-- Fields of rows of _vspace and _vindex.
local SPACE = {id = 1, name = 3, engine = 4, field_count = 5, flags = 6, format = 7}
local INDEX = {space_id = 1, id = 2, name = 3, type = 4, options = 5, parts = 6}

local spaces = {}

-- -- methods --

local function check_space(space, method)
    if type(space) ~= 'table' or space.connection == nil then
        error(('Use space:%s(...) instead of space.%s(...)'):format(method, method))
    end
end

local function check_index(index, method)
    if type(index) ~= 'table' or index.space == nil then
        error(('Use index:%s(...) instead of index.%s(...)'):format(method, method))
    end
end

local function primary(space)
    local index = space.index[0]
    if not index then
        local message = ("No index #0 is defined in space '%s'"):format(space.name)
        failures.raise(failures.new(failures.codes.NO_SUCH_INDEX_ID, message))
    end
    return index
end

local function number_or(value, otherwise)
    return tonumber(value) or otherwise
end

local function request(index, method, options, ...)
    local space = index.space
    return space.connection:_request(method, options, space._format_number, space.id, index.id, ...)
end

local index_methods = {}

function index_methods.select(index, key, options)
    check_index(index, 'select')
    local iterator = cursor.iterator(options, key)
    local settings = type(options) == 'table' and options or {}
    local offset, limit = number_or(settings.offset, 0), number_or(settings.limit, codes.LIMIT_MAX)
    return request(index, 'select', settings, iterator, offset, limit % (codes.LIMIT_MAX + 1), key)
end

function index_methods.get(index, key, options)
    check_index(index, 'get')
    return request(index, 'get', options, codes.EQ, 0, 2, key)
end

function index_methods.min(index, key, options)
    check_index(index, 'min')
    return request(index, 'min', options, codes.GE, 0, 1, key)
end

function index_methods.max(index, key, options)
    check_index(index, 'max')
    return request(index, 'max', options, codes.LE, 0, 1, key)
end

function index_methods.count(index, key, options)
    check_index(index, 'count')
    local name = ('box.space.%s.index.%s:count'):format(index.space.name, index.name)
    return index.space.connection:_request('count', options, nil, name, {key, options})
end

function index_methods.delete(index, key, options)
    check_index(index, 'delete')
    return request(index, 'delete', options, key)
end

function index_methods.update(index, key, operations, options)
    check_index(index, 'update')
    return request(index, 'update', options, key, operations)
end

local space_methods = {}

for _, name in ipairs{'insert', 'replace'} do
    space_methods[name] = function(space, tuple, options)
        check_space(space, name)
        return space.connection:_request(name, options, space._format_number, space.id, 0, tuple)
    end
end

function space_methods.upsert(space, tuple, operations, options)
    check_space(space, 'upsert')
    return space.connection:_request('upsert', options, nil, space.id, 0, tuple, operations)
end

for _, name in ipairs{'select', 'get', 'delete', 'update'} do
    space_methods[name] = function(space, ...)
        check_space(space, name)
        return index_methods[name](primary(space), ...)
    end
end

local space_mt = {__index = space_methods, __metatable = false}
local index_mt = {__index = index_methods, __metatable = false}

-- -- the schema --

local function space_of(row, connection)
    local flags, format = row[SPACE.flags] or {}, row[SPACE.format] or {}
    local names = {}
    for place, field in ipairs(format) do names[place] = field.name end
    return setmetatable({
        id = row[SPACE.id], name = row[SPACE.name], engine = row[SPACE.engine], field_count = row[SPACE.field_count],
        enabled = true, index = {}, temporary = flags.temporary == true, is_sync = flags.is_sync == true,
        _format = format, _format_number = responses.format(names), connection = connection,
    }, space_mt)
end

-- A part as it is now stored, or as it was: the number of a field and its type.
local function part_of(stored, collations)
    local fieldno, kind = stored.field or stored[1], stored.type or stored[2]
    return {
        fieldno = fieldno + 1, type = kind, is_nullable = stored.is_nullable == true,
        collation = collations[stored.collation],
    }
end

local function index_of(row, space, collations)
    local options, parts = row[INDEX.options], {}
    local is_unique = options
    if type(options) == 'table' then is_unique = options.unique ~= false else is_unique = options == 1 end
    local stored = row[INDEX.parts]
    if type(stored) == 'table' then
        for place, part in ipairs(stored) do parts[place] = part_of(part, collations) end
    end
    return setmetatable({
        id = row[INDEX.id], name = row[INDEX.name], type = row[INDEX.type]:upper(), unique = is_unique, parts = parts,
        space = space,
    }, index_mt)
end

-- The spaces of a server by name and number, of the rows of _vspace, _vindex and _vcollation.
function spaces.of_schema(space_rows, index_rows, collation_rows, connection)
    local found, collations = {}, {}
    for _, row in ipairs(collation_rows) do collations[row[1]] = row[2] end
    for _, row in ipairs(space_rows) do
        local space = space_of(row, connection)
        found[space.id], found[space.name] = space, space
    end
    for _, row in ipairs(index_rows) do
        local space = found[row[INDEX.space_id]]
        if space then
            local index = index_of(row, space, collations)
            space.index[index.id], space.index[index.name] = index, index
        end
    end
    return found
end

return spaces
