-- The pause of the garbage collector. Where few objects are in use, a collection for as many new ones again would look at
-- all of them all the time: at least HEADROOM is allocated between two collections.
local HEADROOM = 16384 -- KiB
local PAUSE_MIN, PAUSE_MAX = 200, 2000 -- LuaJIT's own one; what it is at the most. In percent of the objects in use

local garbage = {}
local headroom, pause = HEADROOM, PAUSE_MIN

-- Runs at the end of each collection, until code of users sets a pause.
local function adapt(object)
    local wanted = math.floor(100 + 100 * headroom / collectgarbage('count'))
    wanted = math.min(math.max(wanted, PAUSE_MIN), PAUSE_MAX)
    local before = collectgarbage('setpause', wanted)
    if before ~= pause then
        collectgarbage('setpause', before)
        return
    end
    pause = wanted
    newproxy(object)
end

getmetatable(newproxy(true)).__gc = adapt

-- Let the collector not allocate more than a part of what the limit of memory, in bytes, leaves.
function garbage.limit(bytes)
    headroom = math.min(HEADROOM, bytes / 1024 / 8)
end

return garbage
