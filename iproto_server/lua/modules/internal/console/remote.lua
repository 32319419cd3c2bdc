-- A console whose statements run in another server, over its binary port or its text port.
local evaluation = require('internal.console.evaluation')
local output = require('internal.console.output')
local settings = require('internal.console.settings')

local remote = {}

local DISCONNECT = '~.'
local EVAL = 'return require("console").eval(...)'
local COMPLETE = 'return require("console").completion_handler(...)'

local function ask(connection, line)
    local transport = connection._transport
    if not transport.is_text then return connection:eval(EVAL, {line}) end
    local text, failure = transport:perform_line(nil, line)
    if failure then error(failure, 0) end
    return text
end

-- Run statements here again.
local function leave(self)
    self.remote:close()
    self.remote, self.eval, self.prompt, self.completion = nil, nil, nil, nil
end

local function eval(self, line)
    if line == nil then return nil end
    if line == DISCONNECT then
        leave(self)
        return ''
    end
    local ok, text = pcall(ask, self.remote, line)
    if ok then return text end
    if not self.remote:is_connected() then
        leave(self)
        self:on_client_disconnect()
    end
    return output.failure(settings.current().format, text)
end

local function complete(self, text, first, last)
    if not self.remote._transport.is_text then return self.remote:eval(COMPLETE, {text, first, last}) end
end

-- Connect a console to another server. Raises an error if that fails, or if the user may not run statements there.
function remote.connect(self, place, timeout)
    local connection = require('net.box').connect(place, {wait_connected = timeout, is_console_allowed = true})
    local ok, why = pcall(function()
        if not connection.protocol then error('Connection is not established', 0) end
        if not connection._transport.is_text then connection:eval('return true') end
    end)
    if not ok then
        connection:close()
        error(why, 0)
    end
    self.remote, self.prompt = connection, ('%s:%s'):format(connection.host or '', connection.port)
    self.eval, self.completion = eval, complete
end

return remote
