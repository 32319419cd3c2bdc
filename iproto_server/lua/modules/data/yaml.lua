-- The module yaml.
local serializer = require('internal.serial.serializer')
local encode = require('internal.yaml.encoder')
local parsers = require('internal.yaml.parser')

local ENCODE_USAGE = 'Usage: encode(object, {tag_prefix = <string>, tag_handle = <string>})'

local DECODE_USAGE = 'Usage: yaml.decode(document, [{tag_only = boolean}])'

local function as_text(value)
    if type(value) == 'number' then return tostring(value) end
    return type(value) == 'string' and value or nil
end

-- The %TAG directive of `encode`, or nil and what is wrong.
local function tag_directive(handle, prefix)
    if handle == '' then return nil, 'tag handle must not be empty' end
    if handle:sub(1, 1) ~= '!' then return nil, "tag handle must start with '!'" end
    if handle:sub(-1) ~= '!' then return nil, "tag handle must end with '!'" end
    if handle:find('[^%w_%-]', 2) ~= #handle and #handle > 1 then
        return nil, 'tag handle must contain alphanumerical characters only'
    end
    if prefix == '' then return nil, 'tag prefix must not be empty' end
    local escaped = prefix:gsub("[^%w_;/?:@&=+$,.~*'()%[%]%-]", function(character)
        return ('%%%02X'):format(character:byte())
    end)
    return handle .. ' ' .. escaped
end

local function all_documents(parser)
    local values, count = {}, 0
    local found, is_implicit = parser:begin_document()
    while found do
        count = count + 1
        values[count] = parser:read_document(is_implicit)
        found, is_implicit = parser:begin_document()
    end
    return unpack(values, 1, count)
end

local function first_tags(text, options)
    local parser = parsers.new(text, options)
    parser:begin_document()
    return parser.tags
end

-- The handle and the prefix of the first document's %TAG directive; nil if there is none, or nil and what is wrong.
local function only_tag(text, options)
    local ok, found = pcall(first_tags, text, options)
    if not ok then return nil, found end
    if #found == 0 then return nil end
    if #found > 1 then return nil, 'can not decode multiple tags' end
    return found[1].handle, found[1].prefix
end

local function values_of(...)
    return ...
end

local function new_yaml()
    local options, yaml = serializer.new_module()

    yaml.encode = serializer.entry(function(...)
        local value, tags = ...
        if select('#', ...) == 0 or select('#', ...) > 2 then serializer.fail(ENCODE_USAGE) end
        local directive, why
        if type(tags) ~= 'nil' then
            if type(tags) ~= 'table' then serializer.fail(ENCODE_USAGE) end
            local given = type(tags.tag_prefix) ~= 'nil' or type(tags.tag_handle) ~= 'nil'
            local prefix, handle = as_text(tags.tag_prefix), as_text(tags.tag_handle)
            if given and not (prefix and handle) then serializer.fail(ENCODE_USAGE) end
            if handle then
                directive, why = tag_directive(handle, prefix)
                if not directive then return nil, why end
            end
        end
        return (encode(value, options, directive))
    end)

    yaml.decode = serializer.entry(function(...)
        local text, given = ...
        if type(text) == 'number' then text = tostring(text) end
        if type(text) ~= 'string' or (type(given) ~= 'nil' and type(given) ~= 'table') then
            serializer.fail(DECODE_USAGE)
        end
        -- No tail call: errors look for this function among the callers.
        if given and given.tag_only == true then return values_of(only_tag(text, options)) end
        return values_of(all_documents(parsers.new(text, options)))
    end)

    yaml.new = new_yaml
    return yaml
end

return new_yaml()
