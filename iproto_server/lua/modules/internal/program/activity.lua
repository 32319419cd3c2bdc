-- Whether fibers keep the process alive when its script has ended, as in Tarantool: those do that wait for a time, or for
-- something with a timeout, even an endless one; those that wait for the end of another fiber do not.
local scheduler = require('internal.fibers.scheduler')

local ROUNDS_MAX = 1000 -- of fibers that wake each other for ever

local activity = {}

-- Let fibers run that have been woken or are new, but not those that have given way to others.
function activity.let_run()
    scheduler.hold_yielding(true)
    for _ = 1, ROUNDS_MAX do
        local has_ready = false
        for _, fiber in pairs(scheduler.all()) do
            has_ready = has_ready or (fiber.is_ready and not fiber.is_yielding)
        end
        if not has_ready then break end
        scheduler.wake(scheduler.current())
        scheduler.suspend()
    end
    scheduler.hold_yielding(false)
end

-- Whether fibers other than the running one keep the process alive.
function activity.is_any()
    activity.let_run()
    local own = scheduler.current()
    for _, fiber in pairs(scheduler.all()) do
        if fiber ~= own and not fiber.is_joining and not fiber.has_ended then return true end
    end
    return false
end

return activity
