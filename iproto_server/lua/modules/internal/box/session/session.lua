-- box.session: the session that the code acts for.
--
-- Source: Tarantool reference, "Submodule box.session".
local scheduler = require('internal.fibers.scheduler')
local functions = require('internal.box.functions')
local fiber_triggers = require('internal.box.session.fiber_triggers')
local failure = require('internal.box.failure')
local storages = require('internal.box.session.storages')
local output = require('internal.console.output')
local settings = require('internal.console.settings')

-- The console of a client on the text port that runs in this fiber.
local function client_console()
    local storage = scheduler.current().storage
    local console = storage and storage.console
    return console and console.client and console
end

-- What the functions return before `box.cfg`.
local BEFORE = {
    id = function() return 1 end,
    uid = function() return 1 end,
    euid = function() return 1 end,
    user = function() return 'admin' end,
    effective_user = function() return 'admin' end,
    type = function() return client_console() and 'console' or 'background' end,
    sync = function() return 0 end,
    peer = function() return (client_console() or {}).peer end,
    exists = function(id) return id == 1 end,
    push = function() return nil, failure.of_host(5, "Session 'background' does not support push()") end,
}

local session = {}

for _, name in ipairs{'id', 'uid', 'euid', 'user', 'effective_user', 'type', 'sync', 'peer', 'exists', 'push'} do
    local full = 'box.session.' .. name
    session[name] = function(...)
        if functions.is_attached then return functions.ask(full, ...) end
        return BEFORE[name](...)
    end
end

for _, name in ipairs{'on_connect', 'on_disconnect', 'on_auth'} do
    session[name] = function(...)
        return fiber_triggers.set(name, ...)
    end
end

function session.su(user, call, ...)
    if user == nil then error('session.su(): bad arguments', 2) end
    if call == nil then return functions.ask('box.session.su', user) end
    if type(call) ~= 'function' then
        error(("bad argument #2 to '?' (function expected, got %s)"):format(type(call)), 2)
    end
    local before = functions.session()
    functions.ask('session_su', user)
    local function back(ok, ...)
        functions.use_session(before)
        if not ok then error((...), 0) end
        return ...
    end
    return back(pcall(call, ...))
end

local push = session.push

function session.push(...)
    local console = client_console()
    if not console then return push(...) end
    if select('#', ...) ~= 1 then error('Usage: box.session.push(data)', 0) end
    console:print(output.pushed(settings.current().format, (...)))
    return true
end

function session.id()
    return functions.is_attached and functions.session_id() or BEFORE.id()
end

return setmetatable(session, {
    __index = function(_, name)
        if name == 'storage' then return storages.of(session.id()) end
    end,
})
