-- Snippets about sockets, each behind a line with its name. The first one comes before all others.
local socket, errno, fiber = require('socket'), require('errno'), require('fiber')
local function tcp() return socket('AF_INET', 'SOCK_STREAM', 'tcp') end
local function udp() return socket('AF_INET', 'SOCK_DGRAM', 'udp') end
local function named(s) return (tostring(s):gsub('%d+', 'N')) end
local function text(...) return select(2, pcall(tostring, ...)) end
local function codes(s) return s:errno(), s:error() end
-- Both ends of a connection.
local function pair()
    local listener = tcp()
    listener:bind('127.0.0.1', 0)
    listener:listen()
    local client = socket.tcp_connect('127.0.0.1', listener:name().port)
    local accepted = listener:accept()
    listener:close()
    return accepted, client
end
-- What a fiber returns or raises while something happens.
local function while_waiting(wait, happen)
    local got
    local waiting = fiber.create(function() got = {pcall(wait)} end)
    local ok, why = pcall(happen, waiting)
    while not got do fiber.sleep(0.001) end
    return got[1], type(got[2]) == 'boolean' and got[2] or text(got[2]):gsub('^.-: ', '')
end
--- without a protocol
return socket('AF_INET', 'SOCK_STREAM'), errno()
--- an unknown domain
return socket('AF_NONE', 'SOCK_STREAM', 'tcp'), errno()
--- an unknown type
return socket('AF_INET', 'SOCK_NONE', 'tcp'), errno()
--- an unknown protocol
return socket('AF_INET', 'SOCK_STREAM', 'none'), errno()
--- numbers
return named(socket(2, 1, 6))
--- a protocol that does not fit
return select('#', socket('AF_INET', 'SOCK_STREAM', 'udp')), errno()
--- the texts
return named(tcp()), named(udp()), named(socket('AF_UNIX', 'SOCK_STREAM', 0))
--- methods
local names = {} for name in pairs(getmetatable(tcp()).__index) do names[#names + 1] = name end table.sort(names)
return names
--- constants
local c = require('socket').internal return c.SO_OPT, c.SO_TYPE, c.DOMAIN, c.SEND_FLAGS, c.AI_FLAGS
--- no socket
return tcp().read({}, 1)
--- nothing
return tcp().read()
--- a closed one
local s = tcp() s:close() return s:read(1)
--- closed twice
local s = tcp() return s:close(), pcall(s.close, s)
--- the text of a closed one
local s = tcp() s:close() return pcall(tostring, s)
--- as a table
local t = getmetatable(tcp()).__serialize(tcp()) t.fd = 0 return t
--- bind to a name
local s = tcp() return s:bind('localhost', 0), codes(s)
--- bind to nothing
local s = tcp() return s:bind(), codes(s)
--- bind to another machine
local s = tcp() return s:bind('8.8.8.8', 0), codes(s)
--- bind to IPv6
local s = tcp() return s:bind('::1', 0), codes(s)
--- bind to a short address
local s = tcp() return s:bind('127.1', '0'), s:name().host
--- bind a path
local s = tcp() return s:bind('unix/', '/tmp/x'), codes(s)
--- bind a long path
local s = socket('AF_UNIX', 'SOCK_STREAM', 0) return s:bind('unix/', ('x'):rep(200)), codes(s)
--- name
local s = udp() s:bind('127.0.0.1', 0) local n = s:name() n.port = 0 return n
--- peer of none
local s = tcp() return s:peer(), codes(s)
--- peer
local a, b = pair() return a:peer().port == b:name().port, named(a)
--- an odd backlog
return tcp():listen('x')
--- accept nothing
local s = tcp() s:bind('127.0.0.1', 0) s:listen() return s:accept(), codes(s)
--- connect, under way
local s = tcp() return s:sysconnect('127.0.0.1', 1), codes(s)
--- an option
local s = tcp() return s:setsockopt('SOL_SOCKET', 'SO_REUSEADDR', true), s:getsockopt(1, 'SO_REUSEADDR')
--- an option of TCP
local s = tcp() s:setsockopt('tcp', 'TCP_NODELAY', 1) return s:getsockopt('SOL_TCP', 'TCP_NODELAY')
--- an unknown option
return tcp():getsockopt('SOL_SOCKET', 'SO_NONE')
--- an unknown level
local s = tcp() return s:getsockopt('none', 'SO_TYPE'), codes(s)
--- without a level
local s = tcp() return s:setsockopt(), codes(s)
--- an option that cannot be set
return tcp():setsockopt('SOL_SOCKET', 'SO_TYPE', 1)
--- an option with an odd value
return tcp():setsockopt('SOL_SOCKET', 'SO_REUSEADDR', 'x')
--- an option without a value
return tcp():setsockopt('SOL_SOCKET', 'SO_REUSEADDR')
--- a device that is no text
return tcp():setsockopt('SOL_SOCKET', 'SO_BINDTODEVICE', 5)
--- linger is no simple option
return tcp():getsockopt('SOL_SOCKET', 'SO_LINGER')
--- linger
local s = tcp() local off = {s:linger()} local on = {s:linger(true, 5)} return off, on, {s:linger()}
--- an option with a structure
return tcp():getsockopt('tcp', 'TCP_INFO')
--- nonblock
local s = tcp() return s:nonblock(), s:nonblock(false), s:nonblock(), s:nonblock(true)
--- read nothing in time
local a = pair() return a:read(1, 0), codes(a)
--- read a count
local a, b = pair() b:write('abcdef') return a:read(2), a:read(3, 1), a:read(0)
--- read a line
local a, b = pair() b:write('a\nbc\r\nd') return a:read('\n'), a:read('\r\n'), a:read(1)
--- read with options
local a, b = pair() b:write('ab;cd;efg')
return a:read{delimiter = ';'}, a:read{line = ';', chunk = 2}, a:read{chunk = 1}, a:read({delimiter = {'x', 'g', 'f'}})
--- read up to the end
local a, b = pair() b:write('abc') b:close() return a:read(10), a:read(10), a:read('x')
--- a delimiter that is not there
local a, b = pair() b:write('abc') b:close() return a:read('x'), a:read('x')
--- an empty delimiter
local a, b = pair() b:write('abc') return a:read(''), a:read{delimiter = {'', 'c'}}
--- a negative count
return pair():read(-1)
--- read by nothing
return pair():read()
--- read by an odd delimiter
return pair():read{delimiter = 5}
--- read with an odd time
return pair():read(1, 'x')
--- a large message
local a, b = pair() local text = ('0123456789'):rep(500000) .. '\n' fiber.create(function() b:write(text) end)
return a:read('\n') == text
--- write nothing
return tcp():write()
--- write a table
return pair():write({})
--- write to what is not read
local a, b = pair() return b:write(('x'):rep(30000000), 0.01), codes(b)
--- write to a closed end
local a, b = pair() b:write('x') a:close() b:readable(1) return b:write('x'), b:write('x')
--- write an empty text
local a, b = pair() return b:write(''), b:send(''), b:syswrite('')
--- send
local a, b = pair() return b:send('abc'), a:readable(1), a:recv(2), a:recv(), a:recv(), codes(a)
--- send without data
return pair():send()
--- send a number
return pair():send(5)
--- send with an unknown flag
return pair():send('x', 'MSG_NONE')
--- receive with flags
local a, b = pair() b:write('abc') a:readable(1)
return a:recv(2, 'MSG_PEEK'), a:recv(2, {'MSG_PEEK', 'MSG_DONTWAIT'}), a:recv(2, 'MSG_NONE'), a:recv()
--- sysread
local a, b = pair() b:write('abc') a:readable(1) return a:sysread(2), a:sysread(), a:sysread(), codes(a)
--- sysread of odd sizes
local a = pair() return pcall(a.sysread, a, -1), pcall(a.sysread, a, 'x')
--- syswrite of nothing
return pair():syswrite()
--- not connected
local s = tcp() return s:recv(1), s:sysread(1), s:recvfrom(1), codes(s)
--- shut down
local a, b = pair() return b:shutdown('W'), a:read(1), b:shutdown('R'), b:shutdown(), b:shutdown('x')
--- shut down nothing
local s = tcp() return s:shutdown('RW'), codes(s)
--- reset
local a, b = pair() b:linger(true, 0) b:close() return a:read(1), codes(a)
--- datagrams
local a, b = udp(), udp() a:bind('127.0.0.1', 0) local sent = b:sendto('127.0.0.1', a:name().port, 'hello')
local readable = a:readable(1) local message, from = a:recvfrom(3)
local same = from.port == b:name().port from.port = 0 return sent, readable, message, from, same, a:recv(), codes(a)
--- a whole datagram
local a, b = udp(), udp() a:bind('127.0.0.1', 0) b:sendto('127.0.0.1', a:name().port, ('x'):rep(5000)) a:readable(1)
return #a:recv()
--- sendto nobody
local s = udp() return s:sendto('localhost', 1, 'x'), codes(s)
--- sendto without data
local s = udp() return s:sendto('127.0.0.1', 1), s:sendto()
--- sendto of a number
local s = udp() return s:sendto('127.0.0.1', 1, 555)
--- connected datagrams
local a, b = udp(), udp() a:bind('127.0.0.1', 0) b:sysconnect('127.0.0.1', a:name().port)
b:send('x') b:write('y') a:readable(1)
return a:recv(), a:recv()
--- ready
local a, b = pair() b:write('x') return a:readable(1), a:writable(), a:wait(), b:wait(), b:readable(0)
--- a time that is none
return pcall(tcp().wait, tcp(), {})
--- iowait
local a, b = pair()
return socket.iowait(a:fd(), 'W'), socket.iowait(a:fd(), 'RW'), socket.iowait(a:fd(), 3),
    socket.iowait(a:fd(), 'R', 0), socket.iowait(a:fd(), 1, 0.001)
--- iowait for nothing
return pcall(socket.iowait)
--- iowait for an odd event
return pcall(socket.iowait, 1, 'x', 0)
--- iowait for no descriptor
return pcall(socket.iowait, 'x', 'R')
--- iowait for a bad descriptor
return socket.iowait(9999, 'R', 1), socket.iowait(9999, 2, 1)
--- iowait for time alone
return socket.iowait(nil, nil, 0.001)
--- cancel a reader
local a = pair() return while_waiting(function() return a:read(1) end, fiber.cancel)
--- cancel a writer
local a = pair() return while_waiting(function() return a:write(('x'):rep(30000000)) end, fiber.cancel)
--- cancel one that waits
local a = pair() return while_waiting(function() return a:readable() end, fiber.cancel)
--- cancel iowait
local a = pair() return while_waiting(function() return socket.iowait(a:fd(), 'R') end, fiber.cancel)
--- close what is read
local a = pair() return while_waiting(function() return a:read(1) end, function() a:close() end)
--- close what is written
local a = pair() return while_waiting(function() return a:write(('x'):rep(30000000)) end, function() a:close() end)
--- close what one waits for
local a = pair() return while_waiting(function() return a:readable() end, function() a:close() end)
--- close a listening one
local s = tcp() s:bind('127.0.0.1', 0) s:listen() return while_waiting(function() return s:readable()
end, function() s:close() end)
--- wake one that reads
local a, b = pair() return while_waiting(function() return a:read(2, 1)
end, function(f) f:wakeup() fiber.sleep(0.01) b:write('ab') end)
--- several wait for one
local a, b = pair() local got = {} for i = 1, 3 do fiber.create(function() got[i] = a:readable() end) end b:write('x')
while #got < 3 do fiber.sleep(0.001) end return got
--- addresses
return socket.getaddrinfo('127.0.0.1', 80)
--- addresses with hints
return socket.getaddrinfo('localhost', 'http', 10, {type = 'SOCK_STREAM', family = 'AF_INET', protocol = 'tcp'})
--- addresses with hints in place of a time
return socket.getaddrinfo('127.0.0.1', 1, {type = 'SOCK_DGRAM'})
--- addresses to listen at
return socket.getaddrinfo(nil, '80', {flags = 'AI_PASSIVE', type = 'SOCK_STREAM'})
--- addresses of any
return socket.getaddrinfo('*', 80, {flags = {'AI_PASSIVE'}, type = 'SOCK_STREAM'})
--- addresses of IPv6
return socket.getaddrinfo('::1', 80, {type = 'SOCK_STREAM'})
--- addresses of a name that is a number
return socket.getaddrinfo('localhost', 80, {flags = 'AI_NUMERICHOST', type = 'SOCK_STREAM'}), errno()
--- a canonical name
return socket.getaddrinfo('localhost', 1, {flags = 'AI_CANONNAME', type = 'SOCK_STREAM'})[1].canonname
--- unknown hints
return socket.getaddrinfo('127.0.0.1', 1, {type = 'x'}), errno(),
    socket.getaddrinfo('127.0.0.1', 1, {protocol = 'x'}), errno(),
    socket.getaddrinfo('127.0.0.1', 1, {flags = 'x'}), errno()
--- an unknown host
return socket.getaddrinfo('host.invalid', 1), errno()
--- an unknown service
return socket.getaddrinfo('127.0.0.1', 'none')
--- nobody listens
return socket.tcp_connect('127.0.0.1', 1), errno()
--- connect to an unknown host
return socket.tcp_connect('host.invalid', 1), errno()
--- connect to an unknown path
return socket.tcp_connect('unix/', '/nowhere'), errno()
--- connect with an odd time
return socket.tcp_connect('127.0.0.1', 1, 'x')
--- connect when cancelled
local got fiber.create(function() pcall(fiber.cancel, fiber.self()) got = {pcall(socket.tcp_connect, '127.0.0.1', 1)}
end) while not got do fiber.sleep(0.001) end return got[1], text(got[2])
--- a server without a handler
return socket.tcp_server('127.0.0.1', 0)
--- a server with an odd handler
return socket.tcp_server('127.0.0.1', 0, {handler = 5})
--- a server with an odd preparation
return socket.tcp_server('127.0.0.1', 0, {handler = print, prepare = 5})
--- a preparation that fails
return socket.tcp_server('127.0.0.1', 0, {handler = print, prepare = function() error('no', 0) end})
--- a server at another machine
return socket.tcp_server('8.8.8.8', 0, print), errno()
--- a server at an unknown host
return socket.tcp_server('host.invalid', 0, print), errno()
--- a server where there is one
local s = socket.tcp_server('127.0.0.1', 0, print)
local result = {socket.tcp_server('127.0.0.1', s:name().port, print), errno()} s:close() return result
--- a server
local got = {}
local server, address = socket.tcp_server('127.0.0.1', 0, {
    name = 'echo',
    prepare = function(...) got.prepared = select('#', ...) end,
    handler = function(client, from)
        got.from, got.same, got.fiber = from.host, from.port == client:peer().port, fiber.name():gsub('%d+', 'N')
        client:write(client:read('\n'))
    end,
})
local client = socket.tcp_connect('127.0.0.1', server:name().port)
client:write('hello\n')
got.answer, got.rest = client:read('\n'), client:read(1)
server:close()
return got, address, socket.tcp_connect('127.0.0.1', address.port)
--- a handler that fails
local server = socket.tcp_server('127.0.0.1', 0, function() error('no', 0) end)
local client = socket.tcp_connect('127.0.0.1', server:name().port) local result = client:read(1) server:close()
return result
--- a handler that closes
local server = socket.tcp_server('127.0.0.1', 0, function(client) client:close() end)
local client = socket.tcp_connect('127.0.0.1', server:name().port) local result = client:read(1) server:close()
return result
--- LuaSocket's clients and servers
local server = socket.bind('127.0.0.1', 0) local ip, port, family = server:getsockname()
local client = socket.connect(ip, port) local a = server:accept() client:send('abc\ndef\n')
local line = a:receive('*l') a:settimeout(0.01)
return ip, type(port), family, named(server), named(client), named(a), line, a:receive('*l', 'pre'), a:receive(2)
--- LuaSocket's ends
local server = socket.bind('127.0.0.1', 0) local ip, port = server:getsockname()
local client = socket.connect(ip, port) local a = server:accept() client:send('abc') client:close()
return {a:receive(10)}, {a:receive()}
--- LuaSocket's rests
local server = socket.bind('127.0.0.1', 0) local ip, port = server:getsockname()
local client = socket.connect(ip, port) local a = server:accept() client:send('abc') client:close()
return a:receive('*a'), {a:receive('*a')}
--- LuaSocket's sockets
local s = socket.tcp() return named(s), s:bind('127.0.0.1', 0), s:listen(5), named(s), s:close()
--- LuaSocket's options
local s = socket.tcp()
return s:setoption('reuseaddr', true), s:setoption('linger', {on = true, timeout = 5}),
    s:setoption('tcp-nodelay', true), pcall(s.setoption, s, 'none', true)
--- LuaSocket's errors
return {socket.connect('127.0.0.1', 1)}, {socket.bind('8.8.8.8', 0)}, {socket.tcp():getpeername()},
    {pcall(socket.connect)}, {pcall(socket.bind)}
--- LuaSocket's odd patterns
local server = socket.bind('127.0.0.1', 0) local ip, port = server:getsockname()
local client = socket.connect(ip, port) return pcall(client.receive, client, 'x')
