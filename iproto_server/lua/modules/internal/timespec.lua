-- The system's clocks, without a call of Python.
local ffi = require('ffi')

ffi.cdef[[
struct iproto_timespec { int64_t seconds; int64_t nanoseconds; };
int iproto_clock_gettime(int clock, struct iproto_timespec *time) __asm__("clock_gettime");
]]

local REALTIME, MONOTONIC = 0, 1
local time = ffi.new('struct iproto_timespec')
local library = ffi.C

local function seconds(clock)
    library.iproto_clock_gettime(clock, time)
    return tonumber(time.seconds) + tonumber(time.nanoseconds) / 1e9
end

local function nanoseconds(clock)
    library.iproto_clock_gettime(clock, time)
    return time.seconds * 1000000000LL + time.nanoseconds
end

return {
    realtime = function() return seconds(REALTIME) end,
    monotonic = function() return seconds(MONOTONIC) end,
    realtime64 = function() return nanoseconds(REALTIME) end,
    monotonic64 = function() return nanoseconds(MONOTONIC) end,
}
