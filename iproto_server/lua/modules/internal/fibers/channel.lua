-- Channels between fibers: messages in order, up to a number that wait to be read.
local scheduler = require('internal.fibers.scheduler')
local userdata = require('internal.userdata')
local waiting = require('internal.fibers.waiting')

local NIL = {} -- in place of a message that is nil
local methods = {}
local wrap, state_of = userdata.kind(methods, function(state)
    return 'channel: ' .. state.count
end)

local function checked(object, usage)
    return state_of(object) or error('usage: ' .. usage, 3)
end

local function is_timeout(timeout)
    return timeout == nil or (type(timeout) == 'number' and timeout >= 0)
end

-- A fiber that waits to put a message has it in its field `message`.
local function append(state, message)
    state.last = state.last + 1
    state[state.last] = message
    state.count = state.count + 1
end

-- Put a message. Returns false if there is no room in time, or the channel is closed.
function methods.put(object, ...)
    local usage = 'channel:put(var [, timeout])'
    local state = checked(object, usage)
    local message, timeout = ...
    if select('#', ...) == 0 or not is_timeout(timeout) then error('usage: ' .. usage, 2) end
    if message == nil then message = NIL end
    if state.is_closed then return false end
    if waiting.wake(state.readers, message) then return true end
    if state.count < state.size then
        append(state, message)
        return true
    end
    if timeout == 0 then return false end
    local fiber = scheduler.current()
    fiber.message = message
    local is_taken = waiting.wait(state.writers, timeout)
    fiber.message = nil
    scheduler.test_cancel()
    return is_taken and not state.is_closed
end

local function first(state)
    local message = state[state.first]
    state[state.first] = nil
    state.first = state.first + 1
    state.count = state.count - 1
    return message
end

-- Take the message of a fiber that waits to put it.
local function from_writer(state)
    local fiber = waiting.take(state.writers)
    if not fiber then return nil end
    fiber.is_given = true
    scheduler.wake(fiber)
    return fiber.message
end

local function message_of(state)
    if state.count == 0 then return from_writer(state) end
    local message = first(state)
    local next_message = from_writer(state)
    if next_message ~= nil then append(state, next_message) end
    return message
end

-- Take a message. Returns nil if there is none in time, or the channel is closed.
function methods.get(object, timeout)
    local usage = 'channel:get([timeout])'
    local state = checked(object, usage)
    if not is_timeout(timeout) then error('usage: ' .. usage, 2) end
    if state.is_closed then return nil end
    local message = message_of(state)
    if message == nil and timeout ~= 0 then
        local _
        _, message = waiting.wait(state.readers, timeout)
        scheduler.test_cancel()
    end
    if message == NIL then return nil end
    return message
end

-- Close the channel: waiting fibers are woken, and messages are discarded.
function methods.close(object)
    local state = checked(object, 'channel:close()')
    state.is_closed = true
    for place = state.first, state.last do state[place] = nil end
    state.count, state.first, state.last = 0, 1, 0
    while waiting.wake(state.readers) do end
    while waiting.wake(state.writers) do end
end

function methods.is_closed(object)
    return checked(object, 'channel:is_closed()').is_closed
end

function methods.size(object)
    return checked(object, 'channel:size()').size
end

function methods.count(object)
    return checked(object, 'channel:count()').count
end

function methods.is_empty(object)
    return checked(object, 'channel:is_empty()').count == 0
end

function methods.is_full(object)
    local state = checked(object, 'channel:is_full()')
    return state.count >= state.size
end

function methods.has_readers(object)
    return not waiting.is_empty(checked(object, 'channel:has_readers()').readers)
end

function methods.has_writers(object)
    return not waiting.is_empty(checked(object, 'channel:has_writers()').writers)
end

local function new(size)
    if size == nil then size = 0 end
    if type(size) ~= 'number' then error('fiber.channel(size): bad arguments', 2) end
    if size < 0 then error('fiber.channel(size): negative size', 2) end
    return wrap{
        size = size, count = 0, first = 1, last = 0, is_closed = false,
        readers = waiting.list(), writers = waiting.list(),
    }
end

-- The number of fibers that wait to read from a channel.
local function reader_count(object)
    return waiting.count(state_of(object).readers)
end

return {new = new, reader_count = reader_count}
