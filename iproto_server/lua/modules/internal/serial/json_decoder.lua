-- The decoder of JSON texts: a recursive descent that looks at single bytes.
local serializer = require('internal.serial.serializer')
local numbers = require('internal.serial.numbers')
local encoded = require('internal.characters').encoded

local byte, sub, find, match = string.byte, string.sub, string.find, string.match
local array_mt, map_mt, NULL = serializer.array_mt, serializer.map_mt, serializer.NULL
local setmetatable, tonumber = setmetatable, tonumber

local QUOTE, BACKSLASH, COMMA, COLON, MINUS = 34, 92, 44, 58, 45

-- Strings ------------------------------------------------------------------------------------------------------------

local SIMPLE = {b = '\b', f = '\f', n = '\n', r = '\r', t = '\t', ['"'] = '"', ['\\'] = '\\', ['/'] = '/'}

-- The character of an escape sequence, and the place behind it; or nil, what is wrong, and where.
local function unescape(text, at)
    local letter = sub(text, at + 1, at + 1)
    if SIMPLE[letter] then return SIMPLE[letter], at + 2 end
    if letter ~= 'u' then return nil, 'invalid escape code', at end
    local digits = match(text, '^%x%x%x%x', at + 2)
    local code = digits and tonumber(digits, 16)
    local behind = at + 6
    if code and code >= 0xD800 and code < 0xDC00 then
        local low = match(text, '^\\u([dD][c-fC-F]%x%x)', behind)
        code = low and (code - 0xD800) * 0x400 + tonumber(low, 16) - 0xDC00 + 0x10000
        behind = behind + 6
    elseif code and code >= 0xDC00 and code < 0xE000 then
        code = nil
    end
    if not code then return nil, 'invalid unicode escape code', at end
    return encoded(code), behind
end

local function read_escaped(text, at, parts)
    while true do
        local stop = find(text, '["\\%z]', at)
        local found = stop and byte(text, stop)
        if not found or found == 0 then return nil, 'unexpected end of string', stop or #text + 1 end
        parts[#parts + 1] = sub(text, at, stop - 1)
        if found == QUOTE then return table.concat(parts), stop + 1 end
        local letter, behind, where = unescape(text, stop)
        if not letter then return nil, behind, where end
        parts[#parts + 1] = letter
        at = behind
    end
end

-- The string whose quote is at a place, and the place behind it; or nil, what is wrong, and where.
local function read_string(text, at)
    local stop = at + 1
    local found = byte(text, stop)
    while found and found ~= QUOTE and found ~= BACKSLASH and found ~= 0 do
        stop = stop + 1
        found = byte(text, stop)
    end
    if found == QUOTE then return sub(text, at + 1, stop - 1), stop + 1 end
    return read_escaped(text, at + 1, {})
end

-- Numbers ------------------------------------------------------------------------------------------------------------

local INVALID = {
    inf = math.huge, ['-inf'] = -math.huge, nan = 0 / 0, ['-nan'] = 0 / 0,
}

-- The number at a place, the place behind it, and its token; nil: there is none.
local function read_number(text, at, options)
    local behind = match(text, '^%-?%d+()', at)
    if not behind then
        local name = match(text, '^%-?inf', at) or match(text, '^%-?nan', at)
        if not name or not options.decode_invalid_numbers then return nil end
        return INVALID[name], at + #name, 'T_NUMBER'
    end
    local after = byte(text, behind)
    if find(text, '^%-?0[%dxX]', at) then return nil end
    if after ~= 46 and after ~= 69 and after ~= 101 then
        local digits = sub(text, at, behind - 1)
        if #digits <= 14 then
            local number = tonumber(digits)
            return number == 0 and 0 or number, behind, 'T_INT'
        end
        local value = numbers.integer(digits)
        local is_signed = byte(digits, 1) == MINUS or value < 0x7FFFFFFFFFFFFFFFULL
        return value, behind, is_signed and 'T_INT' or 'T_UINT'
    end
    local fraction = match(text, '^%.%d*()', behind)
    local last = fraction or behind
    last = match(text, '^[eE][+-]?%d+()', last) or last
    local number = numbers.leading(sub(text, at, last - 1))
    if (number == math.huge or number == -math.huge) and not options.decode_invalid_numbers then
        serializer.fail('number must not be NaN or Inf')
    end
    return number, last, 'T_NUMBER'
end

-- Errors -------------------------------------------------------------------------------------------------------------

local PUNCTUATION = {
    ['{'] = 'T_OBJ_BEGIN', ['}'] = 'T_OBJ_END', ['['] = 'T_ARR_BEGIN', [']'] = 'T_ARR_END', [','] = 'T_COMMA',
    [':'] = 'T_COLON', ['\0'] = 'T_END', [''] = 'T_END',
}

-- The name of the token at a place, and where an error about it is.
local function token_at(text, at, options)
    local letter = sub(text, at, at)
    if PUNCTUATION[letter] then return PUNCTUATION[letter], at end
    if letter == '"' then
        local found, why, where = read_string(text, at)
        if found then return 'T_STRING', at end
        return why, where
    end
    if find(text, '^true', at) or find(text, '^false', at) then return 'T_BOOLEAN', at end
    if find(text, '^null', at) then return 'T_NULL', at end
    local number, _, token = read_number(text, at, options)
    return number and token or 'invalid token', at
end

-- Line and column of a place: newlines within strings do not count.
local function position(text, at)
    local line, start, place = 1, 1, 1
    while place < at do
        local found = byte(text, place)
        if found == QUOTE then
            local _, behind, where = read_string(text, place)
            place = where or behind
        else
            place = place + 1
            if found == 10 then line, start = line + 1, place end
        end
    end
    return line, at - start + 1
end

local function unexpected(text, at, options, expected)
    local token, where = token_at(text, at, options)
    local line, column = position(text, where)
    serializer.fail(('Expected %s but found %s on line %d at character %d'):format(expected, token, line, column))
end

-- Values -------------------------------------------------------------------------------------------------------------

local function skip(text, at)
    local found = byte(text, at)
    while found == 32 or found == 10 or found == 9 or found == 13 do
        at = at + 1
        found = byte(text, at)
    end
    return at, found
end

local function check_depth(text, at, options, depth)
    if depth <= options.decode_max_depth then return end
    serializer.fail(('Found too many nested data structures (%d) on line %d at character %d'):format(
        depth, position(text, at)))
end

local read_value

local function read_array(text, at, options, depth)
    check_depth(text, at, options, depth)
    local array, count, found = {}, 0, nil
    at, found = skip(text, at + 1)
    while count > 0 or found ~= 93 do
        count = count + 1
        array[count], at = read_value(text, at, options, depth)
        at, found = skip(text, at)
        if found == 93 then break end
        if found ~= COMMA then unexpected(text, at, options, 'comma or array end') end
        at = skip(text, at + 1)
    end
    -- The metatable notices new keys, so it comes last.
    return options.decode_save_metatables and setmetatable(array, array_mt) or array, at + 1
end

local function read_object(text, at, options, depth)
    check_depth(text, at, options, depth)
    local object, key, behind, found = {}, nil, nil, nil
    at, found = skip(text, at + 1)
    if found == 125 then
        return options.decode_save_metatables and setmetatable(object, map_mt) or object, at + 1
    end
    while true do
        key = nil
        if found == QUOTE then key, behind = read_string(text, at) end
        if not key then unexpected(text, at, options, 'object key string') end
        at, found = skip(text, behind)
        if found ~= COLON then unexpected(text, at, options, 'colon') end
        at = skip(text, at + 1)
        object[key], at = read_value(text, at, options, depth)
        at, found = skip(text, at)
        if found == 125 then
            return options.decode_save_metatables and setmetatable(object, map_mt) or object, at + 1
        end
        if found ~= COMMA then unexpected(text, at, options, 'comma or object end') end
        at, found = skip(text, at + 1)
    end
end

-- The value at a place where no blank is, and the place behind it.
function read_value(text, at, options, depth)
    local found = byte(text, at)
    local value, behind
    if found == QUOTE then
        value, behind = read_string(text, at)
        if value then return value, behind end
    elseif found == 123 then
        return read_object(text, at, options, depth + 1)
    elseif found == 91 then
        return read_array(text, at, options, depth + 1)
    elseif found == 116 and sub(text, at, at + 3) == 'true' then
        return true, at + 4
    elseif found == 102 and sub(text, at, at + 4) == 'false' then
        return false, at + 5
    elseif found == 110 and sub(text, at, at + 3) == 'null' then
        return NULL, at + 4
    elseif found then
        value, behind = read_number(text, at, options)
        if value then return value, behind end
    end
    unexpected(text, at, options, 'value')
end

-- Decode a text. Returns its value.
return function(text, options)
    if #text > 1 and (byte(text, 1) == 0 or byte(text, 2) == 0) then
        serializer.fail('JSON parser does not support UTF-16 or UTF-32')
    end
    local value, at = read_value(text, skip(text, 1), options, 0)
    local behind, found = skip(text, at)
    if found and found ~= 0 then unexpected(text, behind, options, 'the end') end
    return value
end
