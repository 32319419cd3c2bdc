-- Limits of Lua code: memory, time, and whether it is compiled.
local native = require('internal.native')

local limits = {}

-- Set limits, once; nil for none.
function limits.set(bytes, has_jit, seconds)
    if not has_jit then
        jit.off()
        jit.flush()
    end
    if bytes or seconds then require('internal.fibers.scheduler').set_on_switch(native.begin_fiber) end
    if seconds then native.set_time_limit(seconds) end
    if bytes then
        require('internal.garbage').limit(bytes)
        native.set_memory_limit(bytes)
    end
end

return limits
