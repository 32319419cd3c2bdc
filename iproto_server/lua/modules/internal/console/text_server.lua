-- Consoles that listen: the text protocol. A statement is what ends with the delimiter and a line break.
local evaluation = require('internal.console.evaluation')
local fiber = require('fiber')
local socket = require('socket')

local text_server = {}

local BACKLOG_TIMEOUT = 10 -- seconds

-- The two lines that a client gets first, 64 bytes each.
local function greeting()
    local version = require('tarantool').version:match('^[^-]*')
    return ('%-63s\n%-63s\n'):format(
        ('Tarantool %s (Lua console)'):format(version), "type 'help' for interactive help"
    )
end

-- Run a function in a session of its own, whose client has an address. `box.session` replaces this.
function text_server.in_session(_, run)
    return run()
end

-- Called before each statement of a console. `box.session` replaces this.
function text_server.before_statement() end

-- A carriage return ends a statement as a line break does, so both together end another, empty one, as in Tarantool.
local function read(self)
    local delimiter = self.delimiter
    local text = self.client:read{delimiter = {delimiter .. '\n', delimiter .. '\r'}}
    if text == nil or not text:find('[\n\r]$') then return nil end
    return text:sub(1, -#delimiter - 2)
end

local function eval(self, line)
    text_server.before_statement(self)
    return evaluation.eval(line)
end

local function print(self, text)
    if not self.client:write(text) then self.running = false end
end

-- Listen at a place. `serve` is called with the table of a new console, in a fiber of its own.
function text_server.listen(host, port, serve)
    local function handle(client, peer)
        local shown = peer and ('%s:%s'):format(peer.host, peer.port) or 'unix/:'
        fiber.name(('console/%s'):format(shown), {truncate = true})
        if not client:write(greeting()) then return end
        local console = {client = client, peer = shown, read = read, eval = eval, print = print, running = true}
        text_server.in_session(console, function() serve(console) end)
    end
    return socket.tcp_server(host, port, {handler = handle, name = 'console'}, BACKLOG_TIMEOUT)
end

return text_server
