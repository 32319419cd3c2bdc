-- Settings of console sessions: the language, and the format of the output. Those of a session of box end with it.
--
-- A session begins with YAML even if there is another default, as in Tarantool 2.6.
local settings = {default_format = {fmt = 'yaml'}}

local by_session = setmetatable({}, {__mode = 'k'})
local without_session = {}

local function session_storage()
    return box.session.storage
end

-- The table that lives as long as the session in which this code runs.
local function session_key()
    local ok, storage = pcall(session_storage) -- there may be no box, or no session
    return ok and type(storage) == 'table' and storage or without_session
end

-- The settings of this session, a table with `language` and `format`; `format` has the fields `fmt` and `opts`.
function settings.current()
    local key = session_key()
    local found = by_session[key]
    if not found then
        found = {language = 'lua', format = {fmt = 'yaml'}}
        by_session[key] = found
    end
    return found
end

return settings
