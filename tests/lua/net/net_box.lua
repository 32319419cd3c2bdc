-- Snippets about connections to a server, whose path comes in place of @PATH@.
if not box then box = require('internal.box.init') end
local net, fiber, socket = require('net.box'), require('fiber'), require('socket')
local ADDRESS = 'user:secret@unix/:@PATH@'
fiber.sleep(0.001) -- a process that has waited for a snippet has an old time, from which timeouts count
local c = net.connect(ADDRESS)
c:call('refill')
local s = c.space.test
local function text(value) return value ~= nil and tostring(value) or value end
-- What `pcall` returns, with errors as texts.
local function try(...)
    local results = {pcall(...)}
    if not results[1] then results[2] = text(results[2]):gsub('^builtin%S+ ', '') end
    return results
end
local function state(connection) return connection.state, text(connection.error), connection:is_connected() end
local function rows(list)
    local found = {}
    for place, row in ipairs(list) do found[place] = tostring(row) end
    return found
end
-- The address of a server that hands on what it receives, and a function that cuts its connections.
local function relay()
    local open = {}
    local function copy(from, to)
        while true do
            if not from:readable(1) then break end
            local data = from:sysread()
            if data == '' then break end
            if data then to:write(data) end
        end
    end
    local server = socket.tcp_server('127.0.0.1', 0, function(client)
        local upstream = socket.tcp_connect('unix/', '@PATH@')
        open[#open + 1] = client
        fiber.create(pcall, copy, upstream, client)
        pcall(copy, client, upstream)
    end)
    local function cut()
        for _, client in ipairs(open) do pcall(client.shutdown, client, 'RW') end
        open = {}
    end
    return 'user:secret@127.0.0.1:' .. server:name().port, cut, server
end
--- a connection
return c.state, c.host, type(c.port), c.protocol, type(c.peer_uuid), c.opts, c.error, type(c.schema_version), c:ping()
--- without arguments
return try(net.connect)
--- an odd address
return try(net.connect, '::'), try(net.connect, {}), try(net.connect, 1.5), try(net.connect, '')
--- a password alone
return try(net.connect, 'unix/', '@PATH@', {password = 'x'})
--- a user as an option
return state(net.connect('unix/', '@PATH@', {user = 'user', password = 'secret'}))
--- a wrong password
return state(net.connect('user:wrong@unix/:@PATH@'))
--- an unknown user
return state(net.connect('nobody:x@unix/:@PATH@'))
--- without a password
return state(net.connect('user@unix/:@PATH@'))
--- as guest
return state(net.connect('unix/:@PATH@'))
--- nobody listens
local other = net.connect('127.0.0.1:1')
return {state(other)}, try(other.call, other, 'echo'), other:ping(), other:wait_connected(), other.space
--- an unknown host
return state(net.connect('host.invalid:1'))
--- without waiting
local other = net.connect(ADDRESS, {wait_connected = false})
local before = other:is_connected()
return before, other:wait_connected(5), {state(other)}, other.opts
--- what is no server
local server = socket.tcp_server('127.0.0.1', 0, function(client) client:write(('x'):rep(128)) end)
local other = net.connect('127.0.0.1', server:name().port)
server:close()
return state(other)
--- a short greeting
local server = socket.tcp_server('127.0.0.1', 0, function(client) client:write('short') end)
local other = net.connect('127.0.0.1', server:name().port)
server:close()
return state(other)
--- a server that says nothing
local server = socket.tcp_server('127.0.0.1', 0, function(client) fiber.sleep(0.2) end)
local other = net.connect('127.0.0.1', server:name().port, {connect_timeout = 0.02})
server:close()
return state(other)
--- closed
c:close()
local failed = try(c.call, c, 'echo')
return {state(c)}, failed, c:ping(), c:wait_connected(), try(c.close, c), try(s.get, s, 1), c:reload_schema(),
    try(c.call, c, 'echo', {}, {is_async = true})
--- the error of a connection that is closed
c:close()
local _, why = pcall(c.call, c, 'echo')
return type(why), why.code, why.type
--- waiting for a state
return c:wait_state('active', 0), c:wait_state({active = true, closed = true}), c:wait_state('closed', 0.01)
--- call
return {c:call('echo')}, {c:call('echo', {})}, {c:call('echo', {1, 'a', {x = 1}, {2}, 1.5, -1, true})}
--- call with nil
return c:call('echo', {1, nil, 3})
--- large integers
return c:call('echo', {18446744073709551615ULL, -9223372036854775807LL, 2 ^ 53})
--- a large argument
return #c:call('echo', {('x'):rep(3000000)})
--- a tuple as an argument
return text(c:call('echo', {box.tuple.new{1, 'a'}})[2])
--- call what is not there
return try(c.call, c, 'nothing'), try(c.call, c), try(c.call, c, 5)
--- call what fails
local _, why = pcall(c.call, c, 'fail')
return type(why), text(why), why.code, why.type
--- call what raises an error of box
local _, why = pcall(c.call, c, 'refuse')
return type(why), text(why), why.code, why.type
--- call with odd arguments
return try(c.call, c, 'echo', 5), try(c.call, c, 'echo', 1, 2), try(c.call, c, 'echo', box.tuple.new{1})
--- without an object
return try(c.call), try(c.call, 'echo'), try(c.ping), try(c.eval), try(c.close), try(c.is_connected), try(c.on_connect)
--- eval
return {c:eval('return ...', {1, 2})}, {c:eval('return')}, {c:eval('local x = 1')}, {c:eval()}
--- eval what fails
return try(c.eval, c, 'x x'), try(c.eval, c, 'error("no", 0)'), try(c.eval, c, 'return 1', 5)
--- times
return try(c.call, c, 'sleep', {5}, {timeout = 0.01}), try(c.call, c, 'echo', {}, {timeout = 0}),
    try(c.call, c, 'echo', {}, {timeout = -1}), c:call('echo', {1}, {timeout = 5}), c:ping{timeout = 5}
--- the error of a time
local _, why = pcall(c.call, c, 'sleep', {5}, {timeout = 0.001})
return type(why), why.code, why.type
--- odd options
return try(c.call, c, 'echo', {}, {timeout = 'x'}), try(c.call, c, 'echo', {}, 5),
    try(c.call, c, 'echo', {1}, {none = 1})
--- a time for a fiber
return c:timeout(5) == c, c:call('echo', {1}), try(function() return c:timeout(0.001):call('sleep', {5}) end)
--- a space
return s.id > 511, s.name, s.engine, s.field_count, s.temporary, s.enabled, s._format, c.space[s.id] == s
--- indexes
local pk, name = s.index.pk, s.index.name
return pk.id, pk.name, pk.type, pk.unique, pk.parts, name.unique, name.parts, s.index[0] == pk, pk.space == s
--- insert and replace
return text(s:insert{4, 'd'}), text(s:replace{4, 'e'}), try(s.insert, s, {4, 'f'}), try(s.insert, s, {'x'})
--- the error of a duplicate
local _, why = pcall(s.insert, s, {1, 'x'})
return type(why), text(why), why.code, why.type
--- get
return text(s:get(1)), text(s:get{2}), text(s:get(box.tuple.new{3})), s:get(9), select('#', s:get(9)),
    try(s.get, s, 'x')
--- get several
return try(s.index.name.get, s.index.name, {})[1]
--- fields of a row
local row = s:get(1)
return type(row), row.id, row.name, row:tomap{names_only = true}, row[1], #row
--- select
return rows(s:select()), rows(s:select(2)), rows(s:select{9}), rows(s:select({}, {limit = 1, offset = 1})),
    rows(s:select(nil, {limit = 2})), rows(s:select({}, {limit = 0}))
--- select by iterators
local found = {}
for place, iterator in ipairs{'EQ', 'REQ', 'ALL', 'LT', 'LE', 'GE', 'GT', 'gt'} do
    found[place] = rows(s:select(2, {iterator = iterator}))
end
return found, rows(s:select({2}, {iterator = 5})), try(s.select, s, 2, {iterator = 'none'})
--- update
return text(s:update(1, {{'=', 2, 'x'}})), text(s:update(1, {{'=', 'name', 'y'}})), s:update(9, {{'=', 2, 'x'}}),
    try(s.update, s, 1), try(s.update, s, 1, {{'=', 7, 'x'}})
--- upsert
return s:upsert({5, 'q'}, {{'=', 2, 'w'}}), s:upsert({5, 'q'}, {{'=', 2, 'w'}}), text(s:get(5)), try(s.upsert, s)
--- delete
return text(s:delete(1)), s:delete(1), try(s.delete, s), rows(s:select())
--- what is no row
return try(s.insert, s, 5), try(s.insert, s), try(s.insert, s, 'x')
--- an index
local i = s.index.name
return rows(i:select('b')), text(i:get('b')), text(i:min()), text(i:max()), text(i:min('b')), text(i:max('b')),
    i:count(), i:count('b'), s.index.pk:count(2, {iterator = 'GE'}), try(i.delete, i, 'b'), try(i.update, i, 'b', {})
--- the primary index
local i = s.index.pk
return text(i:update(1, {{'=', 2, 'z'}})), text(i:delete(1)), i:min(99), i:count()
--- methods without an object
return try(s.insert, {1}), try(s.get, 1), try(s.index.pk.get, 1), try(s.select), try(s.index.pk.select)
--- what remote spaces do not have
return s.count, s.len, s.pairs, s.truncate, s.drop, s.index.pk.random, s.index.pk.pairs
--- a space without indexes
local bare = c.space.bare
return try(bare.select, bare), try(bare.insert, bare, {1}), bare.index
--- what is not there
return c.space.nothing, s.index.nothing, c.space[99999]
--- a space that is created
c:eval("box.schema.space.create('new'):create_index('pk')")
c:ping()
local there = c.space.new ~= nil and c.space.new.index.pk ~= nil
c.space.new:insert{1}
c:eval('box.space.new:drop()')
c:ping()
return there, c.space.new
--- statements of SQL
return c:execute('values (?, :a)', {1, {[':a'] = 'x'}}).rows[1]:totable(), c:execute('select 1').metadata,
    try(c.execute, c, 'selec')
--- a prepared statement
local prepared = c:prepare('select ? + 1')
local found = c:execute(prepared.stmt_id, {1}).rows[1]:totable()
return prepared.param_count, #prepared.params, found, c:unprepare(prepared.stmt_id)
--- a future
local future = c:call('sleep', {0.01}, {is_async = true})
local before = {future:is_ready(), text(select(2, future:result()))}
local result = future:wait_result(5)
return before, result, future:is_ready(), future:result(), future:wait_result(), future:discard()
--- futures of rows
local function of(method, ...) return s[method](s, ...):wait_result(5) end
local async = {is_async = true}
return rows(of('select', {}, async)), text(of('get', 1, async)), of('get', 9, async),
    text(of('insert', {7, 'x'}, async)), text(of('delete', 7, async)), text(s.index.pk:min({}, async):wait_result(5)),
    s.index.pk:count({}, async):wait_result(5)
--- futures of what fails
local future = c:call('nothing', {}, {is_async = true})
local result, why = future:wait_result(5)
return result, type(why), text(why), future:is_ready(), text(select(2, future:result()))
--- a future that is late
local future = c:call('sleep', {5}, {is_async = true})
local result, why = future:wait_result(0.001)
return result, text(why), future:is_ready(), text(select(2, future:wait_result(0)))
--- odd times of futures
local future = c:call('echo', {}, {is_async = true})
return try(future.wait_result, future, 'x'), try(future.wait_result, future, -1), try(future.pairs, future, 'x'),
    try(future.pairs, future, -1)
--- a future that is discarded
local future = c:call('echo', {}, {is_async = true})
future:discard()
return future:is_ready(), text(select(2, future:result())), text(select(2, future:wait_result(1))), c:call('echo', {1})
--- futures in another order
local futures, found = {}, {}
for number = 1, 100 do futures[number] = c:call('echo', {number}, {is_async = true}) end
for number = 100, 1, -1 do found[number] = futures[number]:wait_result(5)[1] end
return found[1], found[50], found[100]
--- futures of a connection that is closed
local future = c:call('sleep', {5}, {is_async = true})
c:close()
return future:is_ready(), text(select(2, future:result()))
--- pushed messages
local list = {}
return c:call('push', {3}), c:call('push', {3}, {on_push = table.insert, on_push_ctx = list}), list
--- pushed messages of a future
local future, found = c:call('push', {3}, {is_async = true}), {}
for number, message in future:pairs(5) do found[number] = message end
return found
--- pushed messages before an error
local future, found = c:call('nothing', {}, {is_async = true}), {}
for number, message in future:pairs(5) do found[#found + 1] = {text(number), text(message)} end
return found
--- pushed messages that are late
local future, found = c:call('sleep', {5}, {is_async = true}), {}
for number, message in future:pairs(0.001) do found[#found + 1] = {text(number), text(message)} end
return found
--- pushed messages and futures
return try(c.call, c, 'push', {1}, {is_async = true, on_push = print})
--- triggers of a connection
local seen = {}
local other = net.connect(ADDRESS, {wait_connected = false})
local function note(name)
    return function(...) seen[#seen + 1] = {name, select('#', ...), (...) == other, other.state} end
end
local returned = {other:on_connect(note('connect')), other:on_disconnect(note('disconnect'))}
other:on_schema_reload(note('reload'))
other:wait_connected()
other:close()
return seen, returned
--- triggers that are replaced
local function a() end
local function b() end
local returned = {select('#', c:on_connect(a)), c:on_connect(b, a) == a, #c:on_connect(), c:on_connect(nil, b) == b}
return returned, #c:on_connect(), try(c.on_connect, c, 5), try(c.on_disconnect, c, nil, a)
--- a trigger that fails
local other = net.connect(ADDRESS, {wait_connected = false})
other:on_connect(function() error('no', 0) end)
return other:wait_connected(), state(other)
--- a connection that is cut
local address, cut, server = relay()
local other = net.connect(address)
local future = other:call('sleep', {5}, {is_async = true})
cut()
local _, why = future:wait_result(5)
other:wait_state('error', 5)
server:close()
return text(why), {state(other)}, try(other.call, other, 'echo'), other:ping()
--- a connection that is made again
local address, cut, server = relay()
local seen = {}
local other = net.connect(address, {reconnect_after = 0.02})
other:on_disconnect(function() seen[#seen + 1] = 'disconnect' end)
other:on_connect(function() seen[#seen + 1] = 'connect' end)
local future = other:call('sleep', {5}, {is_async = true})
cut()
local _, why = future:wait_result(5)
local is_there = other:wait_state('error_reconnect', 5)
local before = {state(other)}
local result = other:call('echo', {1})
local row = text(other.space.test:get(1))
other:close()
server:close()
return text(why), is_there, before, result, row, seen, {state(other)}
--- nobody listens yet
local other = net.connect('127.0.0.1:1', {reconnect_after = 0.02, wait_connected = false})
local is_there = other:wait_state('error_reconnect', 5)
local failed = try(other.call, other, 'echo', {}, {timeout = 0.01})
local connected = other:wait_connected(0.05)
other:close()
return is_there, failed, connected, {state(other)}
--- a fiber that waits is woken
local result
local waiting = fiber.create(function() result = c:call('sleep', {0.05}) end)
fiber.sleep(0.01)
waiting:wakeup()
while not result do fiber.sleep(0.001) end
return result
--- a fiber that waits is cancelled
local waiting = fiber.create(function() c:call('sleep', {0.05}) end)
fiber.sleep(0.01)
waiting:cancel()
fiber.sleep(0.01)
return c:ping(), c:call('echo', {1}), (state(c))
--- calls of version 1.6
local old = net.connect(ADDRESS, {call_16 = true})
return rows(old:call('echo', 1, 2)), rows(old:call('echo', {1, 2}, {3})), rows(old:call('echo')),
    {old:eval('return ...', 1, 2)}, try(old.call, old, 'nothing')
--- the connection to itself
local own = net.self
function _G.net_box_echo(...) return ... end
return own:ping(), own:is_connected(), own:wait_connected(), own:timeout(1) == own, {own:call('net_box_echo', {1, 2})},
    {own:eval('return ...', {1, 2})}, {own:eval('1, 2')}, {own:call('string.format', {'%d', 5})}
--- what fails on the connection to itself
local own = net.self
return try(own.call, own, 'nothing'), try(own.eval, own, 'x x'), try(own.eval, own, 'error("no", 0)'), try(own.call),
    try(own.call, own, 'nothing', 5), try(own.eval, own, '1', 5), own.state
--- a text console
local server = socket.tcp_server('127.0.0.1', 0, function(client)
    client:write(('%-63s\n%-63s\n'):format('Tarantool 2.6.0 (Lua console)', "type 'help' for interactive help"))
    if client:read('\n') == 'require("console").delimiter("$EOF$")\n' then client:write('---\n...\n') end
    while true do
        local line = client:read('$EOF$\n')
        if not line or line == '' then break end
        client:write('---\n- ' .. line .. '...\n')
    end
end)
local port = server:name().port
local console, binary = net.connect('127.0.0.1', port, {console = true}), net.connect('127.0.0.1', port)
local result = {console:eval('1'), console:eval('2'), console.space, console.protocol, console.peer_uuid, console.call}
console:close()
server:close()
return result, {state(binary)}
