-- Lua's coroutines inside of fibers: what waits in a coroutine makes the whole fiber wait.
local scheduler = require('internal.fibers.scheduler')
local argument = require('internal.argument')
local SUSPEND, current = scheduler.SUSPEND, scheduler.current
local create, resume, running = coroutine.create, coroutine.resume, coroutine.running
local status, yield = coroutine.status, coroutine.yield

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
    if type(thread) ~= 'thread' then argument.refuse(1, 'coroutine expected') end
    if waiting[thread] then return false, 'cannot resume running coroutine' end
    return passed(thread, resume(thread, ...))
end

local function unwrapped(ok, ...)
    if not ok then error((...), type((...)) == 'string' and 2 or 0) end
    return ...
end

function coroutine.wrap(call)
    if type(call) ~= 'function' then argument.refuse_type(1, 'function', call) end
    local thread = create(call)
    return function(...)
        if waiting[thread] then error('cannot resume running coroutine', 2) end
        return unwrapped(passed(thread, resume(thread, ...)))
    end
end

function coroutine.status(thread)
    if type(thread) ~= 'thread' then argument.refuse(1, 'coroutine expected') end
    return waiting[thread] and 'normal' or status(thread)
end

-- A fiber's own coroutine yields to the scheduler alone.
function coroutine.yield(...)
    if running() == current().coroutine then error('attempt to yield across C-call boundary', 0) end
    return yield(...)
end
