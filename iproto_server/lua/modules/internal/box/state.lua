-- box.info, box.stat, box.slab, box.runtime and box.ctl.
--
-- Source: Tarantool reference, "Submodule box.info", "Submodule box.stat", "Submodule box.ctl".
local functions = require('internal.box.functions')
local triggers = require('internal.box.space.triggers')
local plain = require('internal.box.plain')
local conditions = require('internal.fibers.condition')
local failure = require('internal.box.failure')
local monotonic = require('internal.fibers.scheduler').monotonic

local function asked(name)
    return function(...) return plain.table(functions.ask(name, ...)) end
end

-- A table whose fields, and whose call, are what Python says at that time. Some of them are fixed.
local function live(name, more, fixed)
    local function all()
        local fields = plain.table(functions.ask(name))
        for field, value in pairs(fixed or {}) do fields[field] = value end
        return fields
    end
    return setmetatable(more or {}, {
        __index = function(_, field) return all()[field] end,
        __call = all,
        __serialize = all,
    })
end

local ctl = {}

-- Set, replace or delete a function that runs before the process ends. Returns the functions without arguments.
function ctl.on_shutdown(new, old)
    local hooks = require('internal.program.shutdown').hooks
    if new == nil and old == nil then return table.copy(hooks) end
    triggers.check(new, old)
    if old == nil then
        table.insert(hooks, 1, new)
        return new
    end
    for place, hook in ipairs(hooks) do
        if hook == old then
            if new == nil then table.remove(hooks, place) else hooks[place] = new end
            return new
        end
    end
    error('trigger reset: Trigger is not found', 2)
end

local changed = conditions.new()

-- Called whenever the instance has become read-only or writable.
local function notify()
    changed:broadcast()
end

local function wait_until(is_read_only, timeout)
    local end_at = timeout and monotonic() + timeout
    -- Before box.cfg the instance is neither read-only nor writable; while it starts, it is read-only.
    local was_read_only = not functions.is_attached and is_read_only
    while not functions.is_attached or not was_read_only and functions.ask('is_read_only') ~= is_read_only do
        local left = end_at and end_at - monotonic()
        if left and left <= 0 or not changed:wait(left) then
            failure.timed_out()
        end
    end
end

function ctl.wait_rw(timeout)
    wait_until(false, timeout)
end

function ctl.wait_ro(timeout)
    wait_until(true, timeout)
end

return {
    info = live('box.info', {memory = asked('box.info.memory'), gc = asked('box.info.gc')}, {version = _TARANTOOL}),
    stat = live('box.stat', {net = live('box.stat.net'), reset = asked('box.stat.reset')}),
    backup = {start = asked('box.backup.start'), stop = function() functions.ask('box.backup.stop') end},
    slab = {info = asked('box.slab.info')},
    runtime = {info = asked('box.runtime.info')},
    ctl = ctl,
    notify = notify,
}
