-- Sockets, as https://www.tarantool.io/en/doc/2.6/reference/reference_lua/socket/ describes them.
-- On purpose different: fibers may read from one socket at the same time; each gets what follows.
local ffi = require('ffi')
local constants = require('internal.sockets.constants')
local object = require('internal.sockets.object')
local streams = require('internal.sockets.streams')
local resolver = require('internal.sockets.resolver')
local connections = require('internal.sockets.connections')
local servers = require('internal.sockets.servers')
local luasocket = require('internal.sockets.luasocket')

object.metatable.__index = require('internal.sockets.methods')

ffi.cdef[[
struct iproto_protocol { char *name; char **aliases; int number; };
struct iproto_protocol *iproto_getprotobyname(const char *name) __asm__("getprotobyname");
]]

local EINVAL, EPROTOTYPE = 22, 91

local function protocol_number(protocol)
    if type(protocol) == 'number' then return protocol end
    if constants.protocols[protocol] then return constants.protocols[protocol] end
    if type(protocol) ~= 'string' then return nil, EINVAL end
    local found = ffi.C.iproto_getprotobyname(protocol)
    if found == nil then return nil, EPROTOTYPE end
    return found.number
end

local function number_of(given, numbers)
    return type(given) == 'number' and given or numbers[given]
end

local function fail(number)
    ffi.errno(number)
    return nil
end

-- Create a socket. Returns nil if there is none, and errno is set.
local function create(_, domain, itype, protocol)
    if domain == nil or itype == nil or protocol == nil then return fail(EINVAL) end
    domain, itype = number_of(domain, constants.DOMAIN), number_of(itype, constants.SO_TYPE)
    if not domain or not itype then return fail(EINVAL) end
    local number, why = protocol_number(protocol)
    if not number then return fail(why) end
    return object.create(domain, itype, number)
end

return setmetatable({
    getaddrinfo = resolver.find,
    iowait = streams.iowait,
    tcp_connect = connections.connect,
    tcp_server = servers.listen,
    internal = constants,
}, {__call = create, __index = luasocket})
