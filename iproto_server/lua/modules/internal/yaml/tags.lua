-- Tags and directives of a YAML text.
local byte, find, match, sub = string.byte, string.find, string.match, string.sub

local tags = {}

local function scan_handle(cursor, is_directive, start)
    local context = is_directive and 'while scanning a tag directive' or 'while scanning a tag'
    if byte(cursor.text, cursor.at) ~= 33 then cursor:fail_here("did not find expected '!'", context, start) end
    local handle = match(cursor.text, '^![%w_%-]*!?', cursor.at)
    cursor:skip(#handle)
    if is_directive and handle ~= '!' and sub(handle, -1) ~= '!' then
        cursor:fail_here("did not find expected '!'", 'while parsing a tag directive', start)
    end
    return handle
end

-- The bytes of `%XX`, one character in UTF-8.
local function scan_escapes(cursor, context, start)
    local parts, left = {}, nil
    repeat
        local digits = match(cursor.text, '^%%(%x%x)', cursor.at)
        if not digits then cursor:fail_here('did not find URI escaped octet', context, start) end
        local octet = tonumber(digits, 16)
        if not left then
            left = octet < 0x80 and 1 or octet >= 0xC0 and octet < 0xE0 and 2
                or octet >= 0xE0 and octet < 0xF0 and 3 or octet >= 0xF0 and octet < 0xF8 and 4 or nil
            if not left then cursor:fail_here('found an incorrect leading UTF-8 octet', context, start) end
        elseif octet < 0x80 or octet >= 0xC0 then
            cursor:fail_here('found an incorrect trailing UTF-8 octet', context, start)
        end
        parts[#parts + 1] = string.char(octet)
        cursor:skip(3)
        left = left - 1
    until left == 0
    return table.concat(parts)
end

-- A URI behind `head`, which is an exclamation mark and maybe the URI's first characters. `has_flow`: whether commas
-- and brackets belong to it.
local function scan_uri(cursor, is_directive, has_flow, head, start)
    local characters = has_flow and "^[%w_;/?:@&=+$.!~*'()%-,%[%]]+" or "^[%w_;/?:@&=+$.!~*'()%-]+"
    local context = is_directive and 'while parsing a %TAG directive' or 'while parsing a tag'
    local parts = {sub(head, 2)}
    local size = #head
    while true do
        local found = match(cursor.text, characters, cursor.at)
        if found then
            parts[#parts + 1] = found
            cursor:skip(#found)
        elseif byte(cursor.text, cursor.at) == 37 then
            found = scan_escapes(cursor, context, start)
            parts[#parts + 1] = found
        else
            break
        end
        size = size + #found
    end
    if size == 0 then cursor:fail_here('did not find expected tag URI', context, start) end
    return table.concat(parts)
end

-- Go over a tag. Returns its handle, '' if it is verbatim, and its suffix.
function tags.tag(cursor, in_flow)
    local start = cursor:mark()
    local handle, suffix
    if byte(cursor.text, cursor.at + 1) == 60 then
        cursor:skip(2)
        handle, suffix = '', scan_uri(cursor, false, true, '', start)
        if byte(cursor.text, cursor.at) ~= 62 then
            cursor:fail_here("did not find the expected '>'", 'while scanning a tag', start)
        end
        cursor:skip(1)
    else
        handle = scan_handle(cursor, false, start)
        if #handle > 1 and sub(handle, -1) == '!' then
            suffix = scan_uri(cursor, false, false, '', start)
        else
            suffix = scan_uri(cursor, false, false, handle, start)
            handle = '!'
            if suffix == '' then handle, suffix = '', '!' end
        end
    end
    if not cursor:is_blank_at(cursor.at) and not (in_flow and byte(cursor.text, cursor.at) == 44) then
        cursor:fail_here('did not find expected whitespace or line break', 'while scanning a tag', start)
    end
    return handle, suffix
end

local function scan_version_number(cursor, start)
    local context = 'while scanning a %YAML directive'
    local digits = match(cursor.text, '^%d*', cursor.at)
    if #digits > 9 then
        cursor:skip(9)
        cursor:fail_here('found extremely long version number', context, start)
    end
    cursor:skip(#digits)
    if digits == '' then cursor:fail_here('did not find expected version number', context, start) end
    return tonumber(digits)
end

local function scan_version(cursor, start)
    cursor:skip_blanks()
    local major = scan_version_number(cursor, start)
    if byte(cursor.text, cursor.at) ~= 46 then
        cursor:fail_here("did not find expected digit or '.' character", 'while scanning a %YAML directive', start)
    end
    cursor:skip(1)
    return {kind = 'version', line = start.line, column = start.column, major = major,
        minor = scan_version_number(cursor, start)}
end

local function scan_tag_directive(cursor, start)
    local context = 'while scanning a %TAG directive'
    cursor:skip_blanks()
    local handle = scan_handle(cursor, true, start)
    if not find(cursor.text, '^[ \t]', cursor.at) then
        cursor:fail_here('did not find expected whitespace', context, start)
    end
    cursor:skip_blanks()
    local prefix = scan_uri(cursor, true, true, '', start)
    if not cursor:is_blank_at(cursor.at) then
        cursor:fail_here('did not find expected whitespace or line break', context, start)
    end
    return {kind = 'tag_directive', line = start.line, column = start.column, handle = handle, prefix = prefix}
end

-- Go over a directive. Returns its token.
function tags.directive(cursor)
    local start, context, token = cursor:mark(), 'while scanning a directive', nil
    cursor:skip(1)
    local name = match(cursor.text, '^[%w_%-]*', cursor.at)
    cursor:skip(#name)
    if name == '' then cursor:fail_here('could not find expected directive name', context, start) end
    if not cursor:is_blank_at(cursor.at) then
        cursor:fail_here('found unexpected non-alphabetical character', context, start)
    end
    if name == 'YAML' then
        token = scan_version(cursor, start)
    elseif name == 'TAG' then
        token = scan_tag_directive(cursor, start)
    else
        cursor:fail_here('found unknown directive name', context, start)
    end
    cursor:skip_blanks()
    cursor:skip_comment()
    if not cursor:ends_at(cursor.at) then
        cursor:fail_here('did not find expected comment or line break', context, start)
    end
    cursor:line_break()
    return token
end

return tags
