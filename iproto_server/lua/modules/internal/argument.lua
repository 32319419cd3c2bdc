-- Checks of arguments with the error texts of Lua's C functions. A public function calls them directly, or with a
-- `depth` that counts the functions between them.
local argument = {}

-- Raise an error of an argument, with the name by which the public function was called.
function argument.refuse(place, message, depth)
    depth = depth or 0
    local info = debug.getinfo(2 + depth, 'n')
    local name = info and info.name or '?'
    if info and info.namewhat == 'method' then
        place = place - 1
        if place == 0 then error(("calling '%s' on bad self (%s)"):format(name, message), 3 + depth) end
    end
    error(("bad argument #%d to '%s' (%s)"):format(place, name, message), 3 + depth)
end

-- Raise an error of an argument's type. `missing` says that there is no such argument.
function argument.refuse_type(place, expected, value, depth, missing)
    local got = missing and 'no value' or type(value)
    argument.refuse(place, expected .. ' expected, got ' .. got, (depth or 0) + 1)
    return nil -- no tail call, so that the levels are right
end

-- Raise an error with the position of the public function's caller.
function argument.usage(message, depth) error(message, 3 + (depth or 0)) end

-- A number without its fraction; texts of numbers count as numbers.
function argument.integer(value, place, depth, missing)
    local kind = type(value)
    local number = (kind == 'number' or kind == 'string') and tonumber(value) or nil
    if not number then argument.refuse_type(place, 'number', value, (depth or 0) + 1, missing) end
    return number < 0 and math.ceil(number) or math.floor(number)
end

-- A text; numbers count as texts.
function argument.text(value, place, depth, missing)
    if type(value) == 'number' then return tostring(value) end
    if type(value) ~= 'string' then argument.refuse_type(place, 'string', value, (depth or 0) + 1, missing) end
    return value
end

return argument
