-- Tarantool's module clock: the clocks of POSIX, in seconds, and with 64 in their names in nanoseconds.
local ffi = require('ffi')

-- A name of its own, because Lua code may declare the C function as well.
ffi.cdef[[int iproto_read_clock(int clock, void *reading) __asm__("clock_gettime");]]

local REALTIME, MONOTONIC, PROCESS, THREAD = 0, 1, 2, 3 -- Linux's numbers
local reading = ffi.new('struct { int64_t seconds; long nanoseconds; }')

local function seconds_of(number)
    return function()
        ffi.C.iproto_read_clock(number, reading)
        return tonumber(reading.seconds) + tonumber(reading.nanoseconds) / 1e9
    end
end

local function nanoseconds_of(number)
    return function()
        ffi.C.iproto_read_clock(number, reading)
        return ffi.cast('uint64_t', reading.seconds) * 1000000000ULL + reading.nanoseconds
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
