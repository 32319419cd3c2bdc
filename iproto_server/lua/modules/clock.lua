-- Tarantool's module clock: the clocks of POSIX, in seconds, and with 64 in their names in nanoseconds.
local ffi = require('ffi')

ffi.cdef[[
struct clock_reading { int64_t seconds; long nanoseconds; };
int clock_gettime(int, struct clock_reading *);
]]

local REALTIME, MONOTONIC, PROCESS, THREAD = 0, 1, 2, 3 -- Linux's numbers
local reading = ffi.new('struct clock_reading[1]')

local function seconds_of(number)
    return function()
        ffi.C.clock_gettime(number, reading)
        return tonumber(reading[0].seconds) + tonumber(reading[0].nanoseconds) / 1e9
    end
end

local function nanoseconds_of(number)
    return function()
        ffi.C.clock_gettime(number, reading)
        return ffi.cast('uint64_t', reading[0].seconds) * 1000000000ULL + reading[0].nanoseconds
    end
end

local clock = {
    realtime = seconds_of(REALTIME),
    monotonic = seconds_of(MONOTONIC),
    proc = seconds_of(PROCESS),
    thread = seconds_of(THREAD),
    realtime64 = nanoseconds_of(REALTIME),
    monotonic64 = nanoseconds_of(MONOTONIC),
    proc64 = nanoseconds_of(PROCESS),
    thread64 = nanoseconds_of(THREAD),
}
clock.time, clock.time64 = clock.realtime, clock.realtime64

-- Call a function. Returns a table with the seconds of this thread that it took, and its results.
function clock.bench(fun, ...)
    local start = clock.thread()
    local results = {0, fun(...)}
    results[1] = clock.thread() - start
    return results
end

return clock
