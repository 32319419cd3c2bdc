-- The module yaml.
local serializer = require('serializer')
local encode = require('yaml_encoder')

local ENCODE_USAGE = 'Usage: encode(object, {tag_prefix = <string>, tag_handle = <string>})'

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

    yaml.new = new_yaml
    return yaml
end

return new_yaml()
