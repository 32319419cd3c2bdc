-- Tarantool's module fiber.
-- On purpose different: no time or memory of single fibers is measured, so `info` and `top` show 0.
--
-- Source: https://www.tarantool.io/en/doc/2.6/reference/reference_lua/fiber/
local errors = require('internal.box.values.error')
local scheduler = require('internal.fibers.scheduler')
local time = require('internal.clocks')
local userdata = require('internal.userdata')
local channels = require('internal.fibers.channel')
local conditions = require('internal.fibers.condition')

local NAME_MAX = 255
local fiber, methods = {}, {}

-- -- fibers as objects --

local function living(state)
    if state.status == 'dead' then error('the fiber is dead', 3) end
    return state
end

local wrap, state_of, meta = userdata.kind(methods, function(state)
    return 'fiber: ' .. living(state).id
end)
meta.__metatable = 'fiber'
meta.__serialize = function(object)
    local state = living(state_of(object))
    return {id = state.id, name = state.name, status = state.status}
end
meta.__index = function(object, name)
    if name ~= 'storage' then return methods[name] end
    local state = living(state_of(object))
    state.storage = state.storage or {}
    return state.storage
end

-- The error of a value that is no fiber, at the position of the code that has called the function of the module.
-- `level` is that function's, as for `error`.
local function refuse(object, level)
    local name = debug.getinfo(level, 'n').name or '?'
    local kind = object == nil and 'no value' or type(object)
    error(("bad argument #1 to '%s' (fiber expected, got %s)"):format(name, kind), level + 1)
end

-- The state of a fiber that is given as an object or by its number.
local function given(object)
    local state = state_of(object)
    if state then return state end
    if type(object) ~= 'number' then refuse(object, 3) end
    return scheduler.all()[object] or error('the fiber is dead', 3)
end

-- Given, or the running one.
local function given_or_current(...)
    if select('#', ...) == 0 then return scheduler.current() end
    return given((...))
end

-- -- creation --

local function new_by(make, usage)
    return function(call, ...)
        if type(call) ~= 'function' then error(usage .. '(function, ...): bad arguments', 2) end
        return wrap(make(call, ...))
    end
end

fiber.create = new_by(scheduler.start, 'fiber.create')
fiber.new = new_by(scheduler.new, 'fiber.new')

function fiber.self()
    return wrap(scheduler.current())
end

function fiber.find(id)
    if type(id) ~= 'number' then error('fiber.find(id): bad arguments', 2) end
    local state = scheduler.all()[id]
    return state and wrap(state) or nil
end

-- -- waiting --

function fiber.sleep(delay)
    if type(delay) ~= 'number' then error('fiber.sleep(delay): bad arguments', 2) end
    if delay > 0 then scheduler.suspend(delay) else scheduler.yield() end
    scheduler.test_cancel()
end

function fiber.yield()
    scheduler.yield()
    scheduler.test_cancel()
end

function fiber.testcancel()
    scheduler.test_cancel()
end

-- -- methods, each of which is a function of the module, too --

function methods.id(...)
    return given_or_current(...).id
end

-- A number is a fiber of the module's function, but no status of one, as in Tarantool.
function methods.status(...)
    if select('#', ...) == 0 then return 'running' end
    local object = ...
    local state = state_of(object)
    if not state then refuse(object, 2) end
    return state.status
end

local function check_name(name, options)
    name = tostring(name)
    if #name <= NAME_MAX then return name end
    if type(options) == 'table' and options.truncate then return name:sub(1, NAME_MAX) end
    error('Fiber name is too long', 3)
end

function methods.name(object, name, options)
    local state = object
    if object == nil or (not state_of(object) and type(object) ~= 'number') then
        state, name, options = scheduler.current(), object, name
    elseif type(object) == 'number' and name == nil then
        state, name = scheduler.current(), object
    else
        state = living(given(object))
    end
    if name == nil then return state.name end
    state.name = check_name(name, options)
end

function methods.wakeup(object)
    scheduler.wake(living(given(object)))
end

function methods.cancel(object)
    scheduler.cancel(living(given(object)))
end

function methods.set_joinable(object, is_joinable)
    if type(is_joinable) ~= 'boolean' then error('fiber.set_joinable(id, yesno): bad arguments', 2) end
    living(given(object)).is_joinable = is_joinable
end

-- What a fiber has raised, as an error of box.
local function error_object(value)
    if errors.is(value) then return value end
    local has_text, text = pcall(tostring, value)
    return errors.new_error(errors.public.PROC_LUA, has_text and text or type(value), 'LuajitError')
end

function methods.join(object)
    local state = given(object)
    living(state)
    if not state.is_joinable then error('the fiber is not joinable', 2) end
    while not state.has_ended do
        state.joiners = state.joiners or {}
        local waiting = scheduler.current()
        table.insert(state.joiners, waiting)
        waiting.is_joining = true
        scheduler.suspend()
        waiting.is_joining = nil
        scheduler.test_cancel()
    end
    local result = state.result
    scheduler.forget(state)
    if not result then error('the fiber is dead', 2) end
    state.result = nil
    if not result[1] then return false, error_object(result[2]) end
    return unpack(result, 1, result.n)
end

for name, method in pairs(methods) do fiber[name] = method end
fiber.kill = function(...) return methods.cancel(...) end

-- -- information --

function fiber.info()
    local found = {}
    for id, state in pairs(scheduler.all()) do
        found[id] = {
            fid = id, name = state.name, csw = state.switches, time = 0,
            memory = {used = 0, total = 0}, backtrace = {},
        }
    end
    return found
end

local measures_time = false

function fiber.top_enable() measures_time = true end

function fiber.top_disable() measures_time = false end

function fiber.top()
    if not measures_time then error('fiber.top() is disabled. Enable it with fiber.top_enable() first', 2) end
    local times = {}
    for id, state in pairs(scheduler.all()) do times[id .. '/' .. state.name] = {instant = 0, average = 0, time = 0} end
    return {cpu = times, cpu_misses = 0}
end

fiber.time, fiber.clock = time.realtime, time.monotonic
fiber.time64 = function() return time.realtime64() / 1000 end
fiber.clock64 = function() return time.monotonic64() / 1000 end
fiber.channel, fiber.cond = channels.new, conditions.new

return fiber
