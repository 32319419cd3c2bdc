-- tonumber64: integers of 64 bits from texts.
local ffi = require('ffi')

local NUMBER_END = 100000000000000ULL -- integers from here on are cdata
local PREFIXES = {['0x'] = 16, ['0b'] = 2}
local MAX, MIN_MAGNITUDE = 0xffffffffffffffffULL, 0x8000000000000000ULL

local function digit_of(byte)
    if byte >= 48 and byte <= 57 then return byte - 48 end
    byte = bit.bor(byte, 32)
    return byte >= 97 and byte <= 122 and byte - 87 or 99
end

-- The value of digits; nil if there are none, or others, or too many.
local function magnitude(digits, base)
    if digits == '' then return nil end
    local value = 0ULL
    for place = 1, #digits do
        local digit = digit_of(digits:byte(place))
        if digit >= base or value > (MAX - digit) / base then return nil end
        value = value * base + digit
    end
    return value
end

local function parsed(text, base)
    local sign, digits = text:match('^%s*([+-]?)(%w+)%s*$')
    if not digits then return nil end
    local prefix = PREFIXES[digits:sub(1, 2):lower()]
    if prefix and (base == nil or base == prefix) then digits, base = digits:sub(3), prefix end
    local value = magnitude(digits, base or 10)
    if not value then return nil end
    if sign == '-' then
        if value > MIN_MAGNITUDE then return nil end
        return value < NUMBER_END and -tonumber(value) or -ffi.cast('int64_t', value)
    end
    return value < NUMBER_END and tonumber(value) or value
end

local function is_integer(value)
    return ffi.istype('int64_t', value) or ffi.istype('uint64_t', value)
end

return function(...)
    if select('#', ...) == 0 then error("bad argument #1 to '?' (value expected)", 2) end
    local value, base = ...
    if base ~= nil then
        base = tonumber(base)
        if not base or base < 2 or base > 36 then error("bad argument #2 to '?' (base out of range)", 2) end
    end
    local kind = type(value)
    if kind == 'number' or (kind == 'cdata' and is_integer(value)) then return value end
    return kind == 'string' and parsed(value, base) or nil
end
