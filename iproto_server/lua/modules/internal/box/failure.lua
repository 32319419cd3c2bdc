-- Errors of box between this side and Python's.
local errors = require('internal.box.values.error')

local tostring = tostring
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
    error(errors.new_error(nil, 'timed out', 'TimedOut'), 0)
end

-- The code, the message and the type of what was raised.
function failure.describe(value)
    if errors.is(value) then return value.code or PROC_LUA, value.message, value.base_type end
    return PROC_LUA, tostring(value), 'LuajitError'
end

return failure
