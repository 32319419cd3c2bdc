-- box.session: the session that the code acts for.
--
-- Source: Tarantool reference, "Submodule box.session".
local functions = require('internal.box.functions')
local fiber_triggers = require('internal.box.session.fiber_triggers')
local failure = require('internal.box.failure')
local storages = require('internal.box.session.storages')

-- What the functions return before `box.cfg`.
local BEFORE = {
    id = function() return 1 end,
    uid = function() return 1 end,
    euid = function() return 1 end,
    user = function() return 'admin' end,
    effective_user = function() return 'admin' end,
    type = function() return 'background' end,
    sync = function() return 0 end,
    peer = function() return nil end,
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

function session.id()
    return functions.is_attached and functions.session_id() or BEFORE.id()
end

return setmetatable(session, {
    __index = function(_, name)
        if name == 'storage' then return storages.of(session.id()) end
    end,
})
