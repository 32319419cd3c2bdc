-- Scalars and indicators of YAML with their indentation, folded at a width.
local step = require('internal.characters').step
local find, sub, gsub, gmatch, byte, rep = string.find, string.sub, string.gsub, string.gmatch, string.byte, string.rep

local WIDTH, STEP = 80, 2 -- the usual width in columns
local CHARACTER = '[%z\1-\127\192-\255][\128-\191]*'
local BREAKS = {['\n'] = true, ['\226\128\168'] = true, ['\226\128\169'] = true}

local writer = {}
writer.__index = writer

-- A writer has the texts written so far and where the next one goes.
--   column: characters since the last line break
--   indent: columns of the block around; -1 outside of all
--   blank: whether a blank or an indicator that needs none behind it was written last
--   indented: whether only indentation and block indicators are on the line
--   flow: flow collections around
--   width: columns behind which lines are folded
--   key: whether a simple key is written, which must stay on its line
function writer.new(width)
    return setmetatable({
        out = {}, count = 0, column = 0, indent = -1, blank = true, indented = true, flow = 0, key = false,
        width = width or WIDTH,
    }, writer)
end

function writer:put(text, columns)
    local count = self.count + 1
    self.out[count] = text
    self.count = count
    self.column = self.column + (columns or #text)
end

-- The number of characters of a text.
local function columns_of(text)
    if not find(text, '[\128-\191]') then return #text end
    local _, more = gsub(text, '[\128-\191]', '')
    return #text - more
end

function writer:line_break(text)
    local count = self.count + 1
    self.out[count] = text or '\n'
    self.count = count
    self.column = 0
end

-- Start a line at the indentation, unless the position is there.
function writer:start_line()
    local indent = self.indent < 0 and 0 or self.indent
    if not self.indented or self.column > indent or (self.column == indent and not self.blank) then
        self:line_break()
    end
    if self.column < indent then self:put(rep(' ', indent - self.column)) end
    self.blank, self.indented = true, true
end

-- Write an indicator with a blank before it if there is none.
function writer:indicator(text, blank, indented)
    if not self.blank then text = ' ' .. text end
    self:put(text)
    self.blank = blank
    self.indented = self.indented and indented
end

-- Write an indicator that follows the last text directly.
function writer:suffix(text)
    self:put(text)
    self.blank, self.indented = false, false
end

-- Go one step deeper. Returns the indentation to restore. A block without a step (`same`) stays at its parent's.
function writer:deeper(in_flow, same)
    local before = self.indent
    if before < 0 then
        self.indent = in_flow and STEP or 0
    elseif not same then
        self.indent = before + STEP
    end
    return before
end

function writer:needs_fold()
    return self.column > self.width
end

-- Plain ---------------------------------------------------------------------------------------------------------------

-- Write a text on one line; a single blank behind the width becomes a line break.
function writer:folded_plain(text)
    local after_blank, place = false, 1
    for character in gmatch(text, CHARACTER) do
        if character ~= ' ' then
            self:put(character, 1)
            after_blank = false
        else
            if not after_blank and self.column > self.width and byte(text, place + 1) ~= 32 then
                self:start_line()
            else
                self:put(' ')
            end
            after_blank = true
        end
        place = place + #character
    end
end

function writer:plain(text)
    if not self.blank and (text ~= '' or self.flow > 0) then self:put(' ') end
    if self.key or self.column + #text <= self.width or not find(text, ' ', 1, true) then
        self:put(text, columns_of(text))
    else
        self:folded_plain(text)
    end
    self.blank, self.indented = false, false
end

-- Single quotes -------------------------------------------------------------------------------------------------------

-- Write the inner text of single quotes with all its line breaks; a single blank behind the width becomes one more.
function writer:single_quoted_lines(text)
    local after_blank, after_break, place, last = false, false, 1, #text
    for character in gmatch(text, CHARACTER) do
        if BREAKS[character] then
            if not after_break and character == '\n' then self:line_break() end
            self:line_break(character)
            self.indented, after_break = true, true
        elseif character == ' ' then
            if not self.key and not after_blank and self.column > self.width and place > 1 and place < last
                and byte(text, place + 1) ~= 32 then
                self:start_line()
            else
                self:put(' ')
            end
            after_blank = true
        else
            if after_break then self:start_line() end
            if character == "'" then self:put("''") else self:put(character, 1) end
            self.indented, after_blank, after_break = false, false, false
        end
        place = place + #character
    end
    if after_break then self:start_line() end
end

function writer:single_quoted(text)
    self:indicator("'", false, false)
    local doubled = not find(text, '[\n\226]') and gsub(text, "'", "''")
    if doubled and (self.key or self.column + #doubled <= self.width) then
        self:put(doubled, columns_of(doubled))
    else
        self:single_quoted_lines(text)
    end
    self:suffix("'")
end

-- Double quotes -------------------------------------------------------------------------------------------------------

local ESCAPES = {
    ['\0'] = '\\0', ['\a'] = '\\a', ['\b'] = '\\b', ['\t'] = '\\t', ['\n'] = '\\n', ['\v'] = '\\v', ['\f'] = '\\f',
    ['\r'] = '\\r', ['\27'] = '\\e', ['"'] = '\\"', ['\\'] = '\\\\', ['\194\133'] = '\\N',
    ['\226\128\168'] = '\\L', ['\226\128\169'] = '\\P',
}

local function escaped(character)
    if ESCAPES[character] then return ESCAPES[character] end
    local _, code = step(character, 1)
    local printable = (code >= 32 and code < 127) or (code >= 0xA0 and code < 0xD800)
        or (code >= 0xE000 and code < 0xFFFE and code ~= 0xFEFF)
    if printable then return nil end
    return ((code < 0x100 and '\\x%02X') or (code < 0x10000 and '\\u%04X') or '\\U%08X'):format(code)
end

function writer:double_quoted(text)
    self:indicator('"', false, false)
    local after_blank, place, last = false, 1, #text
    for character in gmatch(text, CHARACTER) do
        if character == ' ' then
            if not self.key and not after_blank and self.column > self.width and place > 1 and place < last then
                self:start_line()
                if byte(text, place + 1) == 32 then self:put('\\') end
            else
                self:put(' ')
            end
            after_blank = true
        else
            local escape = escaped(character)
            if escape then self:put(escape) else self:put(character, 1) end
            after_blank = false
        end
        place = place + #character
    end
    self:suffix('"')
end

-- Literal texts -------------------------------------------------------------------------------------------------------

-- Whether a text ends with a line break, and what is before it.
local function without_break(text)
    if sub(text, -1) == '\n' then return true, sub(text, 1, -2) end
    if BREAKS[sub(text, -3)] then return true, sub(text, 1, -4) end
    return false, text
end

function writer:literal(text)
    self:indicator('|', false, false)
    if find(text, '^[ \n]') or find(text, '^\226\128[\168\169]') then self:suffix(tostring(STEP)) end
    local ends, before = without_break(text)
    if not ends then
        self:suffix('-')
    elseif before == '' or without_break(before) then
        self:suffix('+')
    end
    self:line_break()
    self.indented, self.blank = true, true
    local after_break = true
    for character in gmatch(text, CHARACTER) do
        if BREAKS[character] then
            self:line_break(character)
            self.indented, after_break = true, true
        else
            if after_break then self:start_line() end
            self:put(character, 1)
            self.indented, after_break = false, false
        end
    end
end

return writer
