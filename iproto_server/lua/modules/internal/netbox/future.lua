-- Requests that have been sent, and may have been answered.
local fiber = require('fiber')
local scheduler = require('internal.fibers.scheduler')
local serializer = require('internal.serial.serializer')
local failures = require('internal.netbox.failures')

local NULL = serializer.NULL

local methods = {}
local metatable = {__index = methods}
local future = {}

-- Fields of a future: `method` and `format` say how its response is read; `on_push(on_push_ctx, message)` is called for
-- each message that comes before; `owner` has it in its field `requests` by its number `id` until it is answered.
function future.new(fields)
    fields.cond = fiber.cond()
    return setmetatable(fields, metatable)
end

-- Give a future its result, or an error.
function future.finish(self, response, failure)
    self.owner.requests[self.id] = nil
    self.owner, self.on_push = nil, nil
    self.response, self.errno = response, failure
    self.cond:broadcast()
end

-- Give a future a message that comes before its response.
function future.push(self, message)
    local on_push = self.on_push
    local ok, why = pcall(function() on_push(self.on_push_ctx, message) end)
    if not ok then
        future.finish(self, nil, failures.is(why) and why or failures.new(failures.codes.PROC_LUA, tostring(why)))
        return
    end
    self.cond:broadcast()
end

-- Whether it is answered.
function methods:is_ready()
    return self.owner == nil
end

-- Returns the result, or nil and an error.
function methods:result()
    if self.errno then return nil, self.errno end
    if self.owner then return nil, failures.new(failures.codes.PROC_LUA, 'Response is not ready') end
    return self.response
end

local function deadline(timeout)
    return timeout and scheduler.monotonic() + timeout
end

-- Wait for something of a future. Returns false if it is too late.
local function wait(self, end_at)
    if not end_at then return self.cond:wait() or true end
    local left = end_at - scheduler.monotonic()
    if left <= 0 then return false end
    self.cond:wait(left)
    return true
end

-- Wait for the result.
function methods:wait_result(timeout)
    if timeout ~= nil and (type(timeout) ~= 'number' or timeout < 0) then
        error('Usage: future:wait_result(timeout)')
    end
    local end_at = deadline(timeout)
    while self.owner do
        if not wait(self, end_at) then return nil, failures.timed_out() end
    end
    return self:result()
end

-- Forget the request: its response is ignored.
function methods:discard()
    if self.owner then future.finish(self, nil, failures.new(failures.codes.PROC_LUA, 'Response is discarded')) end
end

local function next_message(self, place, end_at)
    local messages = self.on_push_ctx
    while true do
        if place < #messages then return place + 1, messages[place + 1] end
        if self:is_ready() then
            local response, failure = self:result()
            if failure then return NULL, failure end
            return place + 1, response
        end
        if not wait(self, end_at) then return NULL, failures.timed_out() end
    end
end

-- Iterate over the messages that come before the response, and the response.
function methods:pairs(timeout)
    if timeout ~= nil and (type(timeout) ~= 'number' or timeout < 0) then error('Usage: future:pairs(timeout)') end
    local is_at_end = false
    return function(_, place)
        if is_at_end then return nil end
        local pushed = #self.on_push_ctx
        local number, value = next_message(self, place, deadline(timeout))
        is_at_end = number == NULL or (self:is_ready() and number > math.max(pushed, #self.on_push_ctx))
        return number, value
    end, nil, 0
end

return future
