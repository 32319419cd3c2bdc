-- Sessions of consoles that listen: each client has one, with the administrator's rights. One whose console was opened
-- before `box.cfg` begins with the next statement.
local scheduler = require('internal.fibers.scheduler')
local functions = require('internal.box.functions')
local fiber_triggers = require('internal.box.session.fiber_triggers')
local text_server = require('internal.console.text_server')

local function open(console)
    if console.session or not functions.is_attached then return end
    console.session = functions.ask('open_console', console.peer)
    functions.use_session((functions.session(console.session)))
    scheduler.is_in_session = true
end

local function close(console)
    if console.session and functions.is_attached then functions.ask('close_console', console.session) end
    scheduler.is_in_session = false
end

-- As in Tarantool, `on_disconnect` does not run if another trigger has refused the client.
function text_server.in_session(console, run)
    open(console)
    local ok, why = pcall(function()
        fiber_triggers.run_all('on_connect')
        fiber_triggers.run_all('on_auth', 'admin', true)
        run()
        fiber_triggers.run_all('on_disconnect')
    end)
    close(console)
    if not ok then error(why, 0) end
end

text_server.before_statement = open
