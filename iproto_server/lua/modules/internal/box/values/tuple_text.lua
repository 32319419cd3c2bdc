-- The text of a tuple: YAML in flow style, with its strings in single quotes.
local ffi = require('ffi')
local native = require('internal.native')
local serializer = require('internal.serial.serializer')
local strings = require('internal.yaml.strings')
local writer = require('internal.yaml.writer')

local type, getmetatable = type, getmetatable
local map_mt, long_text = serializer.map_mt, serializer.long_text
local LONGEST_KEY = 128

local sign = ffi.new('union { double number; uint8_t bytes[8]; }')

local function number_text(value)
    if value ~= value then
        sign.number = value
        return sign.bytes[7] >= 128 and '-nan' or 'nan'
    end
    return ('%.14g'):format(value)
end

local write

local function write_string(out, text)
    local shown, style = strings.styled(text, true, true)
    if style == 'binary' then
        out:indicator('!!binary', false, false)
        out:plain(shown)
    elseif style == 'double_quoted' then
        out:double_quoted(shown)
    else
        out:single_quoted(shown)
    end
end

local function begin_item(out, is_first)
    if not is_first then out:suffix(',') end
    if out:needs_fold() then out:start_line() end
end

local function is_simple_key(key)
    if type(key) == 'table' then return #key == 0 end
    if type(key) ~= 'string' then return true end
    local text, style, has_lines = strings.styled(key, true, true)
    return not has_lines and #text + (style == 'binary' and 8 or 0) <= LONGEST_KEY
end

local function write_pair(out, key, value)
    if is_simple_key(key) then
        out.key = true
        write(out, key)
        out.key = false
        out:suffix(':')
    else
        out:indicator('?', false, false)
        write(out, key)
        if out:needs_fold() then out:start_line() end
        out:indicator(':', false, false)
    end
    write(out, value)
end

local function write_table(out, values)
    local is_map = getmetatable(values) == map_mt
    out:indicator(is_map and '{' or '[', true, false)
    local indent = out:deeper(true)
    out.flow = out.flow + 1
    for place = 1, #values, is_map and 2 or 1 do
        begin_item(out, place == 1)
        if is_map then write_pair(out, values[place], values[place + 1]) else write(out, values[place]) end
    end
    out.flow = out.flow - 1
    out.indent = indent
    out:suffix(is_map and '}' or ']')
end

function write(out, value)
    local kind = type(value)
    if kind == 'table' then return write_table(out, value) end
    local indent = out:deeper(true)
    if kind == 'string' then
        write_string(out, value)
    elseif kind == 'number' then
        out:plain(number_text(value))
    elseif kind == 'cdata' then
        out:plain(value == nil and 'null' or long_text(value))
    else
        out:plain(tostring(value))
    end
    out.indent = indent
end

return function(tuple)
    local out = writer.new(math.huge)
    write(out, native.tuple_in_order(tuple))
    return table.concat(out.out)
end
