-- A place in a YAML text, with its line and column in characters, and errors that name it.
local byte, find, sub, gsub = string.byte, string.find, string.sub, string.gsub

local cursor = {}
cursor.__index = cursor

-- Check that a text is UTF-8 without control characters. Returns nil, or what is wrong.
local SECOND_LEAST = {[0xE0] = 0xA0, [0xF0] = 0x90}

local function wrong_character(text, at)
    local first = byte(text, at)
    local size = first < 0x80 and 1 or first >= 0xC0 and first < 0xE0 and 2 or first >= 0xE0 and first < 0xF0 and 3
        or first >= 0xF0 and first < 0xF8 and 4
    if not size then return 'invalid leading UTF-8 octet' end
    if at + size - 1 > #text then return 'incomplete UTF-8 octet sequence' end
    for place = at + 1, at + size - 1 do
        if not find(text, '^[\128-\191]', place) then return 'invalid trailing UTF-8 octet' end
    end
    local second, third = byte(text, at + 1, at + 2)
    if (size == 2 and first < 0xC2) or (size > 2 and second < (SECOND_LEAST[first] or 0)) then
        return 'invalid length of a UTF-8 sequence'
    end
    if (first == 0xED and second >= 0xA0) or first > 0xF4 or (first == 0xF4 and second >= 0x90) then
        return 'invalid Unicode character'
    end
    local control = (size == 1 and find(text, '^[^\t\n\r\32-\126]', at))
        or (first == 0xC2 and second < 0xA0 and second ~= 0x85)
        or (first == 0xEF and (second == 0xBF and third >= 0xBE or second == 0xBB and third == 0xBF))
    if control then return 'control characters are not allowed' end
    return nil, size
end

local function wrong_text(text, at)
    at = find(text, '[^\t\n\r\32-\126]', at)
    while at do
        local wrong, size = wrong_character(text, at)
        if wrong then return wrong end
        at = find(text, '[^\t\n\r\32-\126]', at + size)
    end
end

-- Start at the first character of a text.
--   at: the place of the next byte
--   line, column: counted from 0
--   extra: bytes so far that are not the first of a character
--   documents: documents that were begun
function cursor.new(text)
    local self = setmetatable({text = text, at = 1, line = 0, column = 0, extra = 0, documents = 0}, cursor)
    if sub(text, 1, 3) == '\239\187\191' then self.at, self.extra = 4, 3 end
    local wrong = wrong_text(text, self.at)
    if wrong then self:fail(wrong, 0, 0) end
    return self
end

-- Raise an error about a place, and about where what it is part of begins.
function cursor:fail(problem, line, column, context, start)
    local parts = {problem, ' at document: ', tostring(self.documents)}
    if line ~= 0 or column ~= 0 then
        parts[#parts + 1] = (', line: %d, column: %d'):format(line + 1, column + 1)
    end
    parts[#parts + 1] = '\n'
    if context then
        parts[#parts + 1] = ('%s at line: %d, column: %d\n'):format(context, start.line + 1, start.column + 1)
    end
    error(table.concat(parts), 0)
end

-- Raise an error about the current place.
function cursor:fail_here(problem, context, start)
    self:fail(problem, self.line, self.column, context, start)
end

function cursor:mark()
    return {line = self.line, column = self.column}
end

-- Go over ASCII characters of the line.
function cursor:skip(count)
    self.at = self.at + count
    self.column = self.column + count
end

-- Go over characters of the line, up to a place.
function cursor:skip_to(at)
    local count = at - self.at
    local _, extra = gsub(sub(self.text, self.at, at - 1), '[\128-\191]', '')
    self.at = at
    self.extra = self.extra + extra
    self.column = self.column + count - extra
end

-- The place behind the line break at a place, and what the break stands for; nil: there is none.
function cursor:break_at(at)
    local found = byte(self.text, at)
    if found == 10 then return at + 1, '\n' end
    if found == 13 then return byte(self.text, at + 1) == 10 and at + 2 or at + 1, '\n' end
    if found == 0xC2 and byte(self.text, at + 1) == 0x85 then return at + 2, '\n' end
    if found == 0xE2 and find(self.text, '^\226\128[\168\169]', at) then return at + 3, sub(self.text, at, at + 2) end
end

-- Go over a line break. Returns what it stands for, or nil if there is none.
function cursor:line_break()
    local behind, meaning = self:break_at(self.at)
    if not behind then return nil end
    if find(self.text, '^[\194\226]', self.at) then self.extra = self.extra + behind - self.at - 1 end
    self.at = behind
    self.line = self.line + 1
    self.column = 0
    return meaning
end

-- Whether a line ends at a place.
function cursor:ends_at(at)
    return at > #self.text or self:break_at(at) ~= nil
end

-- Whether a blank, a line break or the end is at a place.
function cursor:is_blank_at(at)
    local found = byte(self.text, at)
    return not found or found == 32 or found == 9 or self:break_at(at) ~= nil
end

function cursor:skip_blanks()
    local _, last = find(self.text, '^[ \t]+', self.at)
    if last then self:skip(last - self.at + 1) end
end

-- The place of the next line break, or behind the text.
function cursor:line_end(at)
    while true do
        at = find(self.text, '[\n\r\194\226]', at)
        if not at then return #self.text + 1 end
        if self:break_at(at) then return at end
        at = at + 1
    end
end

-- Go over a comment, if there is one.
function cursor:skip_comment()
    if byte(self.text, self.at) == 35 then self:skip_to(self:line_end(self.at)) end
end

-- Whether `---` or `...` begins the line here.
function cursor:at_document_indicator()
    if self.column ~= 0 then return false end
    local three = sub(self.text, self.at, self.at + 2)
    return (three == '---' or three == '...') and self:is_blank_at(self.at + 3)
end

return cursor
