-- Tarantool's module decimal: numbers of up to 38 decimal digits, as values of a C struct. Python calculates.
-- On purpose different: the number of the unnamed struct in LuaJIT's own messages; a `decimal_t` of zeros, which is no
-- number in Tarantool, is 0; exp may differ in the last digit, as it is rounded correctly.
local _, host = ...
local ffi = require('ffi')

ffi.cdef[[
typedef struct {
    int32_t digits;
    int32_t exponent;
    uint8_t bits;
    uint16_t lsu[13];
} decimal_t;
]]

local decimal_t = ffi.typeof('decimal_t')
local size = ffi.sizeof(decimal_t)
local type_number = tonumber(decimal_t)

local function packed(bytes)
    local value = ffi.new(decimal_t)
    ffi.copy(value, bytes, size)
    return value
end

-- References, as elements of arrays, have other types.
local function is_decimal(value)
    return type(value) == 'cdata' and tonumber(ffi.typeof(value)) == type_number
end

-- Texts of a number of C, by the number of its type.
local as_text = {}
local function with_texts(names, text)
    for _, name in ipairs(names) do as_text[tonumber(ffi.typeof(name))] = text end
end
local function float_text(value) return ('%.15g'):format(tonumber(value)) end
with_texts({'char', 'int8_t', 'uint8_t', 'int16_t', 'uint16_t', 'int32_t', 'uint32_t', 'float', 'double'}, float_text)
with_texts({'int64_t', 'uint64_t'}, function(value) return (tostring(value):gsub('U?LL$', '')) end)

-- The bytes of an operand. Its errors are those of the public function that calls this.
local function operand(value, place)
    local kind = type(value)
    local text
    if kind == 'cdata' then
        local number = tonumber(ffi.typeof(value))
        if number == type_number then return ffi.string(value, size) end
        text = as_text[number] and as_text[number](value)
    elseif kind == 'number' then
        text = ('%.15g'):format(value)
    elseif kind == 'string' then
        text = value
    end
    if not text then error(('expected decimal, number or string as %d argument'):format(place), 3) end
    local bytes = host.decimal_parse(text)
    if not bytes then error(('incorrect value to convert to decimal as %d argument'):format(place), 3) end
    return bytes
end

-- The bytes of an argument that must be a decimal.
local function decimal_bytes(value)
    if type(value) ~= 'cdata' then error('expected cdata as 1 argument', 3) end
    if not is_decimal(value) then error('expected decimal as 1 argument', 3) end
    return ffi.string(value, size)
end

local function failed() error('decimal operation failed', 3) end

local function binary(calculate)
    return function(left, right)
        local one = operand(left, 1)
        local result = calculate(one, operand(right, 2))
        if not result then failed() end
        return packed(result)
    end
end

local function unary(usage, calculate)
    return function(...)
        if select('#', ...) < 1 then error(usage, 2) end
        local result = calculate(operand((...), 1))
        if not result then failed() end
        return packed(result)
    end
end

-- As lua_tointeger of C, cut to 32 bits: what is no number is 0.
local function integer(value)
    if type(value) ~= 'number' and type(value) ~= 'string' then return 0 end
    local number = tonumber(value)
    if not number or number ~= number or math.abs(number) >= 2 ^ 63 then return 0 end
    return tonumber(ffi.cast('int32_t', ffi.cast('int64_t', number)))
end

local function scaled(usage, calculate)
    return function(...)
        if select('#', ...) < 2 then error(usage, 2) end
        local value, scale = ...
        local result = calculate(decimal_bytes(value), integer(scale))
        if not result then failed() end
        return packed(result)
    end
end

local metatable = {
    __unm = unary('usage: decimal.minus(decimal)', host.decimal_minus),
    __add = binary(host.decimal_add),
    __sub = binary(host.decimal_subtract),
    __mul = binary(host.decimal_multiply),
    __div = binary(host.decimal_divide),
    __mod = binary(host.decimal_remainder),
    __pow = binary(host.decimal_power),
    __tostring = function(value) return host.decimal_text(decimal_bytes(value)) end,
}
metatable.__index = metatable

-- nil or NULL.
local function is_null(value) return not is_decimal(value) and value == nil end

function metatable.__eq(left, right)
    if is_null(left) or is_null(right) then return false end
    local one = operand(left, 1)
    return host.decimal_compare(one, operand(right, 2)) == 0
end

local function refuse_nil(left, right)
    if type(left) == 'nil' or type(right) == 'nil' then error('attempt to compare decimal with nil', 3) end
end

function metatable.__lt(left, right)
    refuse_nil(left, right)
    local one = operand(left, 1)
    return host.decimal_compare(one, operand(right, 2)) < 0
end

function metatable.__le(left, right)
    refuse_nil(left, right)
    local one = operand(left, 1)
    return host.decimal_compare(one, operand(right, 2)) <= 0
end

ffi.metatype(decimal_t, metatable)
require('internal.serial.serializer').add_scalar(decimal_t, tostring)

local decimal = {
    abs = unary('usage: decimal.abs(decimal)', host.decimal_absolute),
    exp = unary('usage: decimal.exp(decimal)', host.decimal_exponential),
    ln = unary('usage: decimal.ln(decimal)', host.decimal_logarithm),
    log10 = unary('usage: decimal.log10(decimal)', host.decimal_logarithm10),
    new = unary('usage: decimal.new(value)', function(bytes) return bytes end),
    rescale = scaled('usage: decimal.rescale(decimal, scale)', host.decimal_rescale),
    round = scaled('usage: decimal.round(decimal, scale)', host.decimal_round),
    sqrt = unary('usage: decimal.sqrt(decimal)', host.decimal_square_root),
}

function decimal.is_decimal(...)
    if select('#', ...) < 1 then error('usage: decimal.is_decimal(value)', 2) end
    return is_decimal((...))
end

-- The number of digits before and behind the point; a zero before the point does not count.
function decimal.precision(...)
    if select('#', ...) < 1 then error('usage: decimal.precision(decimal)', 2) end
    local value = ...
    decimal_bytes(value)
    if value.exponent > 0 then return value.digits + value.exponent end
    return math.max(value.digits, -value.exponent)
end

function decimal.scale(...)
    if select('#', ...) < 1 then error('usage: decimal.scale(decimal)', 2) end
    local value = ...
    decimal_bytes(value)
    return value.exponent < 0 and -value.exponent or 0
end

function decimal.trim(...)
    if select('#', ...) < 1 then error('usage: decimal.trim(decimal)', 2) end
    return packed(host.decimal_trim(decimal_bytes((...))))
end

return decimal
