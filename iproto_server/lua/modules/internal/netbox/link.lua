-- The connection to a server: frames that are sent and received.
local ffi = require('ffi')
local errno = require('errno')
local msgpack = require('msgpack')
local digest = require('digest')
local scheduler = require('internal.fibers.scheduler')
local buffers = require('internal.sockets.buffer')
local connections = require('internal.sockets.connections')
local descriptors = require('internal.sockets.descriptors')
local messages = require('internal.sockets.messages')
local object = require('internal.sockets.object')
local streams = require('internal.sockets.streams')

ffi.cdef[[int iproto_end_connection(int fd, int how) __asm__("shutdown");]]

local EINTR, EAGAIN, SHUT_RDWR = 4, 11, 2
local GREETING_SIZE, HEAD_SIZE_MAX = 128, 9
local FRAME_MAX = 2 ^ 31 -- bytes
local ROOM = 16384
local PEER_CLOSED, INVALID_GREETING = 'Peer closed', 'Invalid greeting'
local CONSOLE_END = '\n...\n'
local NO_UUID = '00000000-0000-0000-0000-000000000000'

local const_char_pointer = ffi.typeof('const char *')

local methods = {}
local metatable = {__index = methods}
local link = {}

-- The end of a wait: when there is no time left, an error number.
local function deadline(timeout)
    return timeout and scheduler.monotonic() + timeout
end

-- Connect, and read the greeting. Returns a link, or nil and a text.
function link.open(host, port, timeout)
    local end_at = deadline(timeout)
    local socket = connections.connect(host, port, timeout)
    if not socket then return nil, errno.strerror() end
    local self = setmetatable({socket = socket, received = buffers.new(), to_send = {}}, metatable)
    local ok, found, why = pcall(self.read_greeting, self, end_at)
    if ok and found then return self end
    self:close()
    if not ok then error(found, 0) end
    return nil, why
end

-- -- greetings --

-- What a server says first: its protocol, version, UUID, and the salt for passwords.
local function parse_greeting(text)
    local name, number, protocol, uuid = text:match('^(Tarantool) (%S+) (%b()) ?(%S*)')
    if not name or text:sub(64, 64) ~= '\n' then return nil end
    local major, minor, patch = number:match('^(%d+)%.(%d+)%.?(%d*)')
    if not major then return nil end
    return {
        protocol = protocol:sub(2, -2), uuid = uuid ~= '' and uuid or NO_UUID,
        version_id = bit.bor(bit.lshift(major, 16), bit.lshift(minor, 8), tonumber(patch) or 0),
        salt = digest.base64_decode(text:sub(65, 108)):sub(1, 20),
    }
end

function methods:read_greeting(end_at)
    while self.received:count() < GREETING_SIZE do
        local is_there, why = self:fill(end_at)
        if not is_there then return nil, why == PEER_CLOSED and INVALID_GREETING or why end
    end
    self.greeting = parse_greeting(self.received:take(GREETING_SIZE))
    if not self.greeting then return nil, INVALID_GREETING end
    return self.greeting
end

-- What proves the knowledge of a password.
--
-- Source: Tarantool reference, "Binary protocol: authentication"
function methods:scramble(password)
    local first = digest.sha1(password)
    local mask = digest.sha1(self.greeting.salt .. digest.sha1(first))
    local bytes = {}
    for place = 1, #first do bytes[place] = string.char(bit.bxor(first:byte(place), mask:byte(place))) end
    return table.concat(bytes)
end

-- -- receiving --

-- Receive what there is, or wait for it. Returns nil and a text if there is none in time, or the connection has ended.
function methods:fill(end_at)
    while true do
        if not self.socket then return nil, PEER_CLOSED end
        local fd = object.descriptor(self.socket)
        local got = messages.read_bytes(self.socket, fd, self.received:reserve(ROOM), ROOM)
        if got == 0 then return nil, PEER_CLOSED end
        if got then
            self.received:add(got)
            return true
        end
        local number = self.socket._errno
        if number ~= EAGAIN and number ~= EINTR then return nil, errno.strerror(number) end
        local left = end_at and end_at - scheduler.monotonic()
        if left and left <= 0 then return nil, errno.strerror(errno.ETIMEDOUT) end
        if descriptors.wait(fd, descriptors.READ, left) == descriptors.CLOSED then return nil, PEER_CLOSED end
        scheduler.test_cancel()
    end
end

-- The size of the frame that comes next, and of its head; nil if the head is not there yet.
local function frame_size(received)
    local count = received:count()
    if count == 0 then return nil end
    local head = received.memory + received.first
    local size = ({[0xcc] = 2, [0xcd] = 3, [0xce] = 5, [0xcf] = 9})[head[0]] or 1
    if count < size then return nil end
    local number, behind = msgpack.decode(ffi.cast(const_char_pointer, head), math.min(count, HEAD_SIZE_MAX))
    return tonumber(number), tonumber(behind - ffi.cast(const_char_pointer, head))
end

-- Wait for a frame. Returns its header, its bytes and the place of its body; nil and a text if the connection ends.
function methods:receive(end_at)
    while true do
        local size, head = frame_size(self.received)
        if size and (size < 0 or size > FRAME_MAX) then return nil, 'Invalid response' end
        if size and self.received:count() >= head + size then
            self.received:take(head)
            local frame = self.received:take(size)
            local header, place = msgpack.decode(frame)
            if place > #frame then frame = frame .. '\128' end -- a body that is not there is empty
            return header, frame, place
        end
        local is_there, why = self:fill(end_at)
        if not is_there then return nil, why end
    end
end

-- Wait for an answer of a text console.
function methods:receive_text()
    while true do
        local count = self.received:find(CONSOLE_END, 0)
        if count then return self.received:take(count) end
        local is_there, why = self:fill()
        if not is_there then return nil, why end
    end
end

-- -- sending --

-- Send what there is. Returns false if the connection has ended.
local function flush(self)
    while self.to_send[1] do
        local bytes = table.concat(self.to_send)
        self.to_send = {}
        local ok, sent = pcall(streams.write, self.socket, bytes)
        if not ok or not sent then return false end
        if not self.socket then return false end
    end
    return true
end

-- Send a frame soon, with those that come until then. After an error, the receiver notices that the connection ends.
function methods:send(frame)
    table.insert(self.to_send, frame)
    if self.is_sending then return end
    self.is_sending = true
    scheduler.new(function()
        if self.socket and not flush(self) then self:shut_down() end
        self.is_sending = false
    end)
end

-- -- the end --

-- End the connection, but not its descriptor: who receives is told. This calls no function of Python.
function methods:shut_down()
    local fd = self.socket and self.socket._gc_socket.fd or -1
    if fd >= 0 then ffi.C.iproto_end_connection(fd, SHUT_RDWR) end
end

function methods:close()
    local socket = self.socket
    self.socket = nil
    if socket and socket._gc_socket.fd >= 0 then object.close(socket) end
end

return link
