-- Tarantool's additions to Lua's table os.
-- On purpose different: setenv says what is wrong with a name; Tarantool's message is one of an error in its code.
local _, host = ...
local ffi = require('ffi')

-- A text for a parameter of type `const char *`, up to its first NUL.
local function c_text(value, place)
    local ok, why = pcall(ffi.new, 'const char *[1]', {value})
    if type(value) ~= 'string' then
        local reason = ok and "cannot convert '" .. type(value) .. "' to 'const char *'" or why:match('%((.*)%)') or why
        error(("bad argument #%d to 'setenv' (%s)"):format(place, reason), 0)
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
    host.environment_set(name == nil and '' or c_text(name, 1), value ~= nil and c_text(value, 2) or nil)
end
