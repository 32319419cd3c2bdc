-- Checks of arguments of connections' methods.
local failures = require('internal.netbox.failures')

local CALL_USAGE =
    'Use remote:call(func_name, {arg1, arg2, ...}, opts) instead of remote:call(func_name, arg1, arg2, ...)'
local EVAL_USAGE =
    'Use remote:eval(expression, {arg1, arg2, ...}, opts) instead of remote:eval(expression, arg1, arg2, ...)'

local check = {}

-- Raise an error if a method was called without its object.
function check.remote(remote, method)
    if type(remote) == 'table' then return end
    failures.usage(('Use remote:%s(...) instead of remote.%s(...):'):format(method, method))
end

local function arguments(method, usage)
    return function(remote, given)
        check.remote(remote, method)
        if given ~= nil and type(given) ~= 'table' then error(usage) end
    end
end
check.call, check.eval = arguments('call', CALL_USAGE), arguments('eval', EVAL_USAGE)

return check
