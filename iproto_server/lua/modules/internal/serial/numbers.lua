-- Numbers of texts. Integers from 10^14 on are int64_t and uint64_t cdata.
local ffi = require('ffi')

local numbers = {}

ffi.cdef[[double iproto_strtod(const char *text, char **behind) __asm__("strtod");]]

local byte, find, tonumber = string.byte, string.find, tonumber
local GREATEST, LEAST = 0xFFFFFFFFFFFFFFFFULL, -0x7FFFFFFFFFFFFFFFLL - 1

-- A number as Tarantool decodes it: a Lua number if it is small, else cdata, signed below 2^63 - 1.
function numbers.unsigned(value)
    if value < 100000000000000ULL then return tonumber(value) end
    if value < 0x7FFFFFFFFFFFFFFFULL then return ffi.cast('int64_t', value) end
    return value
end

function numbers.signed(value)
    if value > -100000000000000LL and value < 100000000000000LL then return tonumber(value) end
    return value
end

-- The magnitude of decimal digits from a place on, and whether it is too large.
local function magnitude(digits, from)
    local value = 0ULL
    for place = from, #digits do
        local digit = byte(digits, place) - 48
        if value > (GREATEST - digit) / 10 then return GREATEST, true end
        value = value * 10 + digit
    end
    return value, false
end

-- The integer of decimal digits, which may have a minus. The nearest of 64 bits stands for one that is too large.
-- Returns it, and whether it was too large.
function numbers.integer(digits)
    if byte(digits, 1) ~= 45 then
        local value, large = magnitude(digits, 1)
        return numbers.unsigned(value), large
    end
    local value, large = magnitude(digits, 2)
    if large or value > 0x8000000000000000ULL then return LEAST, true end
    return numbers.signed(-ffi.cast('int64_t', value)), false
end

-- The number that a text begins with, in C's notation; 0 if it begins with none.
function numbers.leading(text)
    return ffi.C.iproto_strtod(text, nil)
end

-- The number that a whole text is, or nil. LuaJIT's `tonumber` refuses great exponents.
function numbers.of_text(text)
    local number = tonumber(text)
    if number then return number end
    if find(text, '^%s*[+-]?%d+%.?%d*[eE][+-]?%d+%s*$') or find(text, '^%s*[+-]?%.%d+[eE][+-]?%d+%s*$') then
        return numbers.leading(text)
    end
end

return numbers
