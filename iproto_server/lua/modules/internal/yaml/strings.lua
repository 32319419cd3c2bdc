-- Styles of strings in YAML: plain, quoted, literal or binary.
local _, host = ...
local numbers = require('internal.serial.numbers')
local step = require('internal.characters').step

local find, sub, gsub = string.find, string.sub, string.gsub

local strings = {}

local is_printable -- of `unicode_printable`, which few texts need

-- Strings that YAML reads as something else.
local WORDS = {['true'] = true, ['false'] = true, yes = true, no = true, null = true, ['~'] = true}

local function is_ambiguous(text)
    return WORDS[text] or numbers.of_text(text) ~= nil
end

-- UTF-8 ---------------------------------------------------------------------------------------------------------------

-- Whether a string is text, not bytes: UTF-8 without U+0080 … U+009F, byte order marks, U+FFFE, U+FFFF, and characters
-- above these that are not printable.
local function is_text(text)
    local place = find(text, '[\128-\255]')
    while place do
        local after, code = step(text, place)
        if not code then return false end
        if code > 0xFFFF then
            is_printable = is_printable or require('internal.serial.unicode_printable')
            if not is_printable(code) then return false end
        end
        place = find(text, '[\128-\255]', after)
    end
    return not find(text, '\194[\128-\159]') and not find(text, '\239\187\191', 1, true)
        and not find(text, '\239\191[\190\191]')
end

-- Styles --------------------------------------------------------------------------------------------------------------

-- Whether a text has characters that only double quotes can have.
local function is_special(text)
    return find(text, '[%z\1-\9\11-\31\127]') or find(text, '[\240-\244]') or find(text, ' \n', 1, true)
end

local function has_indicators(text)
    return find(text, '^[#,%[%]{}&*!|>\'"%%@`]') or find(text, '^[?%-] ') or find(text, '^[?%-]\n')
        or text == '?' or text == '-' or find(text, '^%-%-%-') or find(text, '^%.%.%.')
        or find(text, ':[ \n]') or find(text, ':$') or find(text, '[ \n]#')
end

local function plain_is_allowed(text)
    return not (find(text, '^[ \n]') or find(text, '[ \n]$') or find(text, '\n', 1, true) or has_indicators(text))
end

local function flow_plain_is_allowed(text)
    return not find(text, '[,?%[%]{}:]')
end

-- The text and the style of a string: 'plain', 'single_quoted', 'double_quoted', 'literal', or 'binary', whose text is
-- Base64. The third result says whether it has line breaks.
--   wants_quotes: whether it is quoted even if it need not be
--   in_flow: whether it is within a flow collection
function strings.styled(text, wants_quotes, in_flow)
    if not wants_quotes and find(text, '^[%a_][%w_/%.%-]*$') and not is_ambiguous(text) then
        return text, 'plain', false
    end
    if text == '' then return text, (wants_quotes or in_flow) and 'single_quoted' or 'plain', false end
    local shape = text -- with all line breaks alike
    if find(text, '[\128-\255]') then
        if not is_text(text) then return host.base64_encode(text, true, false, false), 'binary', false end
        shape = gsub(text, '\226\128[\168\169]', '\n')
    end
    local has_lines = find(shape, '[\n\r]') ~= nil
    if is_special(shape) then return text, 'double_quoted', has_lines end
    if not wants_quotes and not is_ambiguous(text) then
        if find(text, '\n\n', 1, true) then
            return text, (in_flow or sub(text, -1) == ' ') and 'double_quoted' or 'literal', true
        end
        if plain_is_allowed(shape) and (not in_flow or flow_plain_is_allowed(shape)) then
            return text, 'plain', false
        end
    end
    return text, find(shape, '\n ', 1, true) and 'double_quoted' or 'single_quoted', has_lines
end

return strings
