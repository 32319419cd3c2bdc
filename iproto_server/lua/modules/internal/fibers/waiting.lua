-- Fibers that wait for one thing, in order. Each is in one list at most.
local scheduler = require('internal.fibers.scheduler')

local waiting = {}

function waiting.list()
    return {first = 1, last = 0}
end

function waiting.is_empty(list)
    while list.first <= list.last and not list[list.first] do
        list[list.first] = nil
        list.first = list.first + 1
    end
    return list.first > list.last
end

function waiting.count(list)
    local count = 0
    for place = list.first, list.last do
        if list[place] then count = count + 1 end
    end
    return count
end

-- Remove the first fiber of a list. Returns nil if there is none.
function waiting.take(list)
    if waiting.is_empty(list) then
        list.first, list.last = 1, 0
        return nil
    end
    local fiber = list[list.first]
    list[list.first] = nil
    list.first = list.first + 1
    return fiber
end

-- Wake the first fiber of a list, with a value that its `wait` returns. Returns whether there was one.
function waiting.wake(list, value)
    local fiber = waiting.take(list)
    if not fiber then return false end
    fiber.is_given, fiber.value = true, value
    scheduler.wake(fiber)
    return true
end

local function enter(list)
    local fiber = scheduler.current()
    list.last = list.last + 1
    list[list.last] = fiber
    fiber.is_given, fiber.value = false, nil
    return fiber, list.last
end

-- Leave a list, whose empty places at both ends go.
local function leave(list, fiber, place)
    if list[place] == fiber then list[place] = false end
    while list.last >= list.first and not list[list.last] do
        list[list.last] = nil
        list.last = list.last - 1
    end
    waiting.is_empty(list)
    local is_given, value = fiber.is_given, fiber.value
    fiber.is_given, fiber.value = nil, nil
    return is_given, value
end

-- Wait in a list until the fiber is woken, by whatever. Returns false if it was not in time.
function waiting.wait_once(list, timeout)
    local fiber, place = enter(list)
    local is_woken = scheduler.suspend(timeout)
    leave(list, fiber, place)
    return is_woken
end

-- Wait in a list. Returns whether the fiber was taken from it, and the value that it was given. It may be cancelled.
function waiting.wait(list, timeout)
    local fiber, place = enter(list)
    local end_at = timeout and scheduler.monotonic() + timeout
    repeat
        local is_woken = scheduler.suspend(end_at and end_at - scheduler.monotonic())
    until fiber.is_given or not is_woken or fiber.is_cancelled
    return leave(list, fiber, place)
end

return waiting
