-- box.func: functions of `_func`, whose bodies are stored with the data.
--
-- Source: Tarantool reference, "box.schema.func.create()".
local functions = require('internal.box.functions')
local failure = require('internal.box.failure')
local plain = require('internal.box.plain')

local LOAD_FUNCTION = 99
local SANDBOX = {
    'assert', 'error', 'ipairs', 'math', 'next', 'pairs', 'pcall', 'print', 'select', 'string', 'table', 'tonumber',
    'tostring', 'type', 'unpack', 'utf8', 'xpcall',
}

local stored = {by_name = {}}
local bodies = {} -- the functions of bodies, by name

local function refuse(name, reason)
    failure.raise(LOAD_FUNCTION, ("Failed to dynamically load function '%s': %s"):format(name, reason))
end

local function sandbox()
    local globals = {}
    for _, name in ipairs(SANDBOX) do globals[name] = table.deepcopy(_G[name]) end
    return globals
end

local function is_callable(value)
    return type(value) == 'function' or (type(value) == 'table' and (getmetatable(value) or {}).__call ~= nil)
end

local function compile(described)
    local chunk, why = loadstring('return ' .. described.body)
    if not chunk then refuse(described.name, why) end
    if described.is_sandboxed then setfenv(chunk, sandbox()) end
    local ok, body = pcall(chunk)
    if not ok then refuse(described.name, tostring(body)) end
    if not is_callable(body) then refuse(described.name, "given body doesn't define a function") end
    return body
end

-- The function of the body that is stored with a name; nil if there is none.
function stored.body(name)
    return bodies[name]
end

local methods = {}

function methods.call(object, arguments)
    if type(object) ~= 'table' or object.name == nil then error('Use func:call(...)', 2) end
    if arguments ~= nil and type(arguments) ~= 'table' then error('Use func:call(table)', 2) end
    return failure.converted(pcall(require('internal.box.calls').invoke, object.name, unpack(arguments or {})))
end

function methods.drop(object)
    functions.ask('box.schema.func.drop', object.name)
end

local meta = {__index = methods}

local function show(value)
    for each in pairs(stored.by_name) do
        if stored.by_name[each] == value then stored.by_name[each] = nil end
    end
end

-- Bring a function up to date; called whenever its definition changes.
function stored.refresh(name)
    local described = plain.table(functions.ask('describe_function', name))
    bodies[name] = nil
    if stored.by_name[name] then show(stored.by_name[name]) end
    if not described then return end
    if described.language == 'LUA' and described.body ~= '' then bodies[name] = compile(described) end
    if described.body == '' then described.body = nil end
    local object = setmetatable(described, meta)
    stored.by_name[name], stored.by_name[described.id] = object, object
end

function stored.refresh_all()
    for _, name in ipairs(functions.ask('function_names')) do stored.refresh(name) end
end

return stored
