-- Tarantool's module uuid: UUIDs as values of a C struct.
local _, host = ...
local ffi = require('ffi')

ffi.cdef[[
struct tt_uuid {
    uint32_t time_low;
    uint16_t time_mid;
    uint16_t time_hi_and_version;
    uint8_t clock_seq_hi_and_reserved;
    uint8_t clock_seq_low;
    uint8_t node[6];
};
int iproto_sscanf(const char *text, const char *format, ...) __asm__("sscanf");
]]

local uuid_t = ffi.typeof('struct tt_uuid')
local size = ffi.sizeof(uuid_t)
local TEXT_SIZE = 36
local PARSED = '%8x-%4hx-%4hx-%2hhx%2hhx-' .. ('%2hhx'):rep(6)
local PRINTED = '%08x-%04x-%04x-%02x%02x-' .. ('%02x'):rep(6)
local ORDERS = {l = ffi.abi('be'), b = ffi.abi('le'), h = false, n = ffi.abi('le')} -- whether bytes are swapped

local function is_uuid(value) return ffi.istype(uuid_t, value) end

local function swap_bytes(value)
    value.time_low = bit.bswap(value.time_low)
    value.time_mid = bit.rshift(bit.bswap(value.time_mid), 16)
    value.time_hi_and_version = bit.rshift(bit.bswap(value.time_hi_and_version), 16)
end

local function swapped_by(order)
    if order == nil then return false end
    local swapped = ORDERS[order]
    if swapped == nil then error('invalid byteorder, valid is l, b, h, n') end
    return swapped
end

local function to_text(value)
    if not is_uuid(value) then error('Usage: uuid:str()', 2) end
    local node = value.node
    return PRINTED:format(value.time_low, value.time_mid, value.time_hi_and_version, value.clock_seq_hi_and_reserved,
        value.clock_seq_low, node[0], node[1], node[2], node[3], node[4], node[5])
end

local function to_binary(value, order)
    if not is_uuid(value) then error('Usage: uuid:bin([byteorder])', 2) end
    if not swapped_by(order) then return ffi.string(value, size) end
    local copy = ffi.new(uuid_t, value)
    swap_bytes(copy)
    return ffi.string(copy, size)
end

-- nil if the text is no UUID. The numbers are as C's sscanf reads them.
local function from_text(text)
    if type(text) ~= 'string' then error('fromstr(str)') end
    if #text ~= TEXT_SIZE then return nil end
    local value = ffi.new(uuid_t)
    local bytes = ffi.cast('uint8_t *', value)
    local found = ffi.C.iproto_sscanf(text, PARSED, ffi.cast('uint32_t *', bytes), ffi.cast('uint16_t *', bytes + 4),
        ffi.cast('uint16_t *', bytes + 6), bytes + 8, bytes + 9, bytes + 10, bytes + 11, bytes + 12, bytes + 13,
        bytes + 14, bytes + 15)
    -- The variants up to Microsoft's; the rest is reserved.
    if found ~= 11 or value.clock_seq_hi_and_reserved >= 0xE0 then return nil end
    return value
end

local function from_binary(bytes, order)
    if type(bytes) ~= 'string' or #bytes ~= size then error('frombin(bin, [byteorder])') end
    local swapped = swapped_by(order)
    local value = ffi.new(uuid_t)
    ffi.copy(value, bytes, size)
    if swapped then swap_bytes(value) end
    return value
end

local function new() return from_binary(host.uuid_random(), 'n') end

local function is_nil(value)
    if not is_uuid(value) then error('Usage: uuid:isnil()', 2) end
    return ffi.string(value, size) == ('\0'):rep(size)
end

local function equal(left, right)
    if not is_uuid(left) then error('Usage: uuid == var', 2) end
    return is_uuid(right) and ffi.string(left, size) == ffi.string(right, size)
end

ffi.metatype(uuid_t, {
    __eq = equal,
    __index = {bin = to_binary, isnil = is_nil, str = to_text},
    __tostring = to_text,
})
require('internal.serial.serializer').add_scalar(uuid_t, tostring)

local constants = ffi.new('const struct tt_uuid[1]')

return setmetatable({
    NULL = constants[0],
    bin = function(order) return to_binary(new(), order) end,
    frombin = from_binary,
    fromstr = from_text,
    new = new,
    str = function() return to_text(new()) end,
}, {__call = new, constants = constants}) -- `NULL` refers to them
