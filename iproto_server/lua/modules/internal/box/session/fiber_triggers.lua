-- Triggers that Python calls outside of fibers: each call runs in a fiber of its own, which may wait.
local scheduler = require('internal.fibers.scheduler')
local triggers = require('internal.box.space.triggers')

-- What Python has in place of a function, and the reverse.
local wrappers = setmetatable({}, {__mode = 'k'})
local wrapped = setmetatable({}, {__mode = 'v'})

local function ended(fiber, ok, why)
    if not ok then scheduler.on_uncaught(fiber, why) end
end

-- Call a function in a fiber, as the current session. An error is raised, or logged if the fiber has waited.
local function call(trigger, ...)
    local before = scheduler.is_in_session
    scheduler.is_in_session = true
    local _, has_ended, ok, why = scheduler.call(ended, trigger, ...)
    scheduler.is_in_session = before
    if has_ended and not ok then error(why, 0) end
end

local function wrapper_of(trigger)
    if type(trigger) ~= 'function' then return trigger end
    local wrapper = wrappers[trigger]
    if not wrapper then
        wrapper = function(...) return call(trigger, ...) end
        wrappers[trigger], wrapped[wrapper] = wrapper, trigger
    end
    return wrapper
end

local fiber_triggers = {}

-- As `triggers.set`.
function fiber_triggers.set(ask, new, old)
    local found = triggers.set(ask, wrapper_of(new), wrapper_of(old))
    if type(found) ~= 'table' then return new end
    for place, each in ipairs(found) do found[place] = wrapped[each] or each end
    return found
end

return fiber_triggers
