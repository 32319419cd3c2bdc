-- Tarantool's module clock: the clocks of POSIX, in seconds, and with 64 in their names in nanoseconds.
local clock = {}
for name, read in pairs(require('internal.clocks')) do clock[name] = read end
clock.time, clock.time64 = clock.realtime, clock.realtime64

-- Call a function. Returns a table with the seconds of this thread that it took, and its results.
function clock.bench(fun, ...)
    local start = clock.thread()
    local results = {0, fun(...)}
    results[1] = clock.thread() - start
    return results
end

return clock
