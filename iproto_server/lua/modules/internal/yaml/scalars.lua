-- Scalars of a YAML text: plain, quoted and block scalars. Each function goes over one and returns its value.
local encoded = require('internal.characters').encoded
local byte, find, match, sub, concat = string.byte, string.find, string.match, string.sub, table.concat

local scalars = {}

-- Blanks and line breaks within plain and quoted scalars: a single line break is a blank, more lose the first.
local function folded(first_break, more_breaks)
    if first_break ~= '\n' then return first_break .. more_breaks end
    return more_breaks == '' and ' ' or more_breaks
end

-- Go over blanks and line breaks. `check_blank` is called for each blank behind a line break. Returns the blanks, or
-- nil and what stands for the line breaks.
local function skip_space(cursor, first_break, check_blank)
    local text, blanks, more = cursor.text, '', ''
    while true do
        local _, last = find(text, '^[ \t]+', cursor.at)
        if last then
            if first_break then
                if check_blank then check_blank(last) end
            else
                blanks = sub(text, cursor.at, last)
            end
            cursor:skip(last - cursor.at + 1)
        end
        local found = cursor:line_break()
        if found and first_break then
            more = more .. found
        elseif found then
            first_break = found
        elseif not last then
            if first_break then return nil, folded(first_break, more) end
            return blanks
        end
    end
end

-- Plain ---------------------------------------------------------------------------------------------------------------

local FLOW_ENDS = {[44] = true, [63] = true, [91] = true, [93] = true, [123] = true, [125] = true}

-- The place where the words of a plain scalar end on their line: before a blank, a line break or an indicator.
local function plain_end(cursor, start, in_flow)
    local text, at = cursor.text, cursor.at
    while true do
        at = find(text, in_flow and '[ \t\n\r\194\226:,%[%]{}]' or '[ \t\n\r\194\226:]', at)
        if not at then return #text + 1 end
        local found = byte(text, at)
        if found == 58 then
            if in_flow and FLOW_ENDS[byte(text, at + 1)] then
                cursor:skip_to(at)
                cursor:fail_here("found unexpected ':'", 'while scanning a plain scalar', start)
            end
            if cursor:is_blank_at(at + 1) then return at end
        elseif found < 0xC2 or cursor:break_at(at) then
            return at
        end
        at = at + 1
    end
end

-- A plain scalar in a block at `indent`. The second result says whether it ended behind a line break.
function scalars.plain(cursor, indent, in_flow)
    local start, text, parts = cursor:mark(), cursor.text, {}
    local function check_blank(last)
        for place = cursor.at, last do
            if cursor.column + place - cursor.at < indent and byte(text, place) == 9 then
                cursor:skip(place - cursor.at)
                local problem = 'found a tab character that violates indentation'
                cursor:fail_here(problem, 'while scanning a plain scalar', start)
            end
        end
    end
    local blanks, breaks = '', nil
    while true do
        if cursor:at_document_indicator() or byte(text, cursor.at) == 35 then break end
        local stop = plain_end(cursor, start, in_flow)
        if stop > cursor.at then
            if #parts > 0 then parts[#parts + 1] = breaks or blanks end
            parts[#parts + 1] = sub(text, cursor.at, stop - 1)
            cursor:skip_to(stop)
            blanks, breaks = '', nil
        end
        if stop > #text or not cursor:is_blank_at(stop) then break end
        blanks, breaks = skip_space(cursor, nil, check_blank)
        if not in_flow and cursor.column < indent then break end
    end
    return #parts == 1 and parts[1] or concat(parts), breaks ~= nil
end

-- Quoted --------------------------------------------------------------------------------------------------------------

local ESCAPES = {
    ['0'] = '\0', a = '\a', b = '\b', t = '\t', ['\t'] = '\t', n = '\n', v = '\v', f = '\f', r = '\r', e = '\27',
    [' '] = ' ', ['"'] = '"', ['/'] = '/', ['\\'] = '\\', N = '\194\133', _ = '\194\160', L = '\226\128\168',
    P = '\226\128\169',
}
local HEX_DIGITS = {x = 2, u = 4, U = 8}

local function unescape(cursor, start)
    local context = 'while parsing a quoted scalar'
    local letter = sub(cursor.text, cursor.at + 1, cursor.at + 1)
    local digits = HEX_DIGITS[letter]
    if not digits then
        if not ESCAPES[letter] then cursor:fail_here('found unknown escape character', context, start) end
        cursor:skip(2)
        return ESCAPES[letter]
    end
    cursor:skip(2)
    local code = match(cursor.text, '^' .. ('%x'):rep(digits), cursor.at)
    if not code then cursor:fail_here('did not find expected hexdecimal number', context, start) end
    code = tonumber(code, 16)
    if (code >= 0xD800 and code < 0xE000) or code > 0x10FFFF then
        cursor:fail_here('found invalid Unicode character escape code', context, start)
    end
    cursor:skip(digits)
    return encoded(code)
end

-- Read up to the quote, a blank or a line break. Returns whether an escaped line break ended it.
local function read_quoted_words(cursor, start, quote, parts)
    local text = cursor.text
    local stops = quote == "'" and "[' \t\n\r\194\226]" or '["\\ \t\n\r\194\226]'
    local from = cursor.at
    while true do
        local at = find(text, stops, from)
        local found = at and byte(text, at)
        if not found then
            parts[#parts + 1] = sub(text, cursor.at)
            cursor:skip_to(#text + 1)
            return false
        elseif found >= 0xC2 and not cursor:break_at(at) then
            from = at + 1
        else
            parts[#parts + 1] = sub(text, cursor.at, at - 1)
            cursor:skip_to(at)
            if found == 39 and byte(text, at + 1) == 39 then
                parts[#parts + 1] = "'"
                cursor:skip(2)
            elseif found ~= 92 then
                return false
            elseif cursor:break_at(at + 1) then
                cursor:skip(1)
                cursor:line_break()
                return true
            else
                parts[#parts + 1] = unescape(cursor, start)
            end
            from = cursor.at
        end
    end
end

function scalars.quoted(cursor, quote)
    local start, parts, context = cursor:mark(), {}, 'while scanning a quoted scalar'
    cursor:skip(1)
    while true do
        if cursor:at_document_indicator() then
            cursor:fail_here('found unexpected document indicator', context, start)
        end
        if cursor.at > #cursor.text then cursor:fail_here('found unexpected end of stream', context, start) end
        local escaped_break = read_quoted_words(cursor, start, quote, parts)
        if sub(cursor.text, cursor.at, cursor.at) == quote then break end
        if escaped_break then
            local _, breaks = skip_space(cursor, '')
            parts[#parts + 1] = breaks
        else
            local blanks, breaks = skip_space(cursor)
            parts[#parts + 1] = blanks or breaks
        end
    end
    cursor:skip(1)
    return concat(parts)
end

-- Blocks --------------------------------------------------------------------------------------------------------------

local BLOCK = 'while scanning a block scalar'

-- The header of a block scalar: what happens to its last line breaks ('+', '-' or nothing), and its indentation.
local function block_header(cursor, start)
    local text = cursor.text
    local chomp, digit = match(text, '^([+-])(%d?)', cursor.at)
    if not chomp then
        digit, chomp = match(text, '^(%d)([+-]?)', cursor.at)
    end
    if digit == '0' then
        if find(text, '^[+-]', cursor.at) then cursor:skip(1) end
        cursor:fail_here('found an indentation indicator equal to 0', BLOCK, start)
    end
    cursor:skip(#(chomp or '') + #(digit or ''))
    cursor:skip_blanks()
    cursor:skip_comment()
    if not cursor:ends_at(cursor.at) then
        cursor:fail_here('did not find expected comment or line break', BLOCK, start)
    end
    cursor:line_break()
    return chomp, tonumber(digit)
end

-- Go over indentation and empty lines. Returns their line breaks, and the indentation, which the first line sets.
local function block_breaks(cursor, start, indent, outer)
    local text, breaks, greatest = cursor.text, '', 0
    while true do
        while (not indent or cursor.column < indent) and byte(text, cursor.at) == 32 do cursor:skip(1) end
        if cursor.column > greatest then greatest = cursor.column end
        if (not indent or cursor.column < indent) and byte(text, cursor.at) == 9 then
            cursor:fail_here('found a tab character where an indentation space is expected', BLOCK, start)
        end
        local found = cursor:line_break()
        if not found then break end
        breaks = breaks .. found
    end
    return breaks, indent or math.max(greatest, outer + 1, 1)
end

-- A block scalar in a block at `outer`.
function scalars.block(cursor, is_literal, outer)
    local start, text, parts = cursor:mark(), cursor.text, {}
    cursor:skip(1)
    local chomp, digit = block_header(cursor, start)
    local last_break, was_blank, breaks = '', false, nil
    breaks, digit = block_breaks(cursor, start, digit and math.max(outer, 0) + digit, outer)
    while cursor.column == digit and cursor.at <= #text do
        local is_blank = find(text, '^[ \t]', cursor.at) ~= nil
        if not is_literal and last_break == '\n' and not was_blank and not is_blank then
            if breaks == '' then parts[#parts + 1] = ' ' end
        else
            parts[#parts + 1] = last_break
        end
        parts[#parts + 1] = breaks
        was_blank = is_blank
        local stop = cursor:line_end(cursor.at)
        parts[#parts + 1] = sub(text, cursor.at, stop - 1)
        cursor:skip_to(stop)
        last_break = cursor:line_break() or ''
        breaks = block_breaks(cursor, start, digit, outer)
    end
    if chomp ~= '-' then parts[#parts + 1] = last_break end
    if chomp == '+' then parts[#parts + 1] = breaks end
    return concat(parts)
end

return scalars
