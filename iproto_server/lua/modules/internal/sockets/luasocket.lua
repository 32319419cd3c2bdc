-- Sockets with the interface of the library LuaSocket: https://lunarmodules.github.io/luasocket/tcp.html.
-- A table with the state is shared by the three kinds of objects: master, client and server.
local errno = require('errno')
local scheduler = require('internal.fibers.scheduler')
local constants = require('internal.sockets.constants')
local object = require('internal.sockets.object')
local methods = require('internal.sockets.methods')
local connections = require('internal.sockets.connections')
local resolver = require('internal.sockets.resolver')

local EAGAIN, EIO, ETIMEDOUT = 11, 5, 110
local RECEIVE_USAGE = 'Usage: socket:receive(pattern, [, prefix])'
local OPTIONS = {
    keepalive = {'SOL_SOCKET', 'SO_KEEPALIVE'}, reuseaddr = {'SOL_SOCKET', 'SO_REUSEADDR'},
    ['tcp-nodelay'] = {'tcp', 'TCP_NODELAY'},
}

-- -- what all kinds have --

local common = {}

local function outcome(socket, is_done)
    if is_done then return 1 end
    return nil, methods.error(socket)
end

function common.close(socket)
    return outcome(socket, methods.close(socket))
end

local function address_parts(socket, address)
    if not address then return outcome(socket, false) end
    local family = address.family:match('^AF_(.*)$'):lower()
    return address.host, tostring(address.port), family
end

function common.getsockname(socket) return address_parts(socket, methods.name(socket)) end
function common.getpeername(socket) return address_parts(socket, methods.peer(socket)) end

function common.settimeout(socket, seconds)
    object.descriptor(socket)
    seconds = tonumber(seconds)
    socket.timeout = seconds and seconds >= 0 and seconds or nil
    return 1
end

function common.setoption(socket, name, value)
    object.descriptor(socket)
    if name == 'linger' then
        if type(value) ~= 'table' then value = {on = value} end
        return outcome(socket, methods.linger(socket, value.on and true or false, value.timeout) ~= nil)
    end
    local option = OPTIONS[name]
    if not option then error(('Unknown socket option name: %s'):format(tostring(name))) end
    return outcome(socket, methods.setsockopt(socket, option[1], option[2], value))
end

-- A kind of objects: `extra` are its methods, beside those that are common.
local function kind(name, extra)
    for method, call in pairs(common) do
        if extra[method] == nil then extra[method] = call end
    end
    return {
        __index = extra,
        __serialize = object.metatable.__serialize,
        __tostring = function(socket) return ('tcp{%s}: fd=%d'):format(name, object.descriptor(socket)) end,
    }
end

-- -- clients --

local client_methods = {}

-- A place in a text as `string.sub` takes it, within the text.
local function place_in(text, place, otherwise)
    if place == nil then return otherwise end
    return place < 0 and #text + place + 1 or place
end

function client_methods.send(socket, data, first, last)
    if first == nil and last == nil then
        local sent = methods.write(socket, data, socket.timeout)
        if sent then return sent end
        return outcome(socket, false)
    end
    local from, to = math.max(place_in(data, first, 1), 1), math.min(place_in(data, last, #data), #data)
    if not methods.write(socket, data:sub(from, to), socket.timeout) then return outcome(socket, false) end
    return math.max(to, from - 1)
end

-- Read a number of bytes. What comes before the end of the stream is returned behind the error.
local function receive_bytes(socket, size, prefix)
    local data = methods.read(socket, size, socket.timeout)
    if data == nil then return outcome(socket, false) end
    if #data ~= size then return nil, 'closed', data end
    return prefix .. data
end

local function receive_line(socket, prefix)
    local line = methods.read(socket, '\n', socket.timeout)
    if line == nil then return outcome(socket, false) end
    if line:sub(-1) ~= '\n' then return nil, 'closed', line end
    return prefix .. line:sub(1, -2)
end

-- Read up to the end of the stream. What comes in time is returned.
local function receive_all(socket, prefix)
    local parts = {prefix}
    local end_at = socket.timeout and scheduler.monotonic() + socket.timeout
    repeat
        local part = methods.read(socket, {chunk = 1}, end_at and math.max(end_at - scheduler.monotonic(), 0))
        if part then
            parts[#parts + 1] = part .. (socket.rbuf:take(socket.rbuf:count()))
        elseif socket._errno ~= ETIMEDOUT then
            return outcome(socket, false)
        end
    until not part or part == ''
    local data = table.concat(parts)
    if data == '' then return nil, 'closed', '' end
    return data
end

function client_methods.receive(socket, pattern, prefix)
    object.descriptor(socket)
    prefix = prefix or ''
    if type(pattern) == 'number' then
        return receive_bytes(socket, pattern, prefix)
    elseif pattern == nil or pattern == '*l' then
        return receive_line(socket, prefix)
    elseif pattern == '*a' then
        return receive_all(socket, prefix)
    end
    error(RECEIVE_USAGE)
end

local HOW = {send = 'W', receive = 'R'}

function client_methods.shutdown(socket, how)
    return outcome(socket, methods.shutdown(socket, HOW[how] or 'RW'))
end

local client = kind('client', client_methods)

-- -- servers --

local server_methods = {}

function server_methods.accept(socket)
    local end_at = socket.timeout and scheduler.monotonic() + socket.timeout
    while true do
        local accepted = methods.accept(socket)
        if accepted then return setmetatable(accepted, client) end
        if socket._errno ~= EAGAIN then return outcome(socket, false) end
        local left = end_at and math.max(end_at - scheduler.monotonic(), 0)
        if not methods.readable(socket, left) then
            object.fail(socket, ETIMEDOUT)
            return outcome(socket, false)
        end
    end
end

local server = kind('server', server_methods)

-- -- sockets that are neither yet --

local master_methods = {send = client_methods.send, receive = client_methods.receive}

function master_methods.bind(socket, host, port)
    return outcome(socket, methods.bind(socket, host, port))
end

function master_methods.listen(socket, backlog)
    if not methods.listen(socket, backlog) then return outcome(socket, false) end
    setmetatable(socket, server)
    return 1
end

function master_methods.connect(socket, host, port)
    if not methods.sysconnect(socket, host, port) and not connections.finish(socket, socket.timeout) then
        return outcome(socket, false)
    end
    return 1
end

local master = kind('master', master_methods)

-- -- functions of the module --

local luasocket = {}

function luasocket.tcp()
    local socket = object.create(constants.AF_INET, constants.SOCK_STREAM, constants.protocols.tcp)
    if not socket then return nil, errno.strerror() end
    return setmetatable(socket, master)
end

function luasocket.connect(host, port)
    if host == nil or port == nil then error('Usage: luasocket.connect(host, port)') end
    local socket = connections.connect(host, port)
    if not socket then return nil, errno.strerror() end
    return setmetatable(socket, client)
end

function luasocket.bind(host, port, backlog)
    if host == nil or port == nil then error('Usage: luasocket.bind(host, port [, backlog])') end
    local found = resolver.find(host, port, nil, {type = 'SOCK_STREAM', protocol = 'tcp', flags = 'AI_PASSIVE'})
    local why = errno.strerror(EIO)
    for _, address in ipairs(found or {}) do
        local family = constants.DOMAIN[address.family]
        local socket = object.create(family, constants.SOCK_STREAM, constants.protocols.tcp)
        if not socket then return nil, errno.strerror() end
        methods.setsockopt(socket, 'SOL_SOCKET', 'SO_REUSEADDR', true)
        if methods.bind(socket, address.host, address.port) and methods.listen(socket, backlog) then
            return setmetatable(socket, server)
        end
        why = methods.error(socket)
        object.close(socket)
    end
    return nil, why
end

return luasocket
