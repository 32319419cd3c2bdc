-- Errors of box as objects: cdata of the type `const struct error`, whose state is a table.
local ffi = require('ffi')

local error_t, const_error_t = ffi.typeof('struct error'), ffi.typeof('const struct error')
local MESSAGE_MAX, TYPE_MAX = 511, 63 -- bytes that Tarantool has room for

local objects = {}

-- States by object. A state refers to other objects, never to its own, which weak keys would keep for ever.
local states = setmetatable({}, {__mode = 'k'})
-- The error that each is the cause of.
local effects = setmetatable({}, {__mode = 'kv'})

local HAS_CODE = {ClientError = true, CustomError = true, AccessDeniedError = true}

local CODES = {OutOfMemory = 2, SystemError = 115, SocketError = 115}
local PROC_LUA = 32

function objects.is(value)
    return type(value) == 'cdata' and ffi.istype(error_t, value) and states[value] ~= nil
end
local is = objects.is

-- Texts of Tarantool's errors are C strings.
local function cut(text, size)
    local zero = text:find('\0', 1, true)
    return text:sub(1, zero and zero <= size and zero - 1 or size)
end

-- Create an error. `state` has `code`, `message`, `base_type`, and may have `custom_type`, `file`, `line`, `errno` and
-- `fields`, a table of what errors of its type have.
function objects.new(state)
    state.message = cut(state.message, MESSAGE_MAX)
    if state.custom_type then state.custom_type = cut(state.custom_type, TYPE_MAX) end
    local object = const_error_t()
    states[object] = state
    return object
end

-- Causes --------------------------------------------------------------------------------------------------------------

-- Let an error be the cause of no other.
function objects.unlink(object)
    local effect = effects[object]
    if effect then states[effect].prev = nil end
    effects[object] = nil
end

-- Set the cause of an error, or remove it. Returns false if that would make a circle.
function objects.set_cause(object, cause)
    if cause then
        local effect = object
        repeat
            if effect == cause then return false end
            effect = effects[effect]
        until not effect
        objects.unlink(cause)
    end
    local state = states[object]
    if state.prev then effects[state.prev] = nil end
    state.prev = cause
    if cause then effects[cause] = object end
    return true
end

-- The code that clients get.
function objects.code(object)
    local state = states[object]
    return HAS_CODE[state.base_type] and state.code or CODES[state.base_type] or PROC_LUA
end

-- An error and its causes, as they are in MessagePack.
function objects.stack(object)
    local stack = {}
    while object do
        local state = states[object]
        local own = state.fields
        if state.custom_type then own = {custom_type = state.custom_type} end
        stack[#stack + 1] = {
            [0] = state.base_type, state.file or '', state.line or 0, state.message, state.errno or 0, objects.code(object),
            own and next(own) ~= nil and own or nil,
        }
        object = state.prev
    end
    return stack
end

-- Fields and methods --------------------------------------------------------------------------------------------------

local fields = {
    base_type = function(state) return state.base_type end,
    code = function(state) return HAS_CODE[state.base_type] and state.code or nil end,
    custom_type = function(state) return state.custom_type end,
    errno = function(state) return state.errno ~= 0 and state.errno or nil end,
    message = function(state) return state.message end,
    prev = function(state) return state.prev end,
    trace = function(state) return {{file = state.file or '', line = state.line or 0}} end,
    type = function(state) return state.custom_type or state.base_type end,
}

local methods = {}

function methods.unpack(object)
    if not is(object) then error('Usage: error:unpack()') end
    local state, values = states[object], {}
    for name, value in pairs(state.fields or {}) do values[name] = value end
    for name, get in pairs(fields) do values[name] = get(state) end
    return values
end

function methods.raise(object)
    if not is(object) then error('Usage: error:raise()') end
    error(object)
end

function methods.match(object, ...)
    if not is(object) then error('Usage: error:match()') end
    return string.match(states[object].message, ...)
end

function methods.set_prev(object, cause)
    local is_none = not is(cause) and cause == nil
    if not is(object) or not (is_none or is(cause)) then
        error('Usage: error1:set_prev(error2)')
    end
    if not objects.set_cause(object, not is_none and cause or nil) then error('Cycles are not allowed') end
end

function methods.__serialize(object)
    if not is(object) then error('Usage: error:__serialize()') end
    return states[object].message
end

local function to_text(object)
    local state = states[object]
    return state and state.message or 'struct error'
end

ffi.metatype(error_t, {
    __index = function(object, name)
        local state = states[object]
        local get = state and fields[name]
        if get then return get(state) end
        if methods[name] then return methods[name] end
        return state and state.fields and state.fields[name] or nil
    end,
    __tostring = to_text,
    __concat = function(left, right)
        return (is(left) and to_text(left) or left) .. (is(right) and to_text(right) or right)
    end,
})

return objects
