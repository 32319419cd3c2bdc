-- Triggers of sessions: those of an event run one after the other in a fiber, in the session of a client, with the
-- administrator's rights when it begins or ends. Python calls one function for all of them. They can be set before `box.cfg`.
--
-- Source: Tarantool reference, "Session triggers".
local scheduler = require('internal.fibers.scheduler')
local functions = require('internal.box.functions')
local triggers = require('internal.box.space.triggers')

local AS_ADMIN = {on_connect = true, on_disconnect = true}

local lists = {}      -- the functions of an event, the newest one first
local registered = {} -- what Python calls for an event

local fiber_triggers = {}

local function ended(fiber, ok, why)
    if not ok then scheduler.on_uncaught(fiber, why) end
end

local function run_all(list, ...)
    for _, trigger in ipairs(list) do trigger(...) end
end

-- Run the triggers of an event. An error is raised, or logged if the fiber has waited.
local function run(name, ...)
    local before = scheduler.is_in_session
    scheduler.is_in_session = true
    if AS_ADMIN[name] then functions.ask('session_su', 'admin') end
    local _, has_ended, ok, why = scheduler.call(ended, run_all, table.copy(lists[name]), ...)
    if AS_ADMIN[name] then functions.ask('session_su') end
    scheduler.is_in_session = before
    if has_ended and not ok then error(why, 0) end
end

-- Tell Python whether the event has triggers.
local function register(name)
    if not functions.is_attached then return end
    local has_some = lists[name][1] ~= nil
    if has_some and not registered[name] then
        registered[name] = function(...) return run(name, ...) end
        functions.ask('session', name, registered[name])
    elseif not has_some and registered[name] then
        functions.ask('session', name, nil, registered[name])
        registered[name] = nil
    end
end

-- Run all triggers of an event in this fiber and its session, those of Lua first.
function fiber_triggers.run_all(name, ...)
    run_all(table.copy(lists[name] or {}), ...)
    if functions.is_attached then functions.ask('run_session_triggers', name, registered[name] or box.NULL, ...) end
end

local function place_of(list, call)
    for place, each in ipairs(list) do
        if each == call then return place end
    end
    error('trigger reset: Trigger is not found', 0)
end

-- Set, replace or delete a trigger of an event, or list its triggers, as `triggers.set`.
function fiber_triggers.set(name, ...)
    local list = lists[name] or {}
    lists[name] = list
    return triggers.set(function(...)
        if select('#', ...) == 0 then return unpack(list) end
        local new, old = ...
        local place = old and place_of(list, old)
        if place and new then
            list[place] = new
        elseif place then
            table.remove(list, place)
        else
            table.insert(list, 1, new)
        end
        register(name)
        return new
    end, ...)
end

-- Tell Python of the triggers that were set before there was a database.
function fiber_triggers.attach()
    registered = {}
    for name in pairs(lists) do register(name) end
end

return fiber_triggers
