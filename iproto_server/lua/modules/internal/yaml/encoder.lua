-- The encoder of YAML documents: block style, flow style for `__serialize` = 'seq' and 'map', anchors for tables that
-- occur more than once.
local serializer = require('internal.serial.serializer')
local flow_events = require('internal.yaml.events')
local strings = require('internal.yaml.strings')
local writer = require('internal.yaml.writer')

local classify, number_text, long_text = serializer.classify, serializer.number_text, serializer.long_text
local type, next, rawget, getmetatable = type, next, rawget, getmetatable

local LONGEST_KEY = 128

-- Anchors -------------------------------------------------------------------------------------------------------------

-- Count tables: false for one that occurs once, true for more. Returns whether any value may have a style.
local function count_tables(value, found)
    if type(value) ~= 'table' then return type(value) == 'cdata' end
    if found[value] ~= nil then
        found[value] = true
        return false
    end
    found[value] = false
    local has_style = getmetatable(value) ~= nil
    for key, each in next, value do
        if count_tables(key, found) then has_style = true end
        if count_tables(each, found) then has_style = true end
    end
    return has_style
end

-- Scalars -------------------------------------------------------------------------------------------------------------

local function float_text(value, options, is_float)
    if value ~= value then return serializer.nan_text(value) end
    return is_float and options.number_format:format(value) or number_text(value, options)
end

-- The text of a scalar, how it is written ('plain', 'binary' or a style of strings), and whether it has lines.
local function scalar(kind, plain, options, wants_quotes, in_flow)
    if kind == 'string' then return strings.styled(plain, wants_quotes, in_flow) end
    if kind == 'number' then
        if plain ~= plain then
            number_text(plain, options)
            return float_text(plain), 'plain'
        end
        return number_text(plain, options), 'plain'
    end
    if kind == 'boolean' then return plain and 'true' or 'false', 'plain' end
    if kind == 'nil' then return 'null', 'plain' end
    if kind == 'long' then return long_text(plain), 'plain' end
    if kind == 'float' then return float_text(plain, options, true), 'plain' end
    return plain, 'plain'
end

local function write_scalar(out, text, style)
    local indent = out:deeper(true)
    if style == 'plain' then
        out:plain(text)
    elseif style == 'binary' then
        out:indicator('!!binary', false, false)
        out:plain(text)
    elseif style == 'single_quoted' then
        out:single_quoted(text)
    elseif style == 'literal' and not out.key then
        out:literal(text)
    else
        out:double_quoted(text)
    end
    out.indent = indent
end

-- Nodes ---------------------------------------------------------------------------------------------------------------

local write_node

-- One document: `found` counts its tables, `anchors` has those that were written.
local function write_anchor(out, document, value)
    if not document.found[value] then return false end
    local anchor = document.anchors[value]
    if anchor then
        out:indicator(out.key and '*' .. anchor .. ' ' or '*' .. anchor, false, false)
        return true
    end
    anchor = tostring(document.next_anchor)
    document.next_anchor = document.next_anchor + 1
    document.anchors[value] = anchor
    out:indicator('&' .. anchor, false, false)
    return false
end

local function write_array(out, document, value, size, compact, in_map)
    if out.flow > 0 or compact or size == 0 then
        out:indicator('[', true, false)
        local indent = out:deeper(true)
        out.flow = out.flow + 1
        for place = 1, size do
            if place > 1 then out:suffix(',') end
            if out:needs_fold() then out:start_line() end
            write_node(out, document, rawget(value, place), false)
        end
        out.flow = out.flow - 1
        out.indent = indent
        out:suffix(']')
        return
    end
    local indent = out:deeper(false, in_map and not out.indented)
    for place = 1, size do
        out:start_line()
        out:indicator('-', false, true)
        write_node(out, document, rawget(value, place), false)
    end
    out.indent = indent
end

-- Whether a key is short, on one line, and no collection with content.
local function is_simple_key(document, key)
    local options = document.options
    local kind, plain, size = classify(key, options)
    if document.anchors[plain] then return true end
    if kind == 'array' then return size == 0 end
    if kind == 'map' then return type(next(plain)) == 'nil' end
    local text, style, has_lines = scalar(kind, plain, options, false, false)
    return not has_lines and #text + (style == 'binary' and 8 or 0) <= LONGEST_KEY
end

local function write_pair(out, document, key, value)
    local simple = type(key) == 'string' and #key < 64 and not key:find('[\n\r\128-\255]')
        or is_simple_key(document, key)
    local in_flow = out.flow > 0
    if simple then
        out.key = true
        write_node(out, document, key, true)
        out.key = false
        out:suffix(':')
    else
        out:indicator('?', false, not in_flow)
        write_node(out, document, key, true)
        if not in_flow then
            out:start_line()
        elseif out:needs_fold() then
            out:start_line()
        end
        out:indicator(':', false, not in_flow)
    end
    write_node(out, document, value, true)
end

local function write_map(out, document, value, compact)
    if out.flow > 0 or compact or type(next(value)) == 'nil' then -- a key NULL equals nil
        out:indicator('{', true, false)
        local indent = out:deeper(true)
        out.flow = out.flow + 1
        local first = true
        for key, each in next, value do
            if not first then out:suffix(',') end
            first = false
            if out:needs_fold() then out:start_line() end
            write_pair(out, document, key, each)
        end
        out.flow = out.flow - 1
        out.indent = indent
        out:suffix('}')
        return
    end
    local indent = out:deeper(false)
    for key, each in next, value do
        out:start_line()
        write_pair(out, document, key, each)
    end
    out.indent = indent
end

function write_node(out, document, value, in_map)
    local options, events = document.options, document.events
    local kind, plain, size, compact = classify(value, options)
    if kind == 'array' or kind == 'map' then
        if write_anchor(out, document, plain) then
            if events then events:add('scalar') end
            return
        end
        if events then events:add(kind, compact) end
        if kind == 'array' then
            write_array(out, document, plain, size, compact, in_map)
        else
            write_map(out, document, plain, compact)
        end
        if events then events:add('end') end
        return
    end
    local text, style = scalar(kind, plain, options, events ~= nil and events:is_flow(), out.flow > 0)
    if events then events:add('scalar') end
    if text == '' and style == 'plain' and out.key then style = 'single_quoted' end
    write_scalar(out, text, style)
end

-- Encode a value as a document. `tag` is the text of its %TAG directive, if any.
return function(value, options, tag)
    local document = {options = options, found = {}, anchors = {}, next_anchor = 0}
    if count_tables(value, document.found) then document.events = flow_events.new() end
    local out = writer.new()
    if tag then
        out:indicator('%TAG ' .. tag, false, false)
        out:start_line()
    end
    out:indicator('---', false, false)
    write_node(out, document, value, false)
    out:start_line()
    out:indicator('...', false, false)
    out:start_line()
    return table.concat(out.out)
end
