-- Errors of the operating system as values: functions return them, and `tostring` is their message.
local metatable = {
    __concat = function(left, right) return tostring(left) .. tostring(right) end,
    __eq = rawequal,
    __tostring = function(self) return self.message end,
}
metatable.__index = {
    unpack = function(self)
        return {type = self.type, code = self.code, message = self.message, errno = self.errno, trace = {}}
    end,
    raise = function(self) error(self, 2) end,
}

local SYSTEM_ERROR_CODE = 115

-- Make an error.
return function(message, number)
    local fields = {type = 'SystemError', code = SYSTEM_ERROR_CODE, message = message, errno = number}
    return setmetatable(fields, metatable)
end
