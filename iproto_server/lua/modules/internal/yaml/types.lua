-- Values of YAML scalars by their tag, or by their text if they are plain.
local _, host = ...
local numbers = require('internal.serial.numbers')
local serializer = require('internal.serial.serializer')

local find, match, sub, tonumber = string.find, string.match, string.sub, tonumber

local PREFIX = 'tag:yaml.org,2002:'
local NULL = serializer.NULL
local WORDS = {['true'] = true, yes = true, ['false'] = false, no = false, null = NULL, ['~'] = NULL}

-- Numbers -------------------------------------------------------------------------------------------------------------

-- The number that a whole text is, or nil.
local function number(text, options)
    if find(text, '^[+-]?%d+$') then
        local digits = sub(text, 1, 1) == '+' and sub(text, 2) or text
        local value = numbers.integer(digits)
        return value == 0 and 0 or value
    end
    if find(text, '^[+-]?0[bB]') or find(text, '[uUlLiI]$') and not find(text, '[nN]') then return nil end
    local value = numbers.of_text(text)
    if value and value - value ~= 0 and not options.decode_invalid_numbers then
        serializer.fail('number must not be NaN or Inf')
    end
    return value
end

-- The integer that a text begins with, as a number, or 0.
local function leading_integer(text)
    local digits = match(text, '^%s*[+-]?%d+')
    if not digits then return 0 end
    return math.max(-0x1p63, math.min(tonumber(digits), 0x1p63))
end

local TAGS = {
    str = function(text) return text end,
    int = leading_integer,
    float = numbers.leading,
    bool = function(text) return text == 'true' or text == 'yes' end,
    binary = function(text) return (host.base64_decode((text:gsub('[-_]', '')))) end,
}

-- The value of a scalar, and whether its anchor counts: as in Tarantool, only that of a text without a known tag does.
-- `tag` may be nil.
return function(text, tag, is_plain, options)
    if tag and sub(tag, 1, #PREFIX) == PREFIX then
        local convert = TAGS[sub(tag, #PREFIX + 1)]
        if convert then return convert(text), false end
    end
    if not is_plain then return text, true end
    local word = WORDS[text]
    if word ~= nil or type(word) == 'cdata' then return word, false end
    if find(text, '^[%d.+%-iInN]') then
        local value = number(text, options)
        if value ~= nil then return value, false end
    end
    return text, text ~= ''
end
