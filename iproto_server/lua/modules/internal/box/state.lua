-- box.info, box.stat, box.slab, box.runtime and box.ctl.
--
-- Source: Tarantool reference, "Submodule box.info", "Submodule box.stat", "Submodule box.ctl".
local functions = require('internal.box.functions')

local function asked(name)
    return function(...) return functions.ask(name, ...) end
end

-- A table whose fields, and whose call, are what Python says at that time.
local function live(name, more)
    return setmetatable(more or {}, {
        __index = function(_, field)
            local value = functions.ask(name)[field]
            return value
        end,
        __call = asked(name),
        __serialize = asked(name),
    })
end

local ctl = {}

function ctl.wait_rw(timeout)
    return functions.ask('wait_read_only', false, timeout)
end

function ctl.wait_ro(timeout)
    return functions.ask('wait_read_only', true, timeout)
end

return {
    info = live('box.info', {memory = asked('box.info.memory'), gc = asked('box.info.gc')}),
    stat = live('box.stat', {net = live('box.stat.net'), reset = asked('box.stat.reset')}),
    slab = {info = asked('box.slab.info')},
    runtime = {info = asked('box.runtime.info')},
    ctl = ctl,
}
