-- Errors of net.box.
local errors = require('internal.box.values.error')

local failures = {}

function failures.new(code, message)
    return errors.new_error(code, message, 'ClientError')
end

-- Raise an error: an object of box.error, or a text.
function failures.raise(object)
    if errors.is(object) then errors.public.set(object) end
    error(object, 0)
end

function failures.usage(message)
    failures.raise(failures.new(errors.public.PROC_LUA, message))
end

function failures.timed_out()
    return failures.new(errors.public.TIMEOUT, 'Timeout exceeded')
end

function failures.no_connection(message)
    return failures.new(errors.public.NO_CONNECTION, message or 'Connection is not established')
end

-- The error of a response's code, message, and description of its causes, if the server has given one.
function failures.of_response(code, message, described)
    local object = described and errors.unpack_stack(require('msgpack').encode(described))
    return object or failures.new(code, message)
end

failures.is = errors.is
failures.codes = errors.public

return failures
