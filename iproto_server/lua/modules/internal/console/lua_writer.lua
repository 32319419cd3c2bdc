-- Values as Lua's source text, as `\set output lua` shows them.
--
-- Text for text as Tarantool 2.6, also where this is no valid Lua: `{true = 1}`, a backslash that is not doubled, an
-- element without its key behind others if the key is its place, and `{nil}` for a table that was written before.
-- On purpose different: an array with more than 100,000 holes is written as a map; Tarantool writes each hole.
local serializer = require('internal.serial.serializer')
local strings = require('internal.yaml.strings')

local classify, number_text, long_text = serializer.classify, serializer.number_text, serializer.long_text
local type, next, rawget = type, next, rawget
local byte, find, gsub, rep = string.byte, string.find, string.gsub, string.rep

local HOLES_MAX = 100000

local KEYWORDS = {}
for word in ('and break do else elseif end false for function if in local nil not or repeat return then true until '
    .. 'while'):gmatch('%a+') do
    KEYWORDS[word] = true
end

local ESCAPES = {
    ['\0'] = '\\0', ['\a'] = '\\a', ['\b'] = '\\b', ['\t'] = '\\t', ['\n'] = '\\n', ['\v'] = '\\v', ['\f'] = '\\f',
    ['\r'] = '\\r', ['"'] = '\\"', ["'"] = "\\'",
}

local function escaped(character)
    return ESCAPES[character] or ('\\x%02x'):format(byte(character))
end

-- A text, or its Base64 if it has bytes that cannot be printed.
local function printable(text)
    local shown, style = strings.styled(text, false, false)
    return style == 'binary' and shown or text
end

local function quoted(text)
    return '"' .. gsub(text, '[%c"\'\127-\255]', escaped) .. '"'
end

local OPTIONS = {
    encode_sparse_convert = true, encode_sparse_ratio = 0, encode_sparse_safe = math.huge,
    encode_invalid_numbers = true, encode_use_tostring = true, encode_load_metatables = true, number_format = '%.14g',
}

local function scalar_text(kind, plain)
    if kind == 'nil' then return 'box.NULL' end
    if kind == 'string' then return quoted(printable(plain)) end
    if kind == 'number' or kind == 'float' then
        return plain ~= plain and serializer.nan_text(plain) or number_text(plain, OPTIONS)
    end
    if kind == 'long' then return long_text(plain) end
    if kind == 'boolean' then return plain and 'true' or 'false' end
    return quoted(plain)
end

local function is_whole(text)
    return find(text, '^%-?%d+$') ~= nil
end

-- The text before the value of a key, for the element of a map at a place, counted from 0.
local function key_text(kind, plain, place)
    if kind == 'string' then
        local shown = printable(plain)
        if KEYWORDS[shown] or find(shown, '[^%w_]') then return '[' .. quoted(shown) .. '] = ' end
        return shown .. ' = '
    end
    local text = scalar_text(kind, plain)
    if (kind == 'number' or kind == 'long') and is_whole(text) then
        return plain == place and '' or '[' .. text .. '] = '
    end
    return text .. ' = '
end

local writer = {}
writer.__index = writer

function writer:put(text)
    local out = self.out
    out[#out + 1] = text
end

function writer:open()
    self:put(self.is_block and '{\n' or '{')
    self.depth = self.depth + 1
    self.count = 0
end

function writer:close()
    self.depth = self.depth - 1
    self:put(self.is_block and '\n' .. rep('  ', self.depth) .. '}' or '}')
end

-- Begin an element; `place` counts from 0.
function writer:element(place)
    if place > 0 then self:put(self.is_block and ',\n' or ', ') end
    if self.is_block then self:put(rep('  ', self.depth)) end
end

function writer:array(value, size)
    self:open()
    for place = 1, size do
        local each = rawget(value, place)
        self:element(place - 1)
        if type(each) == 'nil' then self:put('nil') else self:value(each) end
    end
    self:close()
end

function writer:map(value)
    self:open()
    local place = 0
    for key, each in next, value do
        local kind, plain, size = classify(key, OPTIONS)
        self:element(place)
        if kind == 'array' or kind == 'map' then -- a table as a key is written as an element
            self:table(kind, plain, size)
            place = place + 1
            self:element(place)
        else
            self:put(key_text(kind, plain, place))
        end
        self:value(each)
        place = place + 1
    end
    self:close()
end

function writer:table(kind, value, size)
    if self.written[value] then
        self:open()
        self:element(0)
        self:put('nil')
        return self:close()
    end
    self.written[value] = true
    if kind == 'array' and size <= HOLES_MAX + #value then return self:array(value, size) end
    self:map(value)
end

function writer:value(value)
    local kind, plain, size = classify(value, OPTIONS)
    if kind == 'array' or kind == 'map' then return self:table(kind, plain, size) end
    self:put(scalar_text(kind, plain))
end

-- The text of a value. `is_block` has each element on a line of its own.
return function(value, is_block)
    if type(value) == 'nil' then return 'nil' end
    local state = setmetatable({out = {}, depth = 0, is_block = is_block, written = {}}, writer)
    state:value(value)
    return table.concat(state.out)
end
