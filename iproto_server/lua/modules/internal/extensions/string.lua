-- Tarantool's additions to `string`.
-- On purpose different: positions of `startswith` and `endswith` before the text's first byte match nothing, where
-- Tarantool compares with memory in front of the text.
local find, sub, rep, format = string.find, string.sub, string.rep, string.format
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min

local WRONG = "bad argument #%d to '%s' (%s expected, got %s)"

-- Raise an error at the caller of a public function.
local function refuse(place, name, expected, value)
    error(format(WRONG, place, name, expected, type(value)), 3)
end

local function is_count(value) return type(value) == 'number' and value >= 0 end

-- Split at stretches of white space; those at the start and at the end separate nothing.
local function split_at_space(text, limit)
    local parts, from = {}, find(text, '%S')
    while from do
        local first, last = find(text, '%s+', from)
        if not first or #parts >= limit then
            parts[#parts + 1] = sub(text, from)
            break
        end
        parts[#parts + 1] = sub(text, from, first - 1)
        from = find(text, '%S', last + 1)
    end
    return parts
end

local function split_at(text, separator, limit)
    local parts, from = {}, 1
    while #parts < limit do
        local first, last = find(text, separator, from, true)
        if not first then break end
        parts[#parts + 1] = sub(text, from, first - 1)
        from = last + 1
    end
    parts[#parts + 1] = sub(text, from)
    return parts
end

function string.split(text, separator, limit)
    if type(text) ~= 'string' then refuse(1, 'string.split', 'string', text) end
    if separator ~= nil and type(separator) ~= 'string' then refuse(2, 'string.split', 'string', separator) end
    if limit ~= nil and not is_count(limit) then refuse(3, 'string.split', 'positive integer', limit) end
    if separator == '' then error(format(WRONG, 2, 'string.split', 'non-empty string', 'empty string'), 3) end
    limit = limit or math.huge
    if separator then return split_at(text, separator, limit) end
    return split_at_space(text, limit)
end

-- Define a function that fills a text up to a width; `sides` says how many characters of `missing` are on the left.
local function define_fill(name, sides)
    local full_name = 'string.' .. name
    string[name] = function(text, width, character)
        if type(text) ~= 'string' then refuse(1, full_name, 'string', text) end
        if not is_count(width) and width == width then refuse(2, full_name, 'positive integer', width) end
        if character ~= nil and (type(character) ~= 'string' or #character ~= 1) then
            refuse(3, full_name, 'char', character)
        end
        local missing = width - #text
        if not (missing > 0 and missing < math.huge) then return text end
        local left, right = sides(missing)
        character = character or ' '
        return rep(character, left) .. text .. rep(character, right)
    end
end

define_fill('ljust', function(missing) return 0, floor(missing) end)
define_fill('rjust', function(missing) return floor(missing), 0 end)
define_fill('center', function(missing) return floor(missing / 2), ceil(floor(missing) / 2) end)

-- Positions of bytes, counted from the end if they are negative.
local function range(size, from, to)
    from, to = from or 1, to or size
    if from < 0 then from = max(size + from + 1, 0) end
    if to < 0 then to = max(size + to + 1, 0) end
    return from, min(to, size)
end

-- Whether a part of a text begins after `offset` bytes, whose fraction does not count.
local function is_part(text, part, offset)
    offset = offset < 0 and ceil(offset) or floor(offset)
    return offset >= 0 and sub(text, offset + 1, offset + #part) == part
end

function string.startswith(text, head, from, to)
    if type(text) ~= 'string' then refuse(1, 'string.startswith', 'string', text) end
    if type(head) ~= 'string' then refuse(2, 'string.startswith', 'string', head) end
    if from ~= nil and type(from) ~= 'number' then refuse(3, 'string.startswith', 'integer', from) end
    if to ~= nil and type(to) ~= 'number' then refuse(4, 'string.startswith', 'integer', to) end
    if head == '' then return true end
    from, to = range(#text, from, to)
    return to - from + 1 >= #head and is_part(text, head, from - 1)
end

-- As in Tarantool, errors of the positions and of the second argument name the type of the first one.
function string.endswith(inp, tail, from, to)
    local tail_size, size = #tail, #inp
    if type(inp) ~= 'string' then refuse(1, 'string.endswith', 'string', inp) end
    if type(tail) ~= 'string' then refuse(2, 'string.endswith', 'string', inp) end
    if from ~= nil and type(from) ~= 'number' then refuse(3, 'string.endswith', 'integer', inp) end
    if to ~= nil and type(to) ~= 'number' then refuse(4, 'string.endswith', 'integer', inp) end
    if tail == '' then return true end
    from, to = range(size, from, to)
    return to - from + 1 >= tail_size and is_part(inp, tail, to - tail_size)
end

local HEX = {}
for code = 0, 255 do HEX[string.char(code)] = format('%02x', code) end

function string.hex(text)
    if type(text) ~= 'string' then refuse(1, 'string.hex', 'string', text) end
    return (text:gsub('.', HEX))
end

function string.fromhex(text)
    if type(text) ~= 'string' then refuse(1, 'string.fromhex', 'string', text) end
    if #text % 2 ~= 0 then error(format(WRONG, 1, 'string.fromhex', 'even amount of chars', 'odd amount'), 2) end
    if find(text, '%X') then error(format(WRONG, 1, 'string.fromhex', 'hex string', 'non hex chars'), 2) end
    return (text:gsub('..', function(pair) return string.char(tonumber(pair, 16)) end))
end

local SPACE = ' \t\n\v\f\r'

-- Define a function that removes characters from the ends of a text.
local function define_strip(name, left, right)
    local full_name = 'string.' .. name
    string[name] = function(text, characters)
        if type(text) ~= 'string' then refuse(1, full_name, 'string', text) end
        if text == '' then return text end
        if characters ~= nil and type(characters) ~= 'string' then refuse(2, full_name, 'string', characters) end
        characters = characters or SPACE
        local first, last = 1, #text
        while left and first <= last and find(characters, sub(text, first, first), 1, true) do first = first + 1 end
        while right and last >= first and find(characters, sub(text, last, last), 1, true) do last = last - 1 end
        return sub(text, first, last)
    end
end

string.gsub = require('internal.extensions.gsub')

define_strip('strip', true, true)
define_strip('lstrip', true, false)
define_strip('rstrip', false, true)

return string
