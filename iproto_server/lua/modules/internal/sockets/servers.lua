-- Servers, which run a handler in a fiber of its own for each connection.
local ffi = require('ffi')
local log = require('log')
local scheduler = require('internal.fibers.scheduler')
local constants = require('internal.sockets.constants')
local addresses = require('internal.sockets.addresses')
local object = require('internal.sockets.object')
local methods = require('internal.sockets.methods')
local streams = require('internal.sockets.streams')
local descriptors = require('internal.sockets.descriptors')
local resolver = require('internal.sockets.resolver')

ffi.cdef[[int iproto_unlink(const char *path) __asm__("unlink");]]

local ECONNREFUSED, EADDRINUSE = 111, 98
local TRANSIENT = {[4] = true, [11] = true, [71] = true, [103] = true} -- EINTR, EAGAIN, EPROTO, ECONNABORTED
local PAUSE_MIN, PAUSE_MAX = 0.05, 1 -- seconds, after an error of `accept`
local FIBER_NAME_MAX = 255
local USAGE = 'Usage: socket.tcp_server(host, port, handler | opts)'

local servers = {}

local function name_fiber(name, address)
    scheduler.current().name = (name .. '/' .. addresses.format(address)):sub(1, FIBER_NAME_MAX)
end

-- -- accepting --

local function serve(client, from, settings)
    name_fiber(settings.name, from)
    local ok, why = pcall(settings.handler, client, from)
    if client._gc_socket.fd >= 0 then object.close(client) end
    if not ok then error(why, 0) end
end

-- Wait after an error of `accept`: for the next connection, or longer each time if the system lacks something.
local function pause_after(server, pause)
    if TRANSIENT[server._errno] then
        streams.wait(server, descriptors.READ)
        return PAUSE_MIN
    end
    log.error('accept(%s): %s', methods.fd(server), methods.error(server))
    scheduler.suspend(pause)
    scheduler.test_cancel()
    return math.min(2 * pause, PAUSE_MAX)
end

local function accept_all(server, address, settings)
    name_fiber(settings.name, address)
    local pause = PAUSE_MIN
    while server._gc_socket.fd >= 0 do
        local client, from = methods.accept(server)
        if client then
            pause = PAUSE_MIN
            scheduler.start(serve, client, from, settings)
        else
            pause = pause_after(server, pause)
        end
    end
end

-- -- creation --

local function fail_closed(socket)
    local number = socket._errno
    object.close(socket)
    ffi.errno(number)
    return nil
end

local function prepare(socket, settings)
    if settings.prepare then return settings.prepare(socket) end
    methods.setsockopt(socket, 'SOL_SOCKET', 'SO_REUSEADDR', true)
    return settings.backlog
end

-- Whether nobody accepts connections at the path of a socket, as after a crash.
local function is_dead(path)
    local socket = object.create(constants.AF_UNIX, constants.SOCK_STREAM, 0)
    if not socket then return false end
    local is_refused = not methods.sysconnect(socket, addresses.UNIX, path) and socket._errno == ECONNREFUSED
    object.close(socket)
    return is_refused
end

local function bind(socket, address)
    if methods.bind(socket, address.host, address.port) then return true end
    if address.host ~= addresses.UNIX or socket._errno ~= EADDRINUSE then return false end
    if is_dead(address.port) and ffi.C.iproto_unlink(address.port) == 0 then
        return methods.bind(socket, address.host, address.port)
    end
    object.fail(socket, EADDRINUSE)
    return false
end

-- Remove the file of a server's socket when it is closed.
local function unlink_at_close(socket, path)
    socket.close = function(self)
        ffi.C.iproto_unlink(path)
        self.close = nil
        return object.close(self)
    end
end

local function start(address, protocol, settings)
    local socket = object.create(constants.DOMAIN[address.family], constants.SOCK_STREAM, protocol)
    if not socket then return nil end
    local backlog = prepare(socket, settings)
    if not bind(socket, address) then return fail_closed(socket) end
    if not methods.listen(socket, backlog) then return fail_closed(socket) end
    if address.host == addresses.UNIX then unlink_at_close(socket, address.port) end
    scheduler.start(accept_all, socket, address, settings)
    return socket, address
end

local function settings_of(options)
    local settings = type(options) == 'table' and options or {handler = options}
    local prepare_function = settings.prepare
    if type(settings.handler) ~= 'function' then error(USAGE) end
    if prepare_function ~= nil and type(prepare_function) ~= 'function' then error(USAGE) end
    return {
        handler = settings.handler, prepare = prepare_function, backlog = settings.backlog,
        name = settings.name ~= nil and tostring(settings.name) or 'server',
    }
end

-- Listen at a host and a port, or at a path with the host `unix/`. Returns the socket and its address, or nil and errno
-- is set.
function servers.listen(host, port, options, timeout)
    local settings = settings_of(options)
    if host == addresses.UNIX then
        local path = tostring(port)
        local address = {family = 'AF_UNIX', type = 'SOCK_STREAM', protocol = 0, host = addresses.UNIX, port = path}
        return start(address, 0, settings)
    end
    local flags = {type = 'SOCK_STREAM', protocol = 'tcp', flags = 'AI_PASSIVE'}
    local found = resolver.find(host, port, timeout, flags)
    for _, address in ipairs(found or {}) do
        local socket = start(address, constants.protocols.tcp, settings)
        if socket then return socket, address end
    end
    return nil
end

return servers
