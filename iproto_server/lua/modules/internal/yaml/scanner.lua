-- The tokens of a YAML text. A token is scanned when the parser asks for it, or when it may be behind a simple key.
local byte, find, match = string.byte, string.find, string.match
local scalars = require('internal.yaml.scalars')
local tags = require('internal.yaml.tags')
local cursors = require('internal.yaml.cursor')

local LONGEST_KEY = 1024

local scanner = {}
scanner.__index = scanner

--   tokens, first, last: tokens that were scanned and not taken, numbered from the text's first on
--   indent, indents: columns of the block and of those around; -1 outside of all
--   flow: flow collections around
--   keys: for each of them and the block, where a simple key may have begun
--   key_allowed: whether a simple key may begin here
function scanner.new(text)
    return setmetatable({
        cursor = cursors.new(text), tokens = {}, first = 1, last = 0, indent = -1, indents = {}, flow = 0,
        keys = {}, key_allowed = true, ended = false,
    }, scanner)
end

function scanner:add(kind, mark, value)
    self.last = self.last + 1
    local token = {kind = kind, line = mark.line, column = mark.column, value = value}
    self.tokens[self.last] = token
    return token
end

local function insert(self, place, kind, mark)
    for number = self.last, place, -1 do self.tokens[number + 1] = self.tokens[number] end
    self.tokens[place] = {kind = kind, line = mark.line, column = mark.column}
    self.last = self.last + 1
end

-- Simple keys ---------------------------------------------------------------------------------------------------------

local function fail_key(self, key)
    self.cursor:fail_here("could not find expected ':'", 'while scanning a simple key', key)
end

-- Forget keys that are on an earlier line, or too long.
local function drop_old_keys(self)
    local cursor = self.cursor
    local index = cursor.at - cursor.extra
    for level = 0, self.flow do
        local key = self.keys[level]
        if key and (key.line < cursor.line or key.index + LONGEST_KEY < index) then
            if key.required then fail_key(self, key) end
            self.keys[level] = nil
        end
    end
end

local function drop_key(self)
    local key = self.keys[self.flow]
    if key and key.required then fail_key(self, key) end
    self.keys[self.flow] = nil
end

local function save_key(self)
    if not self.key_allowed then return end
    drop_key(self)
    local cursor = self.cursor
    self.keys[self.flow] = {
        line = cursor.line, column = cursor.column, index = cursor.at - cursor.extra, token = self.last + 1,
        required = self.flow == 0 and self.indent == cursor.column,
    }
end

-- Blocks --------------------------------------------------------------------------------------------------------------

-- Begin a block at a column, if it is deeper; its token goes to a place, or behind all.
local function begin_block(self, column, kind, mark, place)
    if self.flow > 0 or self.indent >= column then return end
    self.indents[#self.indents + 1] = self.indent
    self.indent = column
    if place then insert(self, place, kind, mark) else self:add(kind, mark) end
end

local function end_blocks(self, column)
    if self.flow > 0 then return end
    while self.indent > column do
        self:add('block_end', self.cursor)
        self.indent = table.remove(self.indents)
    end
end

-- Tokens --------------------------------------------------------------------------------------------------------------

local function skip_to_token(self)
    local cursor = self.cursor
    while true do
        local tabs = self.flow > 0 or not self.key_allowed
        local _, last = find(cursor.text, tabs and '^[ \t]+' or '^ +', cursor.at)
        if last then cursor:skip(last - cursor.at + 1) end
        cursor:skip_comment()
        if not cursor:line_break() then return end
        if self.flow == 0 then self.key_allowed = true end
    end
end

local function fetch_end(self)
    local cursor = self.cursor
    if cursor.column ~= 0 then
        cursor.column = 0
        cursor.line = cursor.line + 1
    end
    end_blocks(self, -1)
    drop_key(self)
    self.key_allowed, self.ended = false, true
    self:add('stream_end', cursor)
end

local function fetch_directive(self)
    end_blocks(self, -1)
    drop_key(self)
    self.key_allowed = false
    self.last = self.last + 1
    self.tokens[self.last] = tags.directive(self.cursor)
end

local function fetch_document_indicator(self)
    end_blocks(self, -1)
    drop_key(self)
    self.key_allowed = false
    local kind = byte(self.cursor.text, self.cursor.at) == 45 and 'document_start' or 'document_end'
    self:add(kind, self.cursor)
    self.cursor:skip(3)
end

local function fetch_flow_start(self, kind)
    save_key(self)
    self.flow = self.flow + 1
    self.key_allowed = true
    self:add(kind, self.cursor)
    self.cursor:skip(1)
end

local function fetch_flow_end(self, kind)
    drop_key(self)
    if self.flow > 0 then self.flow = self.flow - 1 end
    self.key_allowed = false
    self:add(kind, self.cursor)
    self.cursor:skip(1)
end

local function fetch_flow_entry(self)
    drop_key(self)
    self.key_allowed = true
    self:add('flow_entry', self.cursor)
    self.cursor:skip(1)
end

local function fetch_block_entry(self)
    local cursor = self.cursor
    if self.flow == 0 then
        if not self.key_allowed then
            cursor:fail_here('block sequence entries are not allowed in this context')
        end
        begin_block(self, cursor.column, 'block_sequence_start', cursor)
    end
    drop_key(self)
    self.key_allowed = true
    self:add('block_entry', cursor)
    cursor:skip(1)
end

local function fetch_key(self)
    local cursor = self.cursor
    if self.flow == 0 then
        if not self.key_allowed then cursor:fail_here('mapping keys are not allowed in this context') end
        begin_block(self, cursor.column, 'block_mapping_start', cursor)
    end
    drop_key(self)
    self.key_allowed = self.flow == 0
    self:add('key', cursor)
    cursor:skip(1)
end

local function fetch_value(self)
    local cursor, key = self.cursor, self.keys[self.flow]
    if key then
        insert(self, key.token, 'key', key)
        begin_block(self, key.column, 'block_mapping_start', key, key.token)
        self.keys[self.flow] = nil
        self.key_allowed = false
    else
        if self.flow == 0 then
            if not self.key_allowed then cursor:fail_here('mapping values are not allowed in this context') end
            begin_block(self, cursor.column, 'block_mapping_start', cursor)
        end
        self.key_allowed = self.flow == 0
    end
    self:add('value', cursor)
    cursor:skip(1)
end

local function fetch_anchor(self, kind)
    local cursor = self.cursor
    save_key(self)
    self.key_allowed = false
    local mark = cursor:mark()
    cursor:skip(1)
    local name = match(cursor.text, '^[%w_%-]*', cursor.at)
    cursor:skip(#name)
    if name == '' or not (cursor:is_blank_at(cursor.at) or find(cursor.text, '^[?:,%]}%%@`]', cursor.at)) then
        cursor:fail_here('did not find expected alphabetic or numeric character',
            'while scanning an ' .. kind, mark)
    end
    self:add(kind, mark, name)
end

local function fetch_tag(self)
    save_key(self)
    self.key_allowed = false
    local mark = self.cursor:mark()
    local handle, suffix = tags.tag(self.cursor, self.flow > 0)
    self:add('tag', mark, suffix).handle = handle
end

local function fetch_block_scalar(self, is_literal)
    drop_key(self)
    self.key_allowed = true
    local mark = self.cursor:mark()
    self:add('scalar', mark, scalars.block(self.cursor, is_literal, self.indent))
end

local function fetch_quoted(self, quote)
    save_key(self)
    self.key_allowed = false
    local mark = self.cursor:mark()
    self:add('scalar', mark, scalars.quoted(self.cursor, quote))
end

local function fetch_plain(self)
    save_key(self)
    self.key_allowed = false
    local mark = self.cursor:mark()
    local value, has_breaks = scalars.plain(self.cursor, self.indent + 1, self.flow > 0)
    if has_breaks then self.key_allowed = true end
    self:add('scalar', mark, value).is_plain = true
end

local FLOW = {
    ['['] = {fetch_flow_start, 'flow_sequence_start'}, ['{'] = {fetch_flow_start, 'flow_mapping_start'},
    [']'] = {fetch_flow_end, 'flow_sequence_end'}, ['}'] = {fetch_flow_end, 'flow_mapping_end'},
    [','] = {fetch_flow_entry}, ['*'] = {fetch_anchor, 'alias'}, ['&'] = {fetch_anchor, 'anchor'}, ['!'] = {fetch_tag},
    ["'"] = {fetch_quoted, "'"}, ['"'] = {fetch_quoted, '"'},
}

local function fetch(self)
    local cursor = self.cursor
    skip_to_token(self)
    drop_old_keys(self)
    end_blocks(self, cursor.column)
    local text, at = cursor.text, cursor.at
    if at > #text then return fetch_end(self) end
    local letter = text:sub(at, at)
    if cursor.column == 0 and letter == '%' then return fetch_directive(self) end
    if cursor:at_document_indicator() then return fetch_document_indicator(self) end
    local found = FLOW[letter]
    if found then return found[1](self, found[2]) end
    local is_apart = cursor:is_blank_at(at + 1)
    if letter == '-' and is_apart then return fetch_block_entry(self) end
    if letter == '?' and (self.flow > 0 or is_apart) then return fetch_key(self) end
    if letter == ':' and (self.flow > 0 or is_apart) then return fetch_value(self) end
    if (letter == '|' or letter == '>') and self.flow == 0 then return fetch_block_scalar(self, letter == '|') end
    if cursor:is_blank_at(at) or find(letter, '[#|>%%@`]') then
        cursor:fail_here('found character that cannot start any token', 'while scanning for the next token', cursor)
    end
    return fetch_plain(self)
end

-- The next token, which stays.
function scanner:peek()
    while true do
        local needed = self.first > self.last
        if not needed then
            drop_old_keys(self)
            for level = 0, self.flow do
                local key = self.keys[level]
                if key and key.token == self.first then needed = true end
            end
        end
        if not needed or self.ended then return self.tokens[self.first] end
        fetch(self)
    end
end

-- Take the token that was peeked.
function scanner:take()
    self.tokens[self.first] = nil
    self.first = self.first + 1
end

return scanner
