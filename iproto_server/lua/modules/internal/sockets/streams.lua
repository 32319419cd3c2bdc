-- Methods of sockets that read and write a stream, for which the fiber waits.
local ffi = require('ffi')
local scheduler = require('internal.fibers.scheduler')
local descriptors = require('internal.sockets.descriptors')
local object = require('internal.sockets.object')
local messages = require('internal.sockets.messages')
local buffers = require('internal.sockets.buffer')

local EINTR, EAGAIN, ETIMEDOUT, EBADF = 4, 11, 110, 9
local READ, WRITE = descriptors.READ, descriptors.WRITE
local ROOM = 16384 -- bytes that are received in one go
local READ_USAGE = 'Usage: s:read(delimiter|chunk|{delimiter = x, chunk = x}, timeout)'

local streams = {}
local descriptor = object.descriptor

-- Wait until a socket is ready for some events. Returns them as a number, or CLOSED. The fiber may be cancelled.
local function wait(socket, events, timeout)
    local ready = descriptors.wait(descriptor(socket), events, timeout)
    if ready == descriptors.CLOSED then ffi.errno(EBADF) else scheduler.test_cancel() end
    return ready
end
streams.wait = wait

-- Wait until an operation may be tried again. Returns false if there is no time left.
local function wait_to_retry(socket, events, end_at)
    local left = end_at and end_at - scheduler.monotonic()
    if left and left <= 0 then
        object.fail(socket, ETIMEDOUT)
        return false
    end
    wait(socket, events, left)
    descriptor(socket) -- an error if it is closed
    return true
end

local function is_transient(socket)
    local number = socket._errno
    return number == EAGAIN or number == EINTR
end

-- -- writing --

function streams.write(socket, octets, timeout)
    descriptor(socket)
    local pointer = ffi.cast('const char *', octets)
    local size, done = #octets, 0
    local end_at = timeout and scheduler.monotonic() + timeout
    while true do
        local sent = messages.send_bytes(socket, descriptor(socket), pointer + done, size - done, 0)
        if sent then
            done = done + sent
            if done == size then return size end
        elseif not is_transient(socket) then
            return nil
        end
        if not wait_to_retry(socket, WRITE, end_at) then return nil end
    end
end

-- -- reading --

-- Receive what there is. Returns false at the end of the stream, nil after an error.
local function fill(socket, buffer)
    local got = messages.read_bytes(socket, descriptor(socket), buffer:reserve(ROOM), ROOM)
    if got then
        buffer:add(got)
        return got > 0
    end
    return nil
end

-- A function that says how many bytes of a buffer are to be read, or nil if there are not enough: a number of them, or
-- as many as the first of some delimiters ends with, if that is fewer.
local function measure_by(limit, delimiters, buffer)
    local searched = buffer.taken
    local longest = 0
    for _, each in ipairs(delimiters) do longest = math.max(longest, #each) end
    return function()
        local nearest
        for _, each in ipairs(delimiters) do
            local count = buffer:find(each, searched)
            if count and (not nearest or count < nearest) then nearest = count end
        end
        searched = math.max(searched, buffer:end_place() - longest + 1)
        if nearest and nearest <= limit then return nearest end
        return buffer:count() >= limit and limit or nil
    end
end

local function read(socket, limit, delimiters, timeout)
    if limit < 0 then error('socket:read(): limit can not be negative') end
    local end_at = timeout and scheduler.monotonic() + timeout
    local buffer = rawget(socket, 'rbuf') or buffers.new()
    socket.rbuf = buffer
    local measure = measure_by(limit, delimiters, buffer)
    while true do
        local count = measure()
        if count then
            socket._errno = nil
            local data = buffer:take(count)
            if buffer:count() > 0 then descriptors.notify(descriptor(socket)) end
            return data
        end
        local is_more = fill(socket, buffer)
        if is_more == false then return buffer:take(measure() or limit) end
        if is_more == nil then
            if not is_transient(socket) then return nil end
            if not wait_to_retry(socket, READ, end_at) then return nil end
        end
    end
end

local function delimiters_of(value)
    if value == nil then return {} end
    if type(value) == 'string' then return {value} end
    if type(value) ~= 'table' then error(READ_USAGE) end
    return value
end

function streams.read(socket, options, timeout)
    descriptor(socket)
    if type(options) == 'number' then return read(socket, options, {}, timeout) end
    if type(options) == 'string' then return read(socket, math.huge, {options}, timeout) end
    if type(options) ~= 'table' then error(READ_USAGE) end
    local limit = options.chunk or options.size or math.huge
    return read(socket, limit, delimiters_of(options.line or options.delimiter), timeout)
end

-- -- readiness --

local EVENT_TEXT = {[0] = '', [READ] = 'R', [WRITE] = 'W', [READ + WRITE] = 'RW'}

-- The time of a wait; an error names the function that has it as an argument.
local function checked_timeout(timeout, name)
    if timeout == nil or type(timeout) == 'number' then return timeout end
    local number = type(timeout) == 'string' and tonumber(timeout)
    if number then return number end
    error(("bad argument #3 to '%s' (number expected, got %s)"):format(name, type(timeout)), name == '?' and 0 or 1)
end

-- Wait for events until they occur, however often the fiber is woken. A socket that is closed counts as ready.
local function is_ready(socket, event, timeout)
    timeout = checked_timeout(timeout, 'iowait')
    local end_at = timeout and scheduler.monotonic() + timeout
    repeat
        local ready = wait(socket, event, end_at and math.max(end_at - scheduler.monotonic(), 0))
        if ready ~= 0 then return true end
    until end_at and scheduler.monotonic() >= end_at
    return false
end

function streams.readable(socket, timeout)
    descriptor(socket)
    return is_ready(socket, READ, timeout)
end

function streams.writable(socket, timeout)
    descriptor(socket)
    return is_ready(socket, WRITE, timeout)
end

function streams.wait_any(socket, timeout)
    descriptor(socket)
    local ready = wait(socket, READ + WRITE, checked_timeout(timeout, 'iowait'))
    return EVENT_TEXT[math.max(ready, 0)]
end

local IOWAIT_USAGE = "Usage: iowait(fd, 1 | 'r' | 2 | 'w' | 3 | 'rw' [, timeout])"
local EVENTS = {r = READ, w = WRITE, rw = READ + WRITE, R = READ, W = WRITE, RW = READ + WRITE}

-- Wait for events of any descriptor; without one, wait for the time alone.
function streams.iowait(fd, events, timeout)
    timeout = checked_timeout(timeout, '?')
    if fd == nil and events == nil and timeout then
        scheduler.suspend(math.max(timeout, 0))
        scheduler.test_cancel()
        return
    end
    if fd ~= nil and type(fd) ~= 'number' then
        error(("bad argument #1 to '?' (number expected, got %s)"):format(type(fd)), 0)
    end
    local mask = EVENTS[events] or events
    if not fd or fd < 0 or type(mask) ~= 'number' or mask < 1 or mask > 3 then error(IOWAIT_USAGE, 0) end
    local ready = math.max(descriptors.wait(fd, mask, timeout), 0)
    if type(events) == 'number' then return ready end
    scheduler.test_cancel()
    return EVENT_TEXT[ready]
end

return streams
