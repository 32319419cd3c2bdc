-- Errors as the log shows them: a kind, and a text.
local TEXT_MAX = 511 -- bytes that an error of Tarantool has room for

-- The name of a code of box.error, such as ER_NO_SUCH_SPACE.
local function code_name(code)
    for name, number in pairs(box.error) do
        if number == code and type(name) == 'string' then return 'ER_' .. name end
    end
end

-- The kind and the message of an object of box.error; nil for other values.
local function of_object(object)
    local kind, message, code = object.type, object.message, object.code
    if type(kind) ~= 'string' or type(message) ~= 'string' then return nil end
    return kind == 'ClientError' and code_name(code) or kind, message
end

return function(value)
    if type(value) == 'cdata' or type(value) == 'userdata' then
        local ok, kind, message = pcall(of_object, value)
        if ok and kind then return kind, message end
    end
    local has_text, text = pcall(tostring, value)
    if not has_text then text = 'an error of the type ' .. type(value) .. ', which has no text' end
    return 'LuajitError', text:match('^[^%z]*'):sub(1, TEXT_MAX)
end
