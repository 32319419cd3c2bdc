-- A parser of comma-separated values that is given its text in pieces.
--
-- A quotation mark anywhere turns quoting on or off; one directly behind another stands for itself. Spaces around the
-- value of a field are dropped unless they are quoted. Lines end with LF, CR or both.
local byte, find, sub = string.byte, string.find, string.sub

local SPACE = 32

local Parser = {}
Parser.__index = Parser

-- The pattern of a set of characters.
local function set_of(...)
    return '[' .. table.concat({...}):gsub('[%W%z]', '%%%0') .. ']'
end

local function new(delimiter, quote)
    return setmetatable({
        delimiter = byte(delimiter), quote = byte(quote),
        special = set_of(delimiter, quote, '\r', '\n'), quoted_special = set_of(quote),
        rows = {}, first = 1, last = 0, -- rows that nobody has taken
        row = {}, field = '', kept = 0, -- the part of the field that trailing spaces are not taken from
        is_quoted = false, is_leading = true, is_begun = false,
        is_after_quote = false, line_end = nil,
    }, Parser)
end

local function add(self, text)
    if text == '' then return end
    self.is_begun, self.is_after_quote, self.line_end = true, false, nil
    if self.is_leading then
        local start = find(text, '[^ ]')
        if not start then return end
        text = sub(text, start)
        self.is_leading = false
    end
    self.field = self.field .. text
end

local function end_field(self)
    local size = #self.field
    while size > self.kept and byte(self.field, size) == SPACE do size = size - 1 end
    self.row[#self.row + 1] = sub(self.field, 1, size)
    self.field, self.kept, self.is_leading, self.is_after_quote = '', 0, true, false
end

local function end_row(self)
    end_field(self)
    self.last = self.last + 1
    self.rows[self.last] = self.row
    self.row, self.is_begun = {}, false
end

local function end_line(self, sign)
    -- The other half of an end of two characters.
    if self.line_end and self.line_end ~= sign then
        self.line_end = nil
        return
    end
    end_row(self)
    self.line_end = sign
end

local function take_quote(self)
    self.is_begun, self.is_leading, self.line_end = true, false, nil
    if self.is_after_quote then
        self.field = self.field .. string.char(self.quote)
        self.is_after_quote = false
    else
        self.is_after_quote = true
    end
    self.is_quoted = not self.is_quoted
    self.kept = #self.field
end

function Parser:feed(text)
    local place = 1
    while place <= #text do
        local stop = find(text, self.is_quoted and self.quoted_special or self.special, place)
        add(self, sub(text, place, (stop or 0) - 1))
        if not stop then return end
        local sign = byte(text, stop)
        if sign == self.quote then
            take_quote(self)
        elseif sign == self.delimiter then
            self.is_begun, self.line_end = true, nil
            end_field(self)
        else
            end_line(self, sign)
        end
        place = stop + 1
    end
end

-- End the text. Returns whether it was complete: otherwise its last line is dropped.
function Parser:finish()
    if self.is_quoted and not self.is_after_quote then return false end
    if self.is_begun then end_row(self) end
    return true
end

-- Take the next row; nil if there is none yet.
function Parser:take()
    if self.first > self.last then return nil end
    local row = self.rows[self.first]
    self.rows[self.first] = nil
    self.first = self.first + 1
    return row
end

return {new = new}
