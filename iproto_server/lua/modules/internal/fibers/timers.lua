-- A binary heap of fibers that wait for a time, the earliest first. A fiber is in it once at most: its field `timer` is
-- its place, and `wake_at` its time.
local heap, size = {}, 0

local function put(fiber, place)
    heap[place] = fiber
    fiber.timer = place
end

local function up(fiber, place)
    while place > 1 do
        local above = heap[math.floor(place / 2)]
        if above.wake_at <= fiber.wake_at then break end
        put(above, place)
        place = math.floor(place / 2)
    end
    put(fiber, place)
end

local function down(fiber, place)
    while 2 * place <= size do
        local below = 2 * place
        if below < size and heap[below + 1].wake_at < heap[below].wake_at then below = below + 1 end
        if heap[below].wake_at >= fiber.wake_at then break end
        put(heap[below], place)
        place = below
    end
    put(fiber, place)
end

local timers = {}

function timers.add(fiber, wake_at)
    fiber.wake_at = wake_at
    size = size + 1
    up(fiber, size)
end

-- Remove a fiber that may be in the heap.
function timers.remove(fiber)
    local place = fiber.timer
    if not place then return end
    local last = heap[size]
    heap[size] = nil
    size = size - 1
    fiber.timer = nil
    if last == fiber then return end
    if place > 1 and last.wake_at < heap[math.floor(place / 2)].wake_at then up(last, place) else down(last, place) end
end

-- The earliest fiber; nil if none waits.
function timers.first()
    return heap[1]
end

function timers.count()
    return size
end

return timers
