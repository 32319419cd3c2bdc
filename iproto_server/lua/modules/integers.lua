-- Integers of texts: numbers below 10^14, int64_t and uint64_t cdata from there on.
local ffi = require('ffi')

local integers = {}

local byte, tonumber = string.byte, tonumber
local GREATEST, LEAST = 0xFFFFFFFFFFFFFFFFULL, -0x7FFFFFFFFFFFFFFFLL - 1

-- A number as Tarantool decodes it: a Lua number if it is small, else cdata, signed below 2^63 - 1.
function integers.unsigned(value)
    if value < 100000000000000ULL then return tonumber(value) end
    if value < 0x7FFFFFFFFFFFFFFFULL then return ffi.cast('int64_t', value) end
    return value
end

function integers.signed(value)
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
function integers.read(digits)
    if byte(digits, 1) ~= 45 then
        local value, large = magnitude(digits, 1)
        return integers.unsigned(value), large
    end
    local value, large = magnitude(digits, 2)
    if large or value > 0x8000000000000000ULL then return LEAST, true end
    return integers.signed(-ffi.cast('int64_t', value)), false
end

return integers
