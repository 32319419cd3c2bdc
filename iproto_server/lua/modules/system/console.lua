-- The module console: statements that are typed in a terminal, come from a client, or are given as texts.
local completion = require('internal.console.completion')
local commands = require('internal.console.commands')
local evaluation = require('internal.console.evaluation')
local fiber = require('fiber')
local output = require('internal.console.output')
local remote = require('internal.console.remote')
local settings = require('internal.console.settings')
local terminal = require('internal.console.terminal')

local console = {}

-- Consoles ------------------------------------------------------------------------------------------------------------

local function do_nothing() end

-- What a console has unless it has its own. Its functions may be replaced.
local defaults = {
    running = false,
    delimiter = '',
    prompt = 'tarantool',
    ac = true,
    read = terminal.read,
    eval = function(_, line) return evaluation.eval(line) end,
    print = function(_, text) print(text) end,
    completion = function(_, ...) return console.completion_handler(...) end,
    on_start = do_nothing,
    on_client_disconnect = do_nothing,
}

local meta = {__index = defaults}
local local_console

-- The console that runs in this fiber.
local function this_console(message)
    return fiber.self().storage.console or error(message, 2)
end

-- Run statements until the input ends, or `running` is set to false.
local function run(self)
    local storage = fiber.self().storage
    local outer = storage.console
    storage.console = self
    self.running = true
    self:on_start()
    while self.running do
        local line = self:read()
        local text = type(line) ~= 'nil' and self:eval(line)
        if not text then break end
        self:print(text)
        fiber.testcancel()
    end
    storage.console = outer
end

local function history_file()
    return os.getenv('HOME') and os.getenv('HOME') .. '/.tarantool_history' or nil
end

function console.start()
    if local_console then error('console is already started') end
    local self = setmetatable({running = true, history_file = history_file()}, meta)
    local_console = self
    terminal.open(self)
    local ok, why = pcall(run, self)
    terminal.close()
    local_console = nil
    if not ok then error(why, 0) end
end

-- Functions for a console's own statements ----------------------------------------------------------------------------

function console.eval(line)
    return evaluation.eval(line)
end

function console.delimiter(...)
    local self = this_console('console.delimiter(): need existing console')
    if select('#', ...) == 0 or type((...)) == 'nil' then return self.delimiter end
    if type((...)) ~= 'string' then error('invalid delimiter') end
    self.delimiter = ...
end

function commands.set_delimiter(value)
    local self = fiber.self().storage.console
    if self and self.delimiter == '$EOF$' then error('Can not install delimiter for net box sessions', 0) end
    console.delimiter(value)
end

function console.ac(yes_no)
    this_console('console.ac(): need existing console').ac = not not yes_no
end

-- The mark at the end of each answer in the current format.
function console.eos()
    return output.end_mark(settings.current().format)
end

function console.completion_handler(text, first, last)
    return completion(tostring(text), (tonumber(last) or 0) - (tonumber(first) or 0))
end

-- Run the statements of this console in another server from now on, until one of them is `~.`.
function console.connect(place, opts)
    local self = this_console('console.connect() need existing console')
    local parsed = (type(place) == 'string' or type(place) == 'number') and require('uri').parse(tostring(place))
    if not parsed or type(parsed.service) == 'nil' then
        error('Usage: console.connect("[login:password@][host:]port")')
    end
    remote.connect(self, tostring(place), type(opts) == 'table' and tonumber(opts.timeout) or nil)
    return true
end

-- Hooks and the default format ----------------------------------------------------------------------------------------

local function hook(name)
    console[name] = function(call)
        if type(call) ~= 'nil' and type(call) ~= 'function' then
            error(('Wrong type of %s hook: %s'):format(name, type(call)))
        end
        defaults[name] = call or do_nothing
    end
end
hook('on_start')
hook('on_client_disconnect')

function console.get_default_output()
    return settings.default_format
end

function console.set_default_output(value)
    if type(value) == 'nil' then error('Nil output value passed') end
    local format, why = output.read_format(value)
    if not format then error(why) end
    settings.default_format = format
end

-- Consoles of clients -------------------------------------------------------------------------------------------------

local UNIX_DEFAULT = '/tmp/tarantool-console.sock'

function console.listen(place)
    local host, port
    if type(place) == 'nil' then
        host, port = 'unix/', UNIX_DEFAULT
    else
        local parsed = (type(place) == 'string' or type(place) == 'number') and require('uri').parse(tostring(place))
        if not parsed or type(parsed.service) == 'nil' then error('Usage: console.listen("[host:]port")') end
        host, port = parsed.host, parsed.service
    end
    local server, why = require('internal.console.text_server').listen(host, port, function(client)
        run(setmetatable(client, meta))
    end)
    if not server then
        local reason = why or require('errno').strerror()
        error(('failed to create server %s:%s: %s'):format(host or '', port, reason))
    end
    return server
end

return console
