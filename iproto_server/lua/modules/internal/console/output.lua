-- The output of a console: results and errors as YAML or as Lua.
local lua_text = require('internal.console.lua_writer')
local NULL = require('internal.serial.serializer').NULL

local output = {}

-- Formats -------------------------------------------------------------------------------------------------------------

local LANGUAGES = {lua = true, yaml = true}
local LUA_OPTIONS = {line = true, block = true}

-- Read a format, as `yaml` or `lua,block`. Returns its fields, or nil and what is wrong.
function output.read_format(value)
    local fmt, opts = value:match('^([^,]+),([^,]+)')
    fmt = fmt or value
    if not LANGUAGES[fmt] then
        return nil, ('Invalid format "%s", supported languages: lua and yaml.'):format(value)
    end
    if fmt == 'lua' and opts and not LUA_OPTIONS[opts] then
        return nil, ('Wrong option "%s", expecting: line or block.'):format(opts)
    end
    return {fmt = fmt, opts = opts}
end

-- YAML ----------------------------------------------------------------------------------------------------------------

local encoder

local function encode(value, tag)
    if not encoder then
        encoder = require('yaml').new()
        encoder.cfg{encode_use_tostring = true}
    end
    return encoder.encode(value, tag)
end

local function yaml_failure(reason)
    return encode{{error = reason}}
end

local function yaml_values(values)
    if values.n == 0 then return '---\n...\n' end
    for place = 1, values.n do
        if type(values[place]) == 'nil' then values[place] = NULL end
    end
    local count = values.n
    values.n = nil
    local ok, text = pcall(encode, values)
    values.n = count
    if ok then return text end
    return yaml_failure('console: an exception occurred when formatting the output: ' .. tostring(text))
end

local yaml = {values = yaml_values, failure = yaml_failure, end_mark = '\n...\n'}

function yaml.pushed(value)
    return encode(value, {tag_handle = '!push!', tag_prefix = 'tag:tarantool.io/push,2018'})
end

-- Lua -----------------------------------------------------------------------------------------------------------------

local function lua_format(is_block)
    local lua = {end_mark = ';'}

    function lua.failure(reason)
        return lua_text({error = reason}, is_block) .. ';'
    end

    local function shown(value)
        local ok, text = pcall(lua_text, value, is_block)
        if ok then return text end
        local reason = ('console: exception while formatting output: "%s"'):format(tostring(text))
        return lua_text({error = reason}, is_block)
    end

    function lua.values(values)
        local texts = {}
        for place = 1, values.n do texts[place] = shown(values[place]) end
        return table.concat(texts, ', ') .. ';'
    end

    function lua.pushed(value)
        return '-- Push\n' .. lua_text(value, is_block) .. ';'
    end
    return lua
end

local line_format, block_format = lua_format(false), lua_format(true)

local function writer(format)
    if format.fmt == 'yaml' then return yaml end
    return format.opts == 'block' and block_format or line_format
end

-- Public functions ----------------------------------------------------------------------------------------------------

-- The text of values: a table with their number `n`.
function output.values(format, values)
    return writer(format).values(values)
end

-- The text of an error.
function output.failure(format, reason)
    if type(reason) == 'nil' then reason = NULL end
    return writer(format).failure(reason)
end

-- The text of a value that `box.session.push` sends.
function output.pushed(format, value)
    return writer(format).pushed(value)
end

-- What is at the end of each text.
function output.end_mark(format)
    return writer(format).end_mark
end

return output
