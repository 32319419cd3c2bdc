-- Addresses of sockets: C structs of the operating system, and tables of Lua. Host names are not resolved here.
local ffi = require('ffi')
local constants = require('internal.sockets.constants')

ffi.cdef[[
union iproto_address {
    uint16_t family;
    struct { uint16_t family; uint8_t port[2]; uint8_t host[4]; uint8_t zero[8]; } inet;
    struct { uint16_t family; uint8_t port[2]; uint32_t flow; uint8_t host[16]; uint32_t scope; } inet6;
    struct { uint16_t family; char path[108]; } local;
    char bytes[128];
};
int iproto_inet_aton(const char *text, void *host) __asm__("inet_aton");
int iproto_inet_pton(int family, const char *text, void *host) __asm__("inet_pton");
const char *iproto_inet_ntop(int family, const void *host, char *text, uint32_t size) __asm__("inet_ntop");
]]

local AF_UNIX, AF_INET, AF_INET6 = constants.AF_UNIX, constants.AF_INET, constants.AF_INET6
local EINVAL, ENOBUFS = 22, 105
local PATH_MAX, PATH_OFFSET, TEXT_MAX = 108, 2, 64
local UNIX = 'unix/'

local library = ffi.C
local address_t = ffi.typeof('union iproto_address')
local text_t = ffi.typeof('char[?]')

local addresses = {UNIX = UNIX, size_max = ffi.sizeof(address_t)}

function addresses.new() return address_t() end

-- A port's number: the digits that a text begins with, as C's atoi.
local function port_number(port)
    local number = tonumber(tostring(port):match('^%s*([+-]?%d+)')) or 0
    return bit.band(number, 0xffff)
end

local function set_port(bytes, number)
    bytes[0], bytes[1] = bit.rshift(number, 8), bit.band(number, 0xff)
end

local function local_address(path)
    if path == '' then return nil, EINVAL end
    if #path >= PATH_MAX then return nil, ENOBUFS end
    local address = address_t()
    address['local'].family = AF_UNIX
    ffi.copy(address['local'].path, path, #path)
    return address, ffi.sizeof(address['local'])
end

-- The address of a numeric host, or of a path at the host `unix/`. Returns it and its size, or nil and an error number.
function addresses.make(host, port)
    if host == nil then return nil, EINVAL end
    host, port = tostring(host), port == nil and '' or tostring(port):match('^%Z*')
    if host == UNIX then return local_address(port) end
    local address = address_t()
    if library.iproto_inet_aton(host, address.inet.host) ~= 0 then
        address.inet.family = AF_INET
        set_port(address.inet.port, port_number(port))
        return address, ffi.sizeof(address.inet)
    end
    if library.iproto_inet_pton(AF_INET6, host, address.inet6.host) == 1 then
        address.inet6.family = AF_INET6
        set_port(address.inet6.port, port_number(port))
        return address, ffi.sizeof(address.inet6)
    end
    return nil, EINVAL
end

local function host_text(family, host)
    local text = text_t(TEXT_MAX)
    return ffi.string(library.iproto_inet_ntop(family, host, text, TEXT_MAX))
end

local function port_of(bytes) return bytes[0] * 256 + bytes[1] end

-- The host, the port and the family of an address that has some size; nil if the family is another one, or none.
function addresses.describe(address, size)
    if size < PATH_OFFSET then return nil end
    local family = address.family
    local found = {family = constants.domain_names[family]}
    if family == AF_INET then
        found.host, found.port = host_text(AF_INET, address.inet.host), port_of(address.inet.port)
    elseif family == AF_INET6 then
        found.host, found.port = host_text(AF_INET6, address.inet6.host), port_of(address.inet6.port)
    elseif family == AF_UNIX then
        local path = ffi.string(address['local'].path, math.min(size - PATH_OFFSET, PATH_MAX))
        found.host, found.port = UNIX, path:match('^%Z*')
    else
        return nil
    end
    return found
end

-- An address as text.
function addresses.format(described)
    return described.host .. ':' .. described.port
end

return addresses
