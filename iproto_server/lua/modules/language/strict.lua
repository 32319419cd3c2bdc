-- Tarantool's module strict: global variables that have not been declared are errors. A variable is declared by an
-- assignment in a main chunk or from C.
local NAMES = {__declared = true, __index = true, __newindex = true}

local function declares()
    local info = debug.getinfo(3, 'S')
    return info == nil or info.what == 'main' or info.what == 'C'
end

local function on()
    local mt = getmetatable(_G)
    if mt == nil then
        mt = {}
        setmetatable(_G, mt)
    end
    local declared = {}
    mt.__declared = declared

    mt.__newindex = function(globals, n, value)
        if not declared[n] then
            if not declares() then error("assign to undeclared variable '" .. n .. "'", 2) end
            declared[n] = true
        end
        rawset(globals, n, value)
    end

    mt.__index = function(_, n)
        if not declared[n] then error("variable '" .. n .. "' is not declared", 2) end
        return nil
    end
end

local function off()
    local mt = getmetatable(_G)
    if mt ~= nil then
        for name in pairs(NAMES) do mt[name] = nil end
    end
end

return {on = on, off = off}
