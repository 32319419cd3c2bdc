-- The system's clocks, without a call of Python.
local ffi = require('ffi')

-- Names of its own, because Lua code may declare those of C as well.
ffi.cdef[[
struct iproto_clock_reading { int64_t seconds; int64_t nanoseconds; };
int iproto_read_clock(int clock, struct iproto_clock_reading *reading) __asm__("clock_gettime");
]]

local REALTIME, MONOTONIC, PROCESS, THREAD = 0, 1, 2, 3 -- Linux's numbers
local reading = ffi.new('struct iproto_clock_reading')
local library = ffi.C

local function seconds_of(number)
    return function()
        library.iproto_read_clock(number, reading)
        return tonumber(reading.seconds) + tonumber(reading.nanoseconds) / 1e9
    end
end

local function nanoseconds_of(number)
    return function()
        library.iproto_read_clock(number, reading)
        return ffi.cast('uint64_t', reading.seconds) * 1000000000ULL + reading.nanoseconds
    end
end

return {
    realtime = seconds_of(REALTIME),
    monotonic = seconds_of(MONOTONIC),
    proc = seconds_of(PROCESS),
    thread = seconds_of(THREAD),
    realtime64 = nanoseconds_of(REALTIME),
    monotonic64 = nanoseconds_of(MONOTONIC),
    proc64 = nanoseconds_of(PROCESS),
    thread64 = nanoseconds_of(THREAD),
}
