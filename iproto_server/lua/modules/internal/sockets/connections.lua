-- Connections to servers.
local ffi = require('ffi')
local scheduler = require('internal.fibers.scheduler')
local constants = require('internal.sockets.constants')
local addresses = require('internal.sockets.addresses')
local object = require('internal.sockets.object')
local methods = require('internal.sockets.methods')
local resolver = require('internal.sockets.resolver')

local EINVAL, ETIMEDOUT, EINPROGRESS = 22, 110, 115
local TCP = constants.protocols.tcp

local connections = {}

local function fail(number)
    ffi.errno(number)
    return nil
end

local function connect_local(path)
    local socket = object.create(constants.AF_UNIX, constants.SOCK_STREAM, 0)
    if not socket then return nil end
    if not methods.sysconnect(socket, addresses.UNIX, path) then
        local number = socket._errno
        object.close(socket)
        return fail(number)
    end
    return socket
end

-- Wait for a connection that is under way. Returns whether it is there in time; its error is kept otherwise.
function connections.finish(socket, timeout)
    if socket._errno ~= EINPROGRESS then return false end
    if not methods.writable(socket, timeout) then
        object.fail(socket, ETIMEDOUT)
        return false
    end
    local number = methods.getsockopt(socket, 'SOL_SOCKET', 'SO_ERROR')
    object.fail(socket, number)
    return number == 0
end

local function connect_to(address, timeout)
    local socket = object.create(constants.DOMAIN[address.family], constants.SOCK_STREAM, TCP)
    if not socket then return nil end
    if methods.sysconnect(socket, address.host, address.port) then return socket end
    local ok, is_done = pcall(connections.finish, socket, timeout)
    if ok and is_done then return socket end
    if not ok then
        object.close(socket)
        error(is_done, 0)
    end
    local number = socket._errno
    object.close(socket)
    return fail(number)
end

-- Connect to a host, or to a path at the host `unix/`. Returns a socket, or nil and errno is set.
function connections.connect(host, port, timeout)
    if host == addresses.UNIX then return connect_local(port) end
    local end_at = timeout and scheduler.monotonic() + timeout
    local found = resolver.find(host, port, timeout, {type = 'SOCK_STREAM', protocol = 'tcp'})
    if not found then return fail(EINVAL) end
    for _, address in ipairs(found) do
        local left = end_at and end_at - scheduler.monotonic()
        if left and left <= 0 then return fail(ETIMEDOUT) end
        local socket = connect_to(address, left)
        if socket then return socket end
        scheduler.test_cancel()
    end
    return nil
end

return connections
