-- Condition variables of fibers.
local userdata = require('internal.userdata')
local waiting = require('internal.fibers.waiting')

local methods = {}
local wrap, state_of = userdata.kind(methods, function() return 'cond' end)

local function checked(object, usage)
    return state_of(object) or error('usage: ' .. usage, 3)
end

-- Wait for a signal. Returns false if there was none in time; true also if the fiber was woken or cancelled.
function methods.wait(object, timeout)
    local usage = 'cond:wait([timeout])'
    local state = checked(object, usage)
    if timeout ~= nil and (type(timeout) ~= 'number' or timeout < 0) then error('usage: ' .. usage, 2) end
    return waiting.wait_once(state, timeout)
end

function methods.signal(object)
    waiting.wake(checked(object, 'cond:signal()'))
end

function methods.broadcast(object)
    local state = checked(object, 'cond:broadcast()')
    while waiting.wake(state) do end
end

return {
    new = function() return wrap(waiting.list()) end,
}
