-- An open socket as an object: a table with a descriptor, which is closed when nobody refers to the object any more.
local ffi = require('ffi')
local constants = require('internal.sockets.constants')
local addresses = require('internal.sockets.addresses')
local descriptors = require('internal.sockets.descriptors')

ffi.cdef[[
struct gc_socket { int fd; };
int iproto_socket(int domain, int type, int protocol) __asm__("socket");
int iproto_getsockname(int fd, void *address, uint32_t *size) __asm__("getsockname");
int iproto_getpeername(int fd, void *address, uint32_t *size) __asm__("getpeername");
int iproto_getsockopt(int fd, int level, int name, void *value, uint32_t *size) __asm__("getsockopt");
int iproto_setsockopt(int fd, int level, int name, const void *value, uint32_t size) __asm__("setsockopt");
]]

local SO_TYPE, SO_PROTOCOL = 3, 38

local library, errno = ffi.C, ffi.errno
local int_t, size_t = ffi.typeof('int[1]'), ffi.typeof('uint32_t[1]')
local gc_socket = ffi.metatype('struct gc_socket', {
    __gc = function(owner)
        if owner.fd >= 0 then descriptors.abandon(owner.fd) end
    end,
})

local metatable = {}
local object = {metatable = metatable}

function object.is_socket(value)
    return type(value) == 'table' and type(rawget(value, '_gc_socket')) == 'cdata'
end

-- The descriptor of an open socket.
function object.descriptor(socket)
    if not object.is_socket(socket) then
        error('Usage: socket:method()' .. (socket ~= nil and ', called with non-socket' or ''))
    end
    local fd = socket._gc_socket.fd
    if fd < 0 then error('attempt to use closed socket') end
    return fd
end

-- Make an object, which has to close the descriptor from now on.
function object.wrap(fd, itype)
    return setmetatable({_gc_socket = gc_socket(fd), itype = itype}, metatable)
end

-- Create a socket. Returns nothing if the operating system refuses it, and errno is set.
function object.create(domain, itype, protocol)
    local flags = bit.bor(itype, constants.SOCK_NONBLOCK, constants.SOCK_CLOEXEC)
    local fd = library.iproto_socket(domain, flags, protocol)
    if fd < 0 then return end
    return object.wrap(fd, itype)
end

-- Close a socket. Returns whether it has worked.
function object.close(socket)
    local fd = object.descriptor(socket)
    socket._gc_socket.fd = -1
    return descriptors.close(fd) == 0
end

-- -- results of system calls --

-- Keep an error number, which is errno, too.
function object.fail(socket, number)
    errno(number)
    socket._errno = number
end

-- Keep whether the last call has worked: nothing, or errno.
function object.outcome(socket, is_done)
    socket._errno = not is_done and errno() or nil
    return is_done
end

-- -- options --

function object.get_number(fd, level, name)
    local value, size = int_t(), size_t(ffi.sizeof(int_t))
    if library.iproto_getsockopt(fd, level, name, value, size) < 0 then return nil end
    return value[0]
end

function object.set_number(fd, level, name, number)
    local value = int_t()
    value[0] = number
    return library.iproto_setsockopt(fd, level, name, value, ffi.sizeof(int_t)) == 0
end

-- -- addresses --

-- The address of one end of a connection, with the socket's type and protocol; nil if there is none, and errno is set.
local function end_of(call)
    return function(fd)
        local address, size = addresses.new(), size_t(addresses.size_max)
        if call(fd, address, size) < 0 then return nil end
        local found = addresses.describe(address, size[0])
        if not found then return nil end
        local itype = object.get_number(fd, constants.SOL_SOCKET, SO_TYPE)
        local protocol = object.get_number(fd, constants.SOL_SOCKET, SO_PROTOCOL)
        found.type = constants.type_names[itype] or itype
        found.protocol = constants.protocol_names[protocol] or protocol
        return found
    end
end
object.own_address = end_of(library.iproto_getsockname)
object.peer_address = end_of(library.iproto_getpeername)

function metatable.__tostring(socket)
    local fd = object.descriptor(socket)
    local saved = errno()
    local own, peer = object.own_address(fd), object.peer_address(fd)
    errno(saved)
    return ('fd %d'):format(fd) .. (own and ', aka ' .. addresses.format(own) or '')
        .. (peer and ', peer ' .. addresses.format(peer) or '')
end

function metatable.__serialize(socket)
    local fd = object.descriptor(socket)
    local saved = errno()
    local found = {fd = fd, name = object.own_address(fd), peer = object.peer_address(fd)}
    errno(saved)
    return found
end

return object
