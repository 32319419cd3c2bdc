-- The scheduler of fibers. A fiber is a coroutine that yields SUSPEND to wait; the event loop of Python calls
-- `run_ready` for fibers that are ready, and `run_timers` when a time has come.
--
-- The functions of Python are `schedule()`, which has `run_ready` called soon; `set_timer(seconds)`, which has
-- `run_timers` called after that time, in place of an earlier setting; and `log_write`.
local _, host = ...
local timers = require('internal.fibers.timers')
local error_report = require('internal.error_report')
local monotonic = require('internal.clocks').monotonic
local create, resume, yield = coroutine.create, coroutine.resume, coroutine.yield

local SUSPEND, ENDED, START = {}, {}, {} -- what the coroutine of a fiber yields
local POOL_MAX = 1000                    -- coroutines that are kept for new fibers
local NESTING_MAX = 50                   -- fibers that are started within each other on the stack of C
local ROUNDS_MAX, SECONDS_MAX = 50, 0.002 -- of `run_ready`, before the event loop does other work
local SECONDS_LONGEST = 1e9              -- longer timeouts never pass
local LEVEL_ERROR = 2                    -- of the log

local scheduler = {SUSPEND = SUSPEND, first_id = 101, monotonic = monotonic}
local alive, last_id = {}, scheduler.first_id - 1
local ready, head, tail, is_scheduled = {}, 1, 0, false
local outside = {} -- functions that are to run outside of coroutines
local pool, pooled, nesting = {}, 0, 0
local armed_at, is_stopped = math.huge, false
local held -- fibers that are ready, but kept back
local spare -- a fiber that has ended, with its coroutine, for the next call from outside

-- The fiber of code that runs outside of fibers.
local current = {id = 1, name = 'sched', status = 'running', switches = 0, is_known = true}

-- Let a fiber be found by its number. Most calls from outside end before any code has asked for their fiber.
local function know(fiber)
    if fiber.is_known then return end
    fiber.is_known = true
    alive[fiber.id] = fiber
end

-- The running fiber.
function scheduler.current()
    if not current.is_known then know(current) end
    return current
end

-- The fibers by their numbers, the running one among them.
function scheduler.all()
    know(current)
    return alive
end

-- Called with a fiber that begins to wait; one that goes on from the event loop; and one that gives way to it.
scheduler.on_suspend = function() end
scheduler.on_resume = function() end
scheduler.on_pause = function() end

-- Called before a fiber goes on from the event loop, if there are limits for it.
local on_switch
function scheduler.set_on_switch(call)
    on_switch = call
end

-- Called with a fiber that ends.
scheduler.on_finish = function() end

-- Called with a fiber that has ended with an error which nobody joins.
scheduler.on_uncaught = function(fiber, why)
    local kind, text = error_report(why)
    host.log_write(LEVEL_ERROR, kind, nil, 0, fiber.id, fiber.name, nil, text)
end

-- Raise the error of a fiber that is cancelled.
scheduler.raise_cancelled = function()
    error(require('internal.box.values.error').new_error(0, 'fiber is cancelled', 'FiberIsCancelled'), 0)
end

-- -- ready fibers --

local function schedule()
    if is_scheduled then return end
    is_scheduled = true
    host.schedule()
end

local function wake(fiber)
    if fiber.is_ready or fiber.has_ended then return end
    fiber.is_ready = true
    tail = tail + 1
    ready[tail] = fiber
    schedule()
end
scheduler.wake = wake

-- Run a function soon, outside of all coroutines. Only such a function may give functions and tables to Python that are
-- used later: lupa calls them on the coroutine that has given them, which then waits, or is gone.
function scheduler.run_outside(call)
    outside[#outside + 1] = call
    schedule()
end

local function run_outside()
    local calls = outside
    outside = {}
    for _, call in ipairs(calls) do call() end
end

-- -- the end of a fiber --

-- Let a fiber that has ended be found no more.
local function forget(fiber)
    fiber.status = 'dead'
    alive[fiber.id] = nil
end
scheduler.forget = forget

-- A fiber has ended; those that wait for its end go on. One that is joinable stays until it is joined, as suspended.
local function bury(fiber)
    fiber.has_ended = true
    if fiber.is_joinable then fiber.status = 'suspended' else forget(fiber) end
    if fiber.joiners then
        for _, each in ipairs(fiber.joiners) do wake(each) end
    end
end

-- Tell the end of a call from outside to where it came from, once.
local function tell_end(fiber, ...)
    local on_end = fiber.on_end
    fiber.on_end = nil
    on_end(fiber, ...)
end

-- Returns what the switch to a call from outside returns: true, and what `pcall` has returned.
local function ended(fiber, ok, ...)
    if not fiber.is_known then return true, ok, ... end
    bury(fiber)
    scheduler.on_finish(fiber)
    if fiber.is_joinable then
        fiber.result = {n = select('#', ...) + 1, ok, ...}
    elseif fiber.on_end then
        if not fiber.is_left then return true, ok, ... end
        tell_end(fiber, ok, ...)
    elseif not ok and not fiber.is_cancelled then
        scheduler.on_uncaught(fiber, (...))
    end
end

-- The coroutine of one fiber after the other, which begin with their arguments.
local function run(fiber, ...)
    return run(yield(ENDED, ended(fiber, pcall(fiber.call, ...))))
end

-- -- switches --

local switch_to, start_waiting

-- The coroutine of a fiber has yielded; or it has ended, because there was an error at the fiber's end, as of a lack of
-- memory.
local function left(fiber, before, ok, what, ...)
    current = before
    nesting = nesting - 1
    if not ok then
        bury(fiber)
        if not fiber.on_end then return scheduler.on_uncaught(fiber, what) end
        if not fiber.is_left then return true, false, what end
        return tell_end(fiber, false, what)
    elseif what == ENDED then
        if not fiber.is_known then
            spare = fiber
            return ...
        end
        if pooled < POOL_MAX then
            pooled = pooled + 1
            pool[pooled] = fiber.coroutine
        end
        fiber.coroutine, fiber.call = nil, nil
        return ...
    elseif what == START then -- the fiber goes on when the other one, which it has started, has yielded
        start_waiting((...))
        return switch_to(fiber)
    end
    know(fiber)
    fiber.is_left = true
end

function switch_to(fiber, ...)
    local before = current
    current = fiber
    nesting = nesting + 1
    fiber.status = 'running'
    fiber.switches = fiber.switches + 1
    return left(fiber, before, resume(fiber.coroutine, fiber, ...))
end

-- Switch to a fiber that may not have begun: then its arguments wait.
function start_waiting(fiber)
    local arguments = fiber.arguments
    if not arguments then return switch_to(fiber) end
    fiber.arguments = nil
    return switch_to(fiber, unpack(arguments, 1, arguments.n))
end

-- -- new fibers --

local function new(call)
    last_id = last_id + 1
    local fiber = {id = last_id, name = 'lua', status = 'suspended', switches = 0, call = call}
    if pooled > 0 then
        fiber.coroutine = pool[pooled]
        pool[pooled] = nil
        pooled = pooled - 1
    else
        fiber.coroutine = create(run)
    end
    return fiber
end

-- The fiber that has ended is used again if there is one: only its coroutine has known it.
local function new_for_call(call)
    local fiber = spare
    if not fiber then return new(call) end
    spare = nil
    last_id = last_id + 1
    fiber.id, fiber.switches, fiber.call = last_id, 0, call
    return fiber
end

-- A fiber that starts when those before it have yielded.
function scheduler.new(call, ...)
    local fiber = new(call)
    know(fiber)
    fiber.arguments, fiber.is_left = {n = select('#', ...), ...}, true
    wake(fiber)
    return fiber
end

-- A fiber that starts at once.
function scheduler.start(call, ...)
    local fiber = new(call)
    know(fiber)
    know(current)
    if nesting < NESTING_MAX then
        switch_to(fiber, ...)
    else -- not on this stack, which is near its limit
        fiber.arguments = {n = select('#', ...), ...}
        current.status = 'suspended'
        yield(START, fiber)
    end
    return fiber
end

-- A fiber that starts at once for a call from outside. Returns it and, if it has ended, true, and true and results or
-- false and an error. If it has not, `on_end` is called at its end with it, and with these.
function scheduler.call(on_end, call, ...)
    know(current)
    local fiber = new_for_call(call)
    fiber.on_end = on_end
    return fiber, switch_to(fiber, ...)
end

-- -- waiting --

local function arm(wake_at)
    if wake_at < armed_at then
        armed_at = wake_at
        host.set_timer(math.max(wake_at - monotonic(), 0))
    end
end

-- Wait until the running fiber is woken, or for a time in seconds. Returns whether it was woken.
function scheduler.suspend(timeout)
    local fiber = scheduler.current()
    fiber.status = 'suspended'
    fiber.is_late = nil
    scheduler.on_suspend(fiber)
    if timeout and timeout < SECONDS_LONGEST then
        timers.add(fiber, monotonic() + timeout)
        arm(fiber.wake_at)
    end
    yield(SUSPEND)
    timers.remove(fiber)
    return not fiber.is_late
end

function scheduler.test_cancel()
    if current.is_cancelled then scheduler.raise_cancelled() end
end

function scheduler.cancel(fiber)
    fiber.is_cancelled = true
    if fiber == current then scheduler.test_cancel() else wake(fiber) end
end

-- Let others run, then go on.
function scheduler.yield()
    local fiber = scheduler.current()
    fiber.is_yielding = true
    wake(fiber)
    scheduler.suspend()
    fiber.is_yielding = nil
end

-- Wait for what a function of Python begins. It is called with a function that takes (true, values …) or
-- (false, error).
function scheduler.await(begin, ...)
    local fiber, answer = scheduler.current(), nil
    local function finish(...)
        answer = {n = select('#', ...), ...}
        wake(fiber)
    end
    local arguments = {n = select('#', ...), ...}
    scheduler.run_outside(function()
        local ok, why = pcall(begin, finish, unpack(arguments, 1, arguments.n))
        if not ok then finish(false, why) end
    end)
    while not answer do scheduler.suspend() end
    if not answer[1] then error(answer[2], 0) end
    return unpack(answer, 2, answer.n)
end

-- From now on, keep back fibers that have given way to others, or let them go on.
function scheduler.hold_yielding(is_held)
    local waiting = held
    held = is_held and {} or nil
    for _, fiber in ipairs(waiting or {}) do wake(fiber) end
end

-- Run no fiber any more: the process ends.
function scheduler.stop()
    is_stopped = true
end

-- -- what the event loop calls --

-- Run ready fibers for a while. Returns whether there are more.
local function run_rounds()
    local end_at = monotonic() + SECONDS_MAX
    for _ = 1, ROUNDS_MAX do
        if outside[1] then run_outside() end
        local last = tail
        while head <= last do
            local fiber = ready[head]
            ready[head] = nil
            head = head + 1
            fiber.is_ready = false
            if held and fiber.is_yielding then
                held[#held + 1] = fiber
            elseif not fiber.has_ended then
                if on_switch then on_switch() end
                scheduler.on_resume(fiber)
                start_waiting(fiber)
                scheduler.on_pause(fiber)
            end
            if is_stopped then return false end
            if head % 64 == 0 and monotonic() > end_at then last = 0 end
        end
        if head > tail then
            head, tail = 1, 0
            if not outside[1] then
                is_scheduled = false
                return false
            end
        end
        if monotonic() > end_at then return true end
    end
    return true
end

-- An error here, as of a lack of memory, is that of one fiber; the others go on.
function scheduler.run_ready()
    if is_stopped then return end
    local ok, has_more = pcall(run_rounds)
    if not ok then scheduler.on_uncaught(current, has_more) end
    if not ok or has_more then host.schedule() end
end

function scheduler.run_timers()
    armed_at = math.huge
    local now = monotonic()
    local first = timers.first()
    while first and first.wake_at <= now do
        timers.remove(first)
        first.is_late = true
        wake(first)
        first = timers.first()
    end
    if first then arm(first.wake_at) end
end

return scheduler
