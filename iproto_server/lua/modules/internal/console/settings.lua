-- Settings of consoles: the language, and the format of the output. They end with the console, or with the session of a
-- client that calls `console.eval`.
--
-- A session begins with YAML even if there is another default, as in Tarantool 2.6.
local fiber = require('fiber')

local settings = {default_format = {fmt = 'yaml'}}

local by_session = setmetatable({}, {__mode = 'k'})
local without_session = {}

local function session_storage()
    return box.session.storage
end

-- The table that lives as long as the console or the session in which this code runs.
local function session_key()
    local console = fiber.self().storage.console
    if console then return console end
    local ok, storage = pcall(session_storage) -- there may be no box, or no session
    return ok and type(storage) == 'table' and storage or without_session
end

-- The settings, a table with `language` and `format`; `format` has the fields `fmt` and `opts`.
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
