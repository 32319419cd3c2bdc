-- The module json.
local serializer = require('internal.serial.serializer')
local decode = require('internal.serial.json_decoder')

local classify, number_text, long_text = serializer.classify, serializer.number_text, serializer.long_text
local type, next, rawget = type, next, rawget
local find, gsub, concat = string.find, string.gsub, table.concat

local ESCAPES = {
    ['"'] = '\\"', ['\\'] = '\\\\', ['/'] = '\\/', ['\127'] = '\\u007f',
    ['\b'] = '\\b', ['\t'] = '\\t', ['\n'] = '\\n', ['\f'] = '\\f', ['\r'] = '\\r',
}
for code = 0, 31 do
    local character = string.char(code)
    ESCAPES[character] = ESCAPES[character] or ('\\u%04x'):format(code)
end

local function quoted(text)
    if find(text, '[%c"\\/]') then text = gsub(text, '[%c"\\/]', ESCAPES) end
    return '"' .. text .. '"'
end

local append

local function append_array(out, count, value, size, options, depth)
    if size == 0 then
        out[count + 1] = '[]'
        return count + 1
    end
    for place = 1, size do
        out[count + 1] = place == 1 and '[' or ','
        count = append(out, count + 1, rawget(value, place), options, depth)
    end
    out[count + 1] = ']'
    return count + 1
end

local function key_text(key, options)
    local kind, plain = classify(key, options)
    local is_integer = kind == 'long'
        or (kind == 'number' and plain % 1 == 0 and plain >= -0x1p63 and plain < 0x1p64)
    if not is_integer and kind ~= 'string' then serializer.fail('table key must be a number or string') end
    if kind == 'string' then return quoted(plain) .. ':' end
    if kind == 'long' then return '"' .. long_text(plain) .. '":' end
    return '"' .. number_text(plain, options) .. '":'
end

local function append_map(out, count, value, options, depth)
    local separator = '{'
    for key, each in next, value do
        out[count + 1] = separator
        out[count + 2] = type(key) == 'string' and quoted(key) .. ':' or key_text(key, options)
        count = append(out, count + 2, each, options, depth)
        if type(key) == 'table' then error("invalid key to 'next'", 0) end -- a table that `__serialize` made a key
        separator = ','
    end
    if separator == '{' then
        out[count + 1] = '{}'
        return count + 1
    end
    out[count + 1] = '}'
    return count + 1
end

-- Append the texts of a value to a list. Returns the list's size.
function append(out, count, value, options, depth)
    local kind, plain, size = type(value), value, nil
    if kind == 'table' or kind == 'cdata' then
        kind, plain, size = classify(value, options)
    end
    if kind == 'string' then
        out[count + 1] = quoted(plain)
    elseif kind == 'number' then
        out[count + 1] = number_text(plain, options)
    elseif kind == 'boolean' then
        out[count + 1] = plain and 'true' or 'false'
    elseif kind == 'array' or kind == 'map' then
        if depth >= options.encode_max_depth then
            if not options.encode_deep_as_nil then serializer.fail('Too high nest level') end
            out[count + 1] = 'null'
        elseif kind == 'array' then
            return append_array(out, count, plain, size, options, depth + 1)
        else
            return append_map(out, count, plain, options, depth + 1)
        end
    elseif kind == 'nil' then
        out[count + 1] = 'null'
    elseif kind == 'long' then
        out[count + 1] = long_text(plain)
    elseif kind == 'float' then
        out[count + 1] = plain ~= plain and 'nan' or options.number_format:format(plain)
    elseif kind == 'scalar' then
        out[count + 1] = quoted(plain)
    else
        local _, text = classify(value, options) -- a function, thread or userdata: a text, nothing, or an error
        out[count + 1] = text and quoted(text) or 'null'
    end
    return count + 1
end

local function new_json()
    local options, json = serializer.new_module()

    json.encode = serializer.entry(function(...)
        local arguments = select('#', ...)
        if arguments ~= 1 and arguments ~= 2 then serializer.bad_argument(1, 'expected 1 or 2 arguments') end
        local value, changed = ...
        local used = arguments == 2 and serializer.call_options(options, changed) or options
        local out = {}
        append(out, 0, value, used, 0)
        return concat(out)
    end)

    json.decode = serializer.entry(function(...)
        local arguments = select('#', ...)
        if arguments ~= 1 and arguments ~= 2 then serializer.bad_argument(1, 'expected 1 or 2 arguments') end
        local text, changed = ...
        local used = arguments == 2 and serializer.call_options(options, changed) or options
        if type(text) == 'number' then text = tostring(text) end
        if type(text) ~= 'string' then serializer.bad_argument(1, 'string expected, got ' .. type(text)) end
        return (decode(text, used))
    end)

    json.new = new_json
    return json
end

local json = new_json()
json.null = json.NULL
return json
