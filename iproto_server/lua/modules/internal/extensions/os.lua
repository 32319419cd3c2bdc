-- Tarantool's additions to Lua's table os.
-- On purpose different: setenv says what is wrong with a name; Tarantool's message is one of an error in its code.
local _, host = ...
local ffi = require('ffi')

-- A text for a parameter of type `const char *` of a C function, up to its first NUL.
local function c_text(value, place, name)
    local ok, why = pcall(ffi.new, 'const char *[1]', {value})
    if type(value) ~= 'string' then
        local reason = ok and "cannot convert '" .. type(value) .. "' to 'const char *'" or why:match('%((.*)%)') or why
        error(("bad argument #%d to '%s' (%s)"):format(place, name, reason), 2)
    end
    return value:match('^[^%z]*')
end

function os.environ()
    local parts = {host.environment_list()}
    local environment = {}
    for place = 1, #parts, 2 do environment[parts[place]] = parts[place + 1] end
    return environment
end

function os.setenv(name, value)
    local c_function = value == nil and 'unsetenv' or 'setenv'
    local name_text = name == nil and '' or c_text(name, 1, c_function)
    host.environment_set(name_text, value ~= nil and c_text(value, 2, c_function) or nil)
end
