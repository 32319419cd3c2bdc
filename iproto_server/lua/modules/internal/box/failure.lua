-- Errors of box between this side and Python's.
local errors = require('internal.box.values.error')

local tostring = tostring
local encode = require('msgpack').encode

local PROC_LUA = 32

local failure = {of_host = errors.new_error}

-- Raise an error with a code and a text.
function failure.raise(code, message)
    error(errors.new_error(code, message), 0)
end

function failure.illegal(message)
    failure.raise(1, 'Illegal parameters, ' .. message)
end

-- The results of `pcall`; an error is raised as an object.
function failure.converted(ok, ...)
    if ok then return ... end
    local value = ...
    error(errors.is(value) and value or errors.new_error(PROC_LUA, tostring(value)), 0)
end

function failure.timed_out()
    error(errors.new_error(nil, 'timed out', 'TimedOut', {errno = 110}), 0)
end

local AS_MAP = {__serialize = 'map'}

local function pack_stack(stack)
    for _, each in ipairs(stack) do
        setmetatable(each, AS_MAP)
        if each[6] then each[6] = setmetatable(table.copy(each[6]), AS_MAP) end
    end
    local ok, packed = pcall(encode, setmetatable({[0] = stack}, AS_MAP))
    return ok and packed or nil
end

-- The code, the message and the type of what was raised, and it with its causes in MessagePack.
function failure.describe(value)
    if errors.is(value) then
        return errors.code(value), value.message, value.base_type, pack_stack(errors.stack(value))
    end
    local message = tostring(value)
    local file, line = message:match('^([^:\n]+):(%d+): ')
    local entry = {[0] = 'LuajitError', file or '', tonumber(line) or 0, message, 0, PROC_LUA}
    return PROC_LUA, message, 'LuajitError', pack_stack{entry}
end

return failure
