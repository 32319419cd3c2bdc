-- Methods of sockets that send and receive without waiting.
local ffi = require('ffi')
local constants = require('internal.sockets.constants')
local addresses = require('internal.sockets.addresses')
local object = require('internal.sockets.object')

ffi.cdef[[
ssize_t iproto_send(int fd, const void *data, size_t size, int flags) __asm__("send");
ssize_t iproto_sendto(int fd, const void *data, size_t size, int flags, const void *to, uint32_t to_size)
    __asm__("sendto");
ssize_t iproto_recvfrom(int fd, void *data, size_t size, int flags, void *from, uint32_t *from_size)
    __asm__("recvfrom");
ssize_t iproto_read_socket(int fd, void *data, size_t size) __asm__("read");
]]

local EINVAL = 22
local MSG_NOSIGNAL, MSG_PEEK, MSG_TRUNC = constants.MSG_NOSIGNAL, constants.MSG_PEEK, constants.MSG_TRUNC
local RECEIVE_SIZE, READ_SIZE = 512, 16320 -- Tarantool's sizes without an argument

local library = ffi.C
local descriptor, outcome, fail = object.descriptor, object.outcome, object.fail
local bytes_t, size_t = ffi.typeof('char[?]'), ffi.typeof('uint32_t[1]')
local char_pointer, const_char_pointer = ffi.typeof('char *'), ffi.typeof('const char *')

local messages = {}

local function is_pointer(value)
    return type(value) == 'cdata' and (ffi.istype(char_pointer, value) or ffi.istype(const_char_pointer, value))
end

-- -- sending --

-- Send some of the bytes at a place. Returns how many, or nil.
local function send_bytes(socket, fd, pointer, size, flags)
    local sent = tonumber(library.iproto_send(fd, pointer, size, bit.bor(flags, MSG_NOSIGNAL)))
    outcome(socket, sent >= 0)
    return sent >= 0 and sent or nil
end
messages.send_bytes = send_bytes

function messages.syswrite(socket, data, size)
    if not is_pointer(data) then
        if type(data) ~= 'string' then size = nil else size = #data end
    end
    if type(size) ~= 'number' then
        error('Usage: socket:syswrite(data) or socket:syswrite(const char *, size)')
    end
    return send_bytes(socket, descriptor(socket), data, size, 0)
end

function messages.send(socket, octets, flags)
    local fd = descriptor(socket)
    if octets == nil then error("bad argument #1 to 'len' (string expected, got nil)") end
    if type(octets) ~= 'string' then
        error(("bad argument #2 to 'send' (cannot convert '%s' to 'const void *')"):format(type(octets)))
    end
    flags = constants.flags(flags, constants.SEND_FLAGS)
    if not flags then error("bad argument #4 to 'send' (cannot convert 'nil' to 'int')") end
    return send_bytes(socket, fd, octets, #octets, flags)
end

function messages.sendto(socket, host, port, octets, flags)
    local fd = descriptor(socket)
    outcome(socket, true)
    if octets == nil or octets == '' then return true end
    octets, flags = tostring(octets), constants.flags(flags, constants.SEND_FLAGS)
    local to, size = addresses.make(host, port)
    if not to or not flags then
        fail(socket, to and EINVAL or size)
        return nil
    end
    local sent = tonumber(library.iproto_sendto(fd, octets, #octets, bit.bor(flags, MSG_NOSIGNAL), to, size))
    return outcome(socket, sent >= 0) and sent or nil
end

-- -- receiving --

-- The size of what is read in one go: as given, or the whole message of a socket that has messages.
local function receive_size(socket, fd, size)
    if size ~= nil and size >= 0 then return size end
    if socket.itype == constants.SOCK_STREAM then return RECEIVE_SIZE end
    return tonumber(library.iproto_recvfrom(fd, nil, 0, bit.bor(MSG_PEEK, MSG_TRUNC), nil, nil))
end

-- Receive a message. Returns it, its sender's address, and that address's size; or nil.
local function receive(socket, size, flags)
    local fd = descriptor(socket)
    flags = constants.flags(flags, constants.SEND_FLAGS)
    if not flags then
        fail(socket, EINVAL)
        return nil
    end
    if size ~= nil then size = size + 0 end
    size = receive_size(socket, fd, size)
    if size < 0 then
        outcome(socket, false)
        return nil
    end
    local memory = bytes_t(math.max(size, 1))
    local from, from_size = addresses.new(), size_t(addresses.size_max)
    local got = tonumber(library.iproto_recvfrom(fd, memory, size, flags, from, from_size))
    if not outcome(socket, got >= 0) then return nil end
    return ffi.string(memory, math.min(got, size)), from, from_size[0]
end

function messages.recv(socket, size, flags)
    return (receive(socket, size, flags))
end

function messages.recvfrom(socket, size, flags)
    local message, from, from_size = receive(socket, size, flags)
    if not message then return nil end
    return message, addresses.describe(from, from_size)
end

-- Read into memory. Returns the count, or nil.
local function read_bytes(socket, fd, memory, size)
    local got = tonumber(library.iproto_read_socket(fd, memory, size))
    return outcome(socket, got >= 0) and got or nil
end
messages.read_bytes = read_bytes

function messages.sysread(socket, buffer, size)
    if not is_pointer(buffer) then
        size = buffer == nil and READ_SIZE or buffer
        buffer = nil
    end
    if size < 0 then error('socket:sysread(): size can not be negative') end
    local fd = descriptor(socket)
    if buffer then return read_bytes(socket, fd, buffer, size) end
    local memory = bytes_t(math.max(size, 1))
    local got = read_bytes(socket, fd, memory, size)
    return got and ffi.string(memory, got)
end

return messages
