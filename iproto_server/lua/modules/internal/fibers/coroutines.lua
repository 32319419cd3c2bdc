-- Lua's coroutines inside of fibers: what waits in a coroutine makes the whole fiber wait.
local scheduler = require('internal.fibers.scheduler')
local argument = require('internal.argument')
local SUSPEND, current = scheduler.SUSPEND, scheduler.current
local create, resume, running = coroutine.create, coroutine.resume, coroutine.running
local status, yield = coroutine.status, coroutine.yield

local NESTING_MAX = 10000 -- coroutines that resume each other, on the stack of C

-- Coroutines in which a fiber waits.
local waiting = setmetatable({}, {__mode = 'k'})

local nesting = 0

local function returned(...)
    nesting = nesting - 1
    return ...
end

-- `resume` in coroutines that are not too many for the stack of C.
local function resume_nested(thread, ...)
    if nesting >= NESTING_MAX then return false, 'C stack overflow' end
    nesting = nesting + 1
    return returned(resume(thread, ...))
end

local function passed(thread, ...)
    local ok, what = ...
    if not ok or what ~= SUSPEND then return ... end
    waiting[thread] = true
    yield(SUSPEND)
    waiting[thread] = nil
    return passed(thread, resume_nested(thread))
end

function coroutine.resume(thread, ...)
    if type(thread) ~= 'thread' then argument.refuse(1, 'coroutine expected') end
    if waiting[thread] then return false, 'cannot resume running coroutine' end
    return passed(thread, resume_nested(thread, ...))
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
        return unwrapped(passed(thread, resume_nested(thread, ...)))
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
