-- Waiting until descriptors can be read or written, and system calls on sockets.
--
-- The functions of Python are `watch_descriptor(fd, writing)`, which has the function that was given to
-- `on_descriptor_ready` called each time that the descriptor is ready, until `unwatch_descriptor(fd, writing)`.
local _, host = ...
local ffi = require('ffi')
local scheduler = require('internal.fibers.scheduler')

ffi.cdef[[
struct iproto_pollfd { int fd; short events; short revents; };
int iproto_poll(struct iproto_pollfd *list, unsigned long count, int timeout) __asm__("poll");
int iproto_close_socket(int fd) __asm__("close");
int iproto_shutdown(int fd, int how) __asm__("shutdown");
]]

local POLLIN, POLLOUT, POLLNVAL, POLLFAILED = 0x1, 0x4, 0x20, 0x18 -- the last is POLLERR or POLLHUP
local READ, WRITE = 1, 2
local EBADF, SHUT_RDWR = 9, 2

local library = ffi.C
local pollfd = ffi.new('struct iproto_pollfd[1]')
local watched = {[READ] = {}, [WRITE] = {}} -- descriptors that the event loop watches
local waiters = {}                         -- lists of what waits for a descriptor
local abandoned = {}                       -- descriptors to close when the event loop says that they are ready

local descriptors = {READ = READ, WRITE = WRITE, CLOSED = -1}

-- Which of some events a descriptor is ready for.
local function ready_for(fd, events)
    pollfd[0].fd, pollfd[0].revents = fd, 0
    pollfd[0].events = (bit.band(events, READ) ~= 0 and POLLIN or 0) + (bit.band(events, WRITE) ~= 0 and POLLOUT or 0)
    if library.iproto_poll(pollfd, 1, 0) <= 0 then return 0 end
    local found, ready = pollfd[0].revents, 0
    if bit.band(found, POLLNVAL) ~= 0 then return READ + WRITE end
    if bit.band(found, POLLFAILED) ~= 0 then ready = events end
    if bit.band(found, POLLIN) ~= 0 then ready = bit.bor(ready, READ) end
    if bit.band(found, POLLOUT) ~= 0 then ready = bit.bor(ready, WRITE) end
    return ready
end

local function unwatch(fd, event)
    if not watched[event][fd] then return end
    watched[event][fd] = nil
    host.unwatch_descriptor(fd, event == WRITE)
end

-- A descriptor stays watched when nobody waits, since somebody will most often wait again; an event in between ends it.
local function on_ready(fd, writing)
    if abandoned[fd] then
        abandoned[fd] = nil
        descriptors.close(fd)
        return
    end
    local event = writing and WRITE or READ
    local is_wanted = false
    for _, waiter in ipairs(waiters[fd] or {}) do
        if bit.band(waiter.events, event) ~= 0 then
            is_wanted, waiter.is_ready = true, true
            scheduler.wake(waiter.fiber)
        end
    end
    if not is_wanted then unwatch(fd, event) end
end
scheduler.run_outside(function() host.on_descriptor_ready(on_ready) end)

local function enter(fd, events)
    for _, event in ipairs{READ, WRITE} do
        if bit.band(events, event) ~= 0 and not watched[event][fd] then
            host.watch_descriptor(fd, event == WRITE)
            watched[event][fd] = true
        end
    end
    local waiter = {fiber = scheduler.current(), events = events}
    waiters[fd] = waiters[fd] or {}
    table.insert(waiters[fd], waiter)
    return waiter
end

local function leave(fd, waiter)
    local list = waiters[fd]
    if not list then return end
    for place, each in ipairs(list) do
        if each == waiter then
            table.remove(list, place)
            break
        end
    end
    if not list[1] then waiters[fd] = nil end
end

-- Wait until a descriptor is ready for one of some events. Others run before this returns.
-- Returns the events, 0 if there was none in time or the fiber was woken or cancelled, or CLOSED.
function descriptors.wait(fd, events, timeout)
    if scheduler.current().is_cancelled then return 0 end
    local ready = ready_for(fd, events)
    if ready ~= 0 or timeout and timeout <= 0 then
        scheduler.yield()
        return ready ~= 0 and ready or ready_for(fd, events)
    end
    local end_at = timeout and scheduler.monotonic() + timeout
    local waiter = enter(fd, events)
    repeat
        waiter.is_ready = false
        local is_woken = scheduler.suspend(end_at and math.max(end_at - scheduler.monotonic(), 0))
        if waiter.is_closed then return descriptors.CLOSED end
        ready = ready_for(fd, events)
    until ready ~= 0 or not waiter.is_ready or not is_woken or waiter.fiber.is_cancelled
    leave(fd, waiter)
    return ready
end

-- Wake what waits for a descriptor, ready or not.
function descriptors.notify(fd)
    for _, waiter in ipairs(waiters[fd] or {}) do
        waiter.is_ready = false
        scheduler.wake(waiter.fiber)
    end
end

-- Forget a descriptor that is about to be closed, whose waiting fibers are woken.
function descriptors.forget(fd)
    local list = waiters[fd]
    waiters[fd] = nil
    for _, waiter in ipairs(list or {}) do
        waiter.is_closed = true
        scheduler.wake(waiter.fiber)
    end
    unwatch(fd, READ)
    unwatch(fd, WRITE)
end

-- Close a descriptor. Returns 0, or -1 if it is not open.
function descriptors.close(fd)
    if fd < 0 then
        ffi.errno(EBADF)
        return -1
    end
    descriptors.forget(fd)
    return library.iproto_close_socket(fd)
end

-- Close a descriptor that nobody refers to any more. This is called by the garbage collector, even when Lua itself
-- ends, and so it calls no function of Python: a connection that is shut down is ready, which the event loop notices.
function descriptors.abandon(fd)
    if watched[READ][fd] or watched[WRITE][fd] then
        abandoned[fd] = true
        library.iproto_shutdown(fd, SHUT_RDWR)
    else
        library.iproto_close_socket(fd)
    end
end

return descriptors
