-- Lua's coroutines inside of fibers: what waits in a coroutine makes the whole fiber wait.
local SUSPEND = require('internal.fibers.scheduler').SUSPEND
local create, resume, status, yield = coroutine.create, coroutine.resume, coroutine.status, coroutine.yield

-- Coroutines in which a fiber waits.
local waiting = setmetatable({}, {__mode = 'k'})

local function passed(thread, ok, what, ...)
    if not ok or what ~= SUSPEND then return ok, what, ... end
    waiting[thread] = true
    yield(SUSPEND)
    waiting[thread] = nil
    return passed(thread, resume(thread))
end

function coroutine.resume(thread, ...)
    if waiting[thread] then return false, 'cannot resume normal coroutine' end
    return passed(thread, resume(thread, ...))
end

local function unwrapped(ok, ...)
    if not ok then error((...), 0) end
    return ...
end

function coroutine.wrap(call)
    local thread = create(call)
    return function(...) return unwrapped(coroutine.resume(thread, ...)) end
end

function coroutine.status(thread)
    return waiting[thread] and 'normal' or status(thread)
end
