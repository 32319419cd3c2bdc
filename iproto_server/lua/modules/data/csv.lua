-- Tarantool's module csv, see https://www.tarantool.io/en/doc/2.6/reference/reference_lua/csv/.
local log = require('log')
local parser = require('internal.csv_parser')

local CHUNK_SIZE = 4096
local LOAD_USAGE = 'Usage: load(string or object with method read(num)returns string)'
local DUMP_USAGE = 'Usage: dump(table[, opts, writable])'

local csv = {}

-- An option that is one character.
local function character(value, default)
    if not value then return default end
    local first = tostring(value):sub(1, 1)
    if first == '' then error("cannot convert 'nil' to 'char'") end
    return first
end

local function from_text(text)
    return {
        read = function(self)
            local rest = self.rest
            self.rest = ''
            return rest
        end,
        rest = text,
    }
end

-- The next row of a state; nil at the end.
local function next_row(state)
    while true do
        local row = state.parser:take()
        if row or state.is_ended then return row end
        local text = state.readable:read(state.chunk_size)
        if type(text) ~= 'string' then error(LOAD_USAGE) end
        if text ~= '' then
            state.parser:feed(text)
        else
            state.is_ended = true
            if not state.parser:finish() then log.warn('CSV file has errors') end
        end
    end
end

local function iterate(state, number)
    local row
    repeat
        row = next_row(state)
        number = number + 1
    until number > 0 or not row
    if row then return number, row end
end

-- Iterate over the rows of a text, or of an object with a method `read`.
function csv.iterate(readable, options)
    options = options or {}
    if type(readable) == 'string' then readable = from_text(readable) end
    if type(readable.read) ~= 'function' then error(LOAD_USAGE) end
    local state = {
        readable = readable,
        chunk_size = options.chunk_size or CHUNK_SIZE,
        parser = parser.new(character(options.delimiter, ','), character(options.quote_char, '"')),
    }
    return iterate, state, -(options.skip_head_lines or 0)
end

function csv.load(readable, options)
    local rows = {}
    for number, row in csv.iterate(readable, options) do rows[number] = row end
    return rows
end

local function escaped(value, delimiter, quote)
    local text = tostring(value):match('^[^%z]*')
    local is_quoted = text:find(delimiter, 1, true) or text:find('[\r\n]')
    text = text:gsub(quote:gsub('%W', '%%%0'), (quote:gsub('%%', '%%%%')):rep(2))
    return is_quoted and quote .. text .. quote or text
end

local function line_of(row, separator, delimiter, quote)
    local fields = {}
    for _, value in pairs(row) do fields[#fields + 1] = escaped(value, delimiter, quote) end
    return table.concat(fields, separator) .. '\n'
end

local function collector()
    return {
        write = function(self, text) self[#self + 1] = text end,
    }
end

-- Write rows, or one row. Returns the text if there is no `writable` to write it to.
function csv.dump(rows, options, writable)
    options = options or {}
    local output = writable or collector()
    if type(output.write) ~= 'function' or type(rows) ~= 'table' then error(DUMP_USAGE) end
    local delimiter, quote = character(options.delimiter, ','), character(options.quote_char, '"')
    local separator = options.delimiter or ','
    if type(rows[1]) ~= 'table' then rows = {rows} end
    for _, row in pairs(rows) do output:write(line_of(row, separator, delimiter, quote)) end
    if not writable then return table.concat(output) end
end

return csv
