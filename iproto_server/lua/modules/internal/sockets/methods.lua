-- The methods of sockets.
local ffi = require('ffi')
local errno = require('errno')
local constants = require('internal.sockets.constants')
local addresses = require('internal.sockets.addresses')
local object = require('internal.sockets.object')
local messages = require('internal.sockets.messages')
local streams = require('internal.sockets.streams')
local options = require('internal.sockets.options')

ffi.cdef[[
int iproto_bind(int fd, const void *address, uint32_t size) __asm__("bind");
int iproto_connect(int fd, const void *address, uint32_t size) __asm__("connect");
int iproto_listen(int fd, int backlog) __asm__("listen");
int iproto_accept4(int fd, void *address, uint32_t *size, int flags) __asm__("accept4");
int iproto_fcntl(int fd, int command, ...) __asm__("fcntl");
]]

local BACKLOG = 256
local F_GETFL, F_SETFL, O_NONBLOCK = 3, 4, 0x800
local SHUT_RD, SHUT_WR, SHUT_RDWR = 0, 1, 2
local HOW = {
    R = SHUT_RD, READ = SHUT_RD, W = SHUT_WR, WRITE = SHUT_WR, RW = SHUT_RDWR, READ_WRITE = SHUT_RDWR,
    [SHUT_RD] = SHUT_RD, [SHUT_WR] = SHUT_WR,
}

local library = ffi.C
local int_t, size_t = ffi.typeof('int'), ffi.typeof('uint32_t[1]')
local descriptor, outcome, fail = object.descriptor, object.outcome, object.fail

local methods = {
    send = messages.send, syswrite = messages.syswrite, sendto = messages.sendto,
    recv = messages.recv, recvfrom = messages.recvfrom, sysread = messages.sysread,
    write = streams.write, read = streams.read,
    readable = streams.readable, writable = streams.writable, wait = streams.wait_any,
    getsockopt = options.get, setsockopt = options.set, linger = options.linger,
    close = object.close, fd = object.descriptor,
}

-- -- addresses --

local function method_with_address(call)
    return function(socket, host, port)
        local fd = descriptor(socket)
        local address, size = addresses.make(host, port)
        if not address then
            fail(socket, size)
            return false
        end
        return outcome(socket, call(fd, address, size) == 0)
    end
end
methods.bind = method_with_address(library.iproto_bind)
methods.sysconnect = method_with_address(library.iproto_connect)

local function method_of_address(read)
    return function(socket)
        local fd = descriptor(socket)
        ffi.errno(0)
        local found = read(fd)
        outcome(socket, found ~= nil)
        return found
    end
end
methods.name = method_of_address(object.own_address)
methods.peer = method_of_address(object.peer_address)

-- -- connections --

function methods.listen(socket, backlog)
    local fd = descriptor(socket)
    if backlog == nil then backlog = BACKLOG end
    if type(backlog) ~= 'number' then
        error(("bad argument #2 to 'listen' (cannot convert '%s' to 'int')"):format(type(backlog)))
    end
    return outcome(socket, library.iproto_listen(fd, backlog) == 0)
end

-- Accept a connection. Returns its socket and the peer's address; nil if there is none, or after an error.
function methods.accept(socket)
    local fd = descriptor(socket)
    local from, size = addresses.new(), size_t(addresses.size_max)
    local flags = bit.bor(constants.SOCK_NONBLOCK, constants.SOCK_CLOEXEC)
    local accepted = library.iproto_accept4(fd, from, size, flags)
    if not outcome(socket, accepted >= 0) then return nil end
    return object.wrap(accepted, socket.itype), addresses.describe(from, size[0])
end

function methods.shutdown(socket, how)
    local fd = descriptor(socket)
    return outcome(socket, library.iproto_shutdown(fd, HOW[how] or SHUT_RDWR) == 0)
end

-- -- state --

function methods.nonblock(socket, is_set)
    local fd = descriptor(socket)
    local flags = library.iproto_fcntl(fd, F_GETFL)
    if not outcome(socket, flags >= 0) then return nil end
    if is_set == nil then return bit.band(flags, O_NONBLOCK) ~= 0 end
    flags = is_set and bit.bor(flags, O_NONBLOCK) or bit.band(flags, bit.bnot(O_NONBLOCK))
    if not outcome(socket, library.iproto_fcntl(fd, F_SETFL, int_t(flags)) == 0) then return nil end
    return is_set and true or false
end

function methods.errno(socket)
    descriptor(socket)
    return socket._errno or 0
end

function methods.error(socket)
    local number = methods.errno(socket)
    return number > 0 and errno.strerror(number) or nil
end

return methods
