-- Tarantool's module utf8: texts of Unicode, with ICU's order of texts.
-- On purpose different: categories and case are those of Python's release of Unicode, which is not always ICU's.
local _, host = ...
local sub, find = string.sub, string.find

local argument = require('internal.argument')
local characters = require('internal.characters')
local integer, encoded, step = argument.integer, characters.encoded, characters.step

-- A text, also of a number. Anything else is an error of the public function that calls this.
local function text_of(value, name, arguments)
    if type(value) == 'number' then return tostring(value) end
    if type(value) ~= 'string' then argument.usage(('Usage: utf8.%s(%s)'):format(name, arguments), 1) end
    return value
end

local utf8 = {}

function utf8.char(...)
    local count = select('#', ...)
    if count == 0 then argument.usage('Usage: utf8.char(<char code>') end
    local parts = {}
    for place = 1, count do parts[place] = encoded(integer((select(place, ...)), place)) end
    return table.concat(parts)
end

local LEN = '<string>, [i, [j]]'

function utf8.len(text, from, to)
    text = text_of(text, 'len', LEN)
    local size = #text
    from, to = integer(from == nil and 1 or from, 2), integer(to == nil and -1 or to, 3)
    if from < 0 then from = from + size + 1 end
    if to < 0 then to = to + size + 1 end
    if from < 1 or from > size + 1 or to > size then return nil, 'position is out of string' end
    local count = 0
    while from <= to do
        local after, code = step(text, from)
        if not code then return nil, after - 1 end
        from, count = after, count + 1
    end
    return count
end

function utf8.next(text, place)
    text = text_of(text, 'next', '<string>, [<byte offset>]')
    place = integer(place == nil and 1 or place, 2)
    if place < 0 then place = place + #text + 1 end
    place = math.max(place, 1)
    if place > #text then return end
    local after, code = step(text, place)
    if code then return after, code end
end

-- The first bytes of all characters, and one place behind the text.
local function starts_of(text)
    local starts, place = {}, 1
    while place <= #text do
        starts[#starts + 1] = place
        place = step(text, place)
    end
    starts[#starts + 1] = place
    return starts
end

function utf8.sub(text, ...)
    text = text_of(text, 'sub', LEN)
    if select('#', ...) == 0 then text_of(nil, 'sub', LEN) end
    local from, to = ...
    from, to = integer(from, 2), integer(to == nil and -1 or to, 3)
    local starts = starts_of(text)
    local count = #starts - 1
    if from < 0 then from = from + count + 1 end
    if to < 0 then to = to + count + 1 end
    from, to = math.max(from, 1), math.min(to, count)
    if from > to then return '' end
    return sub(text, starts[from], starts[to + 1] - 1)
end

function utf8.upper(text)
    text = text_of(text, 'upper', '<string>')
    if find(text, '[\128-\255]') then return host.unicode_upper(text) end
    return text:upper()
end

function utf8.lower(text)
    text = text_of(text, 'lower', '<string>')
    if find(text, '[\128-\255]') then return host.unicode_lower(text) end
    return text:lower()
end

-- Define a function that tests the general category of one character or code.
local function define_test(name, pattern)
    utf8[name] = function(...)
        local value = ...
        if select('#', ...) ~= 1 then text_of(nil, name, '<string> or <one symbol code>') end
        local code
        if type(value) == 'string' then
            if value == '' then return false end
            local after
            after, code = step(value, 1)
            if not code or after <= #value then return false end
        else
            code = integer(value, 1)
            if not (code >= 0 and code <= 0x10FFFF) then return false end
        end
        return find(host.unicode_category(code), pattern) ~= nil
    end
end

define_test('isalpha', '^L')
define_test('isdigit', '^Nd')
define_test('islower', '^Ll')
define_test('isupper', '^Lu')

local function define_comparison(name, ignores_case)
    utf8[name] = function(left, right)
        local arguments = '<string1>, <string2>'
        return host.unicode_compare(text_of(left, name, arguments), text_of(right, name, arguments), ignores_case)
    end
end

define_comparison('cmp', false)
define_comparison('casecmp', true)

return utf8
