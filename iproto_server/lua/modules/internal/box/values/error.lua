-- box.error: the numbers of errors, and errors as objects.
local _, host = ...
local ffi = require('ffi')
local objects = require('internal.box.values.error_object')
local scheduler = require('internal.fibers.scheduler')
local serializer = require('internal.serial.serializer')

local numbers, wordings = {}, {}
for number, name, wording in host.error_codes():gmatch('(%d+) (%S+) ([^\n]*)') do
    if name ~= '-' then numbers[name] = tonumber(number) end
    wordings[tonumber(number)] = wording
end

local PROC_LUA = numbers.PROC_LUA

-- The last error of each fiber.
local last = setmetatable({}, {__mode = 'k'})

local function set_last(object)
    objects.unlink(object)
    last[scheduler.current()] = object
end

-- As `lua_tointeger` of C, cut to 32 bits.
local function as_code(value)
    local number = tonumber(value) or 0
    if number ~= number or math.abs(number) >= 0x1p63 then return 0 end
    return tonumber(ffi.cast('int32_t', ffi.cast('int64_t', number)))
end

local function as_text(value)
    if type(value) == 'number' then return tostring(value) end
    return type(value) == 'string' and value or nil
end

-- Where the function at a level of the caller is.
local function set_place(state, level)
    local info = debug.getinfo(level + 1, 'Sl')
    if not info then return state end
    state.file = info.short_src
    state.line = info.currentline % 2 ^ 32
    return state
end

-- The state of an error of a table, or of a code or type and arguments; nil if these are wrong. Errors of
-- `string.format` are raised.
local function state_of(...)
    local kind = ...
    if type(kind) == 'table' then
        local custom_type = as_text(kind.type)
        return {
            code = as_code(kind.code), message = as_text(kind.reason) or '',
            base_type = custom_type and 'CustomError' or 'ClientError', custom_type = custom_type,
        }
    end
    local wording
    if type(kind) == 'number' then
        wording = wordings[as_code(kind)] or 'Unknown error'
        if select('#', ...) == 1 then
            if wording:find('%', 1, true) then return nil end
            return {code = as_code(kind), message = wording, base_type = 'ClientError'}
        end
    elseif type(kind) == 'string' then
        wording = select(2, ...)
        if type(wording) ~= 'string' then return nil end
    else
        return nil
    end
    local ok, message
    if type(kind) == 'number' then
        ok, message = pcall(string.format, wording, select(2, ...))
        if ok then return {code = as_code(kind), message = message, base_type = 'ClientError'} end
    else
        ok, message = pcall(string.format, select(2, ...))
        if ok then return {code = 0, message = message, base_type = 'CustomError', custom_type = kind} end
    end
    error(message, 0)
end

local methods = {}

function methods.new(...)
    local state = state_of(...)
    if not state then error('Usage: box.error.new(code, args) or box.error.new(type, args)', 2) end
    return objects.new(set_place(state, 2))
end

function methods.last(...)
    if select('#', ...) > 0 then error('box.error.last(): bad arguments', 2) end
    return last[scheduler.current()]
end

function methods.clear(...)
    if select('#', ...) > 0 then error('box.error.clear(): bad arguments', 2) end
    last[scheduler.current()] = nil
end

function methods.set(...)
    if select('#', ...) == 0 then error('Usage: box.error.set(error)', 2) end
    local object = ...
    if not objects.is(object) then
        error('Invalid argument #1 (error expected, got ' .. type(object) .. ')', 2)
    end
    set_last(object)
end

-- Raise an error: the last one without arguments.
local function raise(_, ...)
    local object = ...
    if select('#', ...) == 0 then
        object = last[scheduler.current()]
        if object then error(object, 0) end
        return
    elseif select('#', ...) > 1 or not objects.is(object) then
        local state = state_of(...)
        if not state then error('box.error(): bad arguments', 2) end
        object = objects.new(set_place(state, 2))
    end
    set_last(object)
    error(object, 0)
end

-- Types of errors, and those that are others in Lua.
local BASE_TYPES = {LoggedError = 'ClientError', UnsupportedIndexFeature = 'ClientError'}

-- An error for `error()`, which is the last one of the fiber. `fields` are what errors of its type have.
local function new_error(code, message, base_type, fields)
    base_type = base_type or code == PROC_LUA and 'LuajitError' or 'ClientError'
    local state = {code = code, message = message or '', fields = fields, errno = fields and fields.errno}
    state.base_type = BASE_TYPES[base_type] or base_type
    if fields and fields.custom_type then state.base_type, state.custom_type = 'CustomError', fields.custom_type end
    local object = objects.new(set_place(state, 2))
    set_last(object)
    return object
end

-- Errors of json, msgpack and yaml that are objects.
function serializer.raise(message)
    error(new_error(PROC_LUA, message, 'LuajitError'), 0)
end

-- Errors in MessagePack -----------------------------------------------------------------------------------------------

local TYPE, FILE, LINE, MESSAGE, ERRNO, CODE, FIELDS = 0, 1, 2, 3, 4, 5, 6
local KNOWN_TYPES = {}
for _, name in ipairs{
    'ClientError', 'CustomError', 'AccessDeniedError', 'XlogError', 'XlogGapError', 'SystemError', 'SocketError',
    'OutOfMemory', 'TimedOut', 'ChannelIsClosed', 'LuajitError', 'IllegalParams', 'CollationError', 'SwimError',
    'CryptoError', 'FiberIsCancelled',
} do
    KNOWN_TYPES[name] = true
end

local function unpacked(entry)
    if type(entry) ~= 'table' then return nil end
    local name, file, message = entry[TYPE], entry[FILE], entry[MESSAGE]
    if type(name) ~= 'string' or type(file) ~= 'string' or type(message) ~= 'string' then return nil end
    local fields = type(entry[FIELDS]) == 'table' and entry[FIELDS] or {}
    local state = {
        code = tonumber(entry[CODE]) or 0, message = message, base_type = name,
        file = file, line = tonumber(entry[LINE]) or 0, errno = tonumber(entry[ERRNO]) or 0,
    }
    if name == 'CustomError' then
        state.custom_type = fields.custom_type
        if type(state.custom_type) ~= 'string' then return nil end
    elseif name == 'AccessDeniedError' then
        state.fields = fields
    elseif not KNOWN_TYPES[name] then
        state.code, state.base_type = 0, 'ClientError'
    end
    return objects.new(state)
end

-- The error, with its causes, of an extension's payload; nil if it describes none.
local function unpack_stack(payload)
    local ok, described = pcall(require('msgpack').decode, payload)
    local stack = ok and type(described) == 'table' and described[0]
    if type(stack) ~= 'table' or #stack == 0 then return nil end
    local cause
    for place = #stack, 1, -1 do
        local object = unpacked(stack[place])
        if not object then return nil end
        objects.set_cause(object, cause)
        cause = object
    end
    return cause
end

return {
    is = objects.is,
    new_error = new_error,
    code = objects.code,
    stack = objects.stack,
    public = setmetatable(numbers, {__index = methods, __call = raise}),
    unpack_stack = unpack_stack,
}
