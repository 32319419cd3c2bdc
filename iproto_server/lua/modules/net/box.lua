-- Connections to servers, as https://www.tarantool.io/en/doc/2.6/reference/reference_lua/net_box/ describes them.
--
-- On purpose different: the option `buffer` is refused, since there are no buffers; an error of `on_push` ends its
-- request alone; pauses between attempts to reconnect grow.
local log = require('log')
local uri = require('uri')
local scheduler = require('internal.fibers.scheduler')
local failures = require('internal.netbox.failures')
local link = require('internal.netbox.link')
local spaces = require('internal.netbox.spaces')
local transports = require('internal.netbox.transport')
local triggers = require('internal.netbox.triggers')
local own = require('internal.netbox.own')
local check = require('internal.netbox.check')

local CONNECT_USAGE = 'usage: connect(uri[, opts] | host, port[, opts])'
local NO_BUFFERS = 'net.box: there are no buffers, the option buffer is not supported'
local CONSOLE_IS_DEPRECATED =
    "Netbox text protocol support is deprecated since 1.10, please use require('console').connect() instead"

local methods = {}
local metatable = {}

function metatable.__serialize(remote)
    return {
        host = remote.host, port = remote.port, opts = next(remote.opts) and remote.opts,
        state = remote.state, error = remote.error, protocol = remote.protocol, schema_version = remote.schema_version,
        peer_uuid = remote.peer_uuid, peer_version_id = remote.peer_version_id,
    }
end

-- -- what the transport calls --

local events = {}

-- Triggers see the state before.
function events.on_state(remote, state, message)
    local ok, why = true, nil
    if state == 'active' and not remote._is_connected then
        remote._is_connected = true
        ok, why = pcall(remote._on_connect.run, remote._on_connect, remote)
    elseif remote._is_connected and state ~= 'active' and state ~= 'fetch_schema' then
        remote._is_connected = false
        ok, why = pcall(remote._on_disconnect.run, remote._on_disconnect, remote)
    end
    remote.state, remote.error = state, message
    if ok then return end
    if state == 'active' or state == 'closed' then error(why, 0) end
    log.error('%s', tostring(why))
end

function events.on_greeting(remote, greeting)
    remote.protocol, remote.peer_uuid, remote.peer_version_id = greeting.protocol, greeting.uuid, greeting.version_id
end

function events.on_schema(remote, version, space_rows, index_rows, collation_rows)
    remote.schema_version = version
    remote.space = spaces.of_schema(space_rows, index_rows, collation_rows, remote)
    remote._on_schema_reload:run(remote)
end

-- -- requests --

-- The time that a request may take: of its options, or as `timeout()` has set it for the running fiber.
local function end_of(remote, opts)
    if opts and opts.timeout then return scheduler.monotonic() + opts.timeout end
    return remote._deadlines[scheduler.current()]
end

local function left_until(end_at)
    return end_at and end_at - scheduler.monotonic()
end

local function ignore() end

-- Send a request whose body has some arguments, and return its result, or a future with the option `is_async`.
-- `format` is the format of tuples in the response.
function methods:_request(method, opts, format, ...)
    local transport, on_push, on_push_ctx = self._transport, ignore, nil
    if opts then
        if opts.buffer ~= nil then failures.usage(NO_BUFFERS) end
        if opts.is_async then
            if opts.on_push or opts.on_push_ctx then
                error('To handle pushes in an async request use future:pairs()')
            end
            local future, failure = transport:begin(method, table.insert, {}, format, ...)
            if not future then failures.raise(failure) end
            return future
        end
        on_push, on_push_ctx = opts.on_push or ignore, opts.on_push_ctx
    end
    local end_at = end_of(self, opts)
    transport:wait_state('active', left_until(end_at))
    local result, failure = transport:perform(left_until(end_at), method, on_push, on_push_ctx, format, ...)
    if failure then failures.raise(failure) end
    transport:wait_state('active', left_until(end_at)) -- a new schema may be read now
    if result ~= nil then return result end
end

function methods:ping(opts)
    check.remote(self, 'ping')
    local timeout = type(opts) == 'table' and opts.timeout or nil
    return (pcall(self._request, self, 'ping', {timeout = timeout}))
end

local function with_values(method)
    return function(self, name, args, opts)
        check[method](self, args)
        local values = self:_request(method, opts, nil, name, args or {})
        if type(opts) == 'table' and opts.is_async then return values end
        return unpack(values)
    end
end
methods.call, methods.eval = with_values('call'), with_values('eval')

function methods:execute(query, parameters, options, opts)
    check.remote(self, 'execute')
    if options ~= nil then failures.usage('net.box: options of statements are not supported') end
    return self:_request('execute', opts, nil, query, parameters)
end

function methods:prepare(query, parameters, options, opts)
    check.remote(self, 'prepare')
    if type(query) ~= 'string' then failures.usage('Usage: remote:prepare(query)') end
    return self:_request('prepare', opts, nil, query)
end

function methods:unprepare(query, parameters, options, opts)
    check.remote(self, 'unprepare')
    if type(query) ~= 'number' then failures.usage('Usage: remote:unprepare(id)') end
    return (self:_request('unprepare', opts, nil, query))
end

function methods:reload_schema()
    check.remote(self, 'reload_schema')
    self:ping()
end

-- -- state --

function methods:close()
    check.remote(self, 'close')
    self._transport:stop()
end

function methods:is_connected()
    check.remote(self, 'is_connected')
    return self.state == 'active' or self.state == 'fetch_schema'
end

function methods:wait_state(state, timeout)
    check.remote(self, 'wait_state')
    return self._transport:wait_state(state, timeout)
end

function methods:wait_connected(timeout)
    check.remote(self, 'wait_connected')
    return self._transport:wait_state('active', timeout)
end

-- Limit the time of the running fiber's requests from now on.
function methods:timeout(seconds)
    check.remote(self, 'timeout')
    self._deadlines[scheduler.current()] = seconds and scheduler.monotonic() + seconds or nil
    return self
end

for _, name in ipairs{'on_connect', 'on_disconnect', 'on_schema_reload'} do
    methods[name] = function(self, new, old)
        check.remote(self, name)
        return self['_' .. name]:set(new, old)
    end
end

-- -- calls as servers of version 1.6 know them: arguments behind the name, and tuples as results --

local methods_16 = setmetatable({}, {__index = methods})

function methods_16:call(name, ...)
    check.remote(self, 'call')
    return self:_request('call_16', nil, nil, name, {...})
end

function methods_16:eval(text, ...)
    check.remote(self, 'eval')
    return unpack(self:_request('eval', nil, nil, text, {...}))
end

-- -- text consoles --

local console_methods = {
    close = methods.close, is_connected = methods.is_connected, wait_state = methods.wait_state,
    wait_connected = methods.wait_connected, timeout = methods.timeout,
    on_connect = methods.on_connect, on_disconnect = methods.on_disconnect, on_schema_reload = methods.on_schema_reload,
}

-- Evaluate a line. Returns the text of the answer.
function console_methods:eval(line, opts)
    check.remote(self, 'eval')
    local end_at = end_of(self, type(opts) == 'table' and opts or nil)
    self._transport:wait_state('active', left_until(end_at))
    local result, failure = self._transport:perform_line(left_until(end_at), line)
    if failure then failures.raise(failure) end
    return result
end

-- -- creation --

-- The host, the port and the options of arguments of `connect`.
local function parse(...)
    local first, second, third = ...
    if type(first) == 'string' and (type(second) == 'number' or type(second) == 'string') then
        return first, second, third
    end
    local is_port = type(first) == 'number' and first % 1 == 0
    local found = (type(first) == 'string' or is_port) and uri.parse(tostring(first)) or nil
    if not found or not found.service then failures.usage(CONNECT_USAGE) end
    return found.host, found.service, second, found
end

local function settings_of(given, found)
    local settings = {}
    if type(given) == 'table' then
        for name, value in pairs(given) do settings[name] = value end
    end
    if found and settings.user == nil and found.login then
        settings.user, settings.password = found.login, found.password
    end
    if settings.user == nil and settings.password ~= nil then failures.usage('net.box: user is not defined') end
    return settings
end

-- End the connection of an object that nobody refers to any more.
local function guard(transport)
    local sentinel = newproxy(true)
    getmetatable(sentinel).__gc = function() transport:abandon() end
    return sentinel
end

local function metatable_of(settings)
    local found = {__metatable = false, __serialize = metatable.__serialize, __index = methods}
    if settings.console then
        log.warn(CONSOLE_IS_DEPRECATED)
        found.__index = console_methods
    elseif settings.call_16 then
        found.__index = methods_16
    end
    return found
end

local function connect(...)
    local host, port, given, found = parse(...)
    local settings = settings_of(given, found)
    local opts = {}
    for name, value in pairs(settings) do opts[name] = value end
    opts.password, opts.is_console_allowed = nil, nil
    local remote = setmetatable({
        host = host, port = port, opts = opts, state = 'initial', _is_connected = false,
        _deadlines = setmetatable({}, {__mode = 'k'}),
        _on_connect = triggers.new('on_connect'), _on_disconnect = triggers.new('on_disconnect'),
        _on_schema_reload = triggers.new('on_schema_reload'),
    }, metatable_of(settings))
    remote._transport = transports.new(host, port, settings, remote, events)
    remote._guard = guard(remote._transport)
    remote._transport:start()
    if settings.wait_connected ~= false then
        remote._transport:wait_state('active', tonumber(settings.wait_connected))
    end
    return remote
end

-- Connect, and read the greeting. Returns a socket and what the greeting says; nil and a text after an error.
local function establish_connection(host, port, timeout)
    local found, why = link.open(host, port, timeout)
    if not found then return nil, why end
    return found.socket, found.greeting
end

return {connect = connect, new = connect, self = own, establish_connection = establish_connection}
