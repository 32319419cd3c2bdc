-- box.session: the session that the code acts for.
--
-- Source: Tarantool reference, "Submodule box.session".
local functions = require('internal.box.functions')
local in_fibers = require('internal.box.session.fiber_triggers')
local storages = require('internal.box.session.storages')

local session = {}

for _, name in ipairs{'id', 'uid', 'euid', 'user', 'effective_user', 'type', 'sync', 'peer', 'exists', 'push'} do
    local full = 'box.session.' .. name
    session[name] = function(...) return functions.ask(full, ...) end
end

for _, name in ipairs{'on_connect', 'on_disconnect', 'on_auth'} do
    session[name] = function(...)
        return in_fibers.set(function(...) return functions.ask('session', name, ...) end, ...)
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

session.id = functions.session_id

return setmetatable(session, {
    __index = function(_, name)
        if name == 'storage' then return storages.of(functions.session_id()) end
    end,
})
