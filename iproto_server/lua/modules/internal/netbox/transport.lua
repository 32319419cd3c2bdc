-- The states of a connection: a fiber connects, authenticates, reads the schema, hands responses to their requests, and
-- connects again.
local fiber = require('fiber')
local log = require('log')
local scheduler = require('internal.fibers.scheduler')
local codes = require('internal.netbox.codes')
local failures = require('internal.netbox.failures')
local future = require('internal.netbox.future')
local link = require('internal.netbox.link')
local requests = require('internal.netbox.requests')
local responses = require('internal.netbox.responses')

local CONNECT_TIMEOUT = 10
local PAUSE_FACTOR, PAUSE_GROWTH_MAX = 1.5, 10 -- of pauses between attempts, and how often the first one the longest is
local CLOSED_MESSAGE = 'Connection closed'
local BINARY, CONSOLE = 'Binary', 'Lua console'
-- Of text consoles: the end of lines, and the answer without values.
local DELIMITER, CONSOLE_DONE = '$EOF$', '---\n...\n'
local IS_FINAL = {closed = true, error = true}

local methods = {}
local metatable = {__index = methods}
local transport = {}

-- `settings` are options of the connection. `events` are functions that get the owner and what happens:
-- `on_state(owner, state, message)`, `on_greeting(owner, greeting)`, `on_schema(owner, version, spaces, indexes,
-- collations)`. The owner may be gone; then the connection ends.
function transport.new(host, port, settings, owner, events)
    return setmetatable({
        host = host, port = port, settings = settings, owner = setmetatable({owner}, {__mode = 'v'}), events = events,
        state = 'initial', requests = {}, last_sync = 0, state_cond = fiber.cond(),
    }, metatable)
end

-- -- states --

local function tell(self, method, ...)
    local owner = self.owner[1]
    if owner then return self.events[method](owner, ...) end
end

-- Requests that have not been answered end with an error.
local function fail_requests(self)
    local failure = failures.no_connection(self.message)
    for _, each in pairs(self.requests) do future.finish(each, nil, failure) end
    self.requests = {}
end

function methods:set_state(state, message)
    self.state, self.message = state, message
    local ok, why = pcall(tell, self, 'on_state', state, message)
    self.state_cond:broadcast()
    if state == 'error' or state == 'error_reconnect' or state == 'closed' then fail_requests(self) end
    if not ok then error(why, 0) end
end

local function matches(state, wanted)
    return state == wanted or (type(wanted) == 'table' and wanted[state] == true)
end

-- Wait for a state, or one of a set. Returns false if it is not there in time, or will not come.
function methods:wait_state(wanted, timeout)
    local end_at = timeout and scheduler.monotonic() + timeout
    while not matches(self.state, wanted) do
        if IS_FINAL[self.state] then return false end
        local left = end_at and end_at - scheduler.monotonic()
        if left and left <= 0 then return false end
        self.state_cond:wait(left)
    end
    return true
end

-- -- requests --

-- Send a request. Returns a future, or nil and an error.
function methods:begin(method, on_push, on_push_ctx, format, ...)
    if self.state ~= 'active' and self.state ~= 'fetch_schema' then
        return nil, failures.no_connection(self.message)
    end
    local request_type, body = requests.bodies[method](...)
    local sync = self.last_sync + 1
    self.last_sync = sync
    local request = future.new{
        id = sync, method = method, format = format, on_push = on_push, on_push_ctx = on_push_ctx, owner = self,
    }
    self.requests[sync] = request
    self.link:send(requests.frame(request_type, sync, body))
    return request
end

-- Send a request, and wait for its result. Returns nil and an error otherwise.
function methods:perform(timeout, ...)
    local request, failure = self:begin(...)
    if not request then return nil, failure end
    local result
    result, failure = request:wait_result(timeout and math.max(timeout, 0))
    if failure and request.owner then self.requests[request.id] = nil end
    return result, failure
end

-- Send a line to a text console, and wait for the text of its answer.
function methods:perform_line(timeout, line)
    if self.state ~= 'active' then return nil, failures.no_connection(self.message) end
    local sync = self.last_sync + 1
    self.last_sync = sync
    local request = future.new{id = sync, owner = self}
    self.requests[sync] = request
    self.link:send(line .. DELIMITER .. '\n')
    return request:wait_result(timeout and math.max(timeout, 0))
end

local function dispatch(self, header, frame, place)
    local request = self.requests[header[codes.SYNC]]
    if not request then return end -- it has been discarded
    local status = header[codes.REQUEST_TYPE]
    if status == codes.PUSH then return future.push(request, responses.values(frame, place)[1]) end
    if status >= codes.ERROR_FLAG then return future.finish(request, nil, responses.failure(status, frame, place)) end
    local ok, result = pcall(responses.read, request.method, frame, place, request.format)
    if ok then future.finish(request, result) else future.finish(request, nil, result) end
end

-- -- the fiber: its functions return the text of an error --

-- Send a request of the fiber's own, and wait for its response, while others are handed on.
local function exchange(self, method, ...)
    local request_type, body = requests.bodies[method](...)
    self.last_sync = self.last_sync + 1
    local sync = self.last_sync
    self.link:send(requests.frame(request_type, sync, body))
    while true do
        local header, frame, place = self.link:receive()
        if not header then return nil, frame end
        if header[codes.SYNC] == sync then
            if header[codes.REQUEST_TYPE] >= codes.ERROR_FLAG then
                return nil, responses.failure(header[codes.REQUEST_TYPE], frame, place).message
            end
            return responses.values(frame, place), header[codes.SCHEMA_VERSION]
        end
        dispatch(self, header, frame, place)
    end
end

local function read_space(self, space)
    return exchange(self, 'select', space, 0, codes.ALL, 0, codes.LIMIT_MAX, nil)
end

local function fetch_schema(self)
    local found, version = {}, nil
    for place, space in ipairs{codes.VCOLLATION, codes.VSPACE, codes.VINDEX} do
        local rows, version_or_why = read_space(self, space)
        if not rows then return version_or_why end
        if version and version ~= version_or_why then return fetch_schema(self) end
        found[place], version = rows, version_or_why
    end
    self.schema_version = version
    tell(self, 'on_schema', version, found[2], found[3], found[1])
end

local function authenticate(self)
    local user, password = self.settings.user, self.settings.password
    if user == nil then return nil end
    self:set_state('auth')
    local scramble = self.link:scramble(tostring(password or ''))
    local _, why = exchange(self, 'auth', tostring(user), scramble)
    return _ == nil and why or nil
end

local function refresh_schema(self)
    self:set_state('fetch_schema')
    local why = fetch_schema(self)
    if why then return why end
    self:set_state('active')
end

local function receive_all(self)
    while true do
        local header, frame, place = self.link:receive()
        if not header then return frame end
        dispatch(self, header, frame, place)
        local version = header[codes.SCHEMA_VERSION]
        if version and version > 0 and version ~= self.schema_version then
            local why = refresh_schema(self)
            if why then return why end
        end
        if not self.owner[1] then return CLOSED_MESSAGE end
    end
end

-- Hand answers of a text console to requests, in their order.
local function receive_texts(self)
    self.link:send(('require("console").delimiter("%s")\n'):format(DELIMITER))
    local answer, reason = self.link:receive_text()
    if answer ~= CONSOLE_DONE then return reason or 'Unexpected response' end
    self.is_text = true
    self:set_state('active')
    local first = 1
    while true do
        local text, why = self.link:receive_text()
        if not text then return why end
        local request = self.requests[first]
        first = first + 1
        if request then future.finish(request, text) end
        if not self.owner[1] then return CLOSED_MESSAGE end
    end
end

-- Connect, and serve requests until the connection ends. Returns why it has ended.
local function serve(self)
    local timeout = tonumber(self.settings.connect_timeout) or CONNECT_TIMEOUT
    local why
    self.link, why = link.open(self.host, self.port, timeout)
    if not self.link then return why end
    local greeting = self.link.greeting
    tell(self, 'on_greeting', greeting)
    if greeting.protocol == CONSOLE and (self.settings.console or self.settings.is_console_allowed) then return receive_texts(self) end
    if greeting.protocol ~= BINARY then return 'Unsupported protocol: ' .. greeting.protocol end
    why = authenticate(self) or refresh_schema(self)
    if why then return why end
    self.was_active = true
    return receive_all(self)
end

local function disconnect(self)
    if self.link then self.link:close() end
    self.link, self.schema_version = nil, nil
end

-- Wait before another attempt: longer each time.
local function wait_to_reconnect(self, pause, message)
    if message ~= self.logged then
        self.logged = message
        log.warn('%s:%s: %s', tostring(self.host or ''), tostring(self.port or ''), message)
    end
    self:set_state('error_reconnect', message)
    scheduler.suspend(pause)
end

local function run(self)
    local first_pause = tonumber(self.settings.reconnect_after)
    local pause = first_pause
    while self.state ~= 'closed' do
        self.was_active = false
        local ok, message = pcall(serve, self)
        if self.state == 'closed' then return end
        disconnect(self)
        if not ok or not first_pause or not self.owner[1] or scheduler.current().is_cancelled then
            return self:set_state('error', tostring(message))
        end
        if self.was_active then pause, self.logged = first_pause, nil end
        wait_to_reconnect(self, pause, message)
        pause = math.min(pause * PAUSE_FACTOR, first_pause * PAUSE_GROWTH_MAX)
    end
end

function methods:start()
    scheduler.start(function()
        self.fiber = scheduler.current()
        self.fiber.name = ('%s:%s (net.box)'):format(tostring(self.host or ''), tostring(self.port or ''))
        run(self)
    end)
end

-- Close the connection for ever.
function methods:stop()
    if IS_FINAL[self.state] and self.state ~= 'error' then return end
    self:set_state('closed', CLOSED_MESSAGE)
    disconnect(self)
    if self.fiber then scheduler.wake(self.fiber) end
end

-- End what nobody refers to any more: called by the garbage collector, and so without functions of Python.
function methods:abandon()
    if self.link then self.link:shut_down() end
end

return transport
