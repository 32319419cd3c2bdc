-- box.sequence: sequences by name.
--
-- Source: Tarantool reference, "box.schema.sequence".
local functions = require('internal.box.functions')

local methods = {}
for _, name in ipairs{'next', 'set', 'reset', 'current', 'alter', 'drop'} do
    methods[name] = function(self, ...)
        return functions.ask(('box.sequence.%s:%s'):format(self.name, name), ...)
    end
end

local set = methods.set

function methods.set(self, value)
    local ok, why = pcall(set, self, value)
    if ok then return end
    if type(why) == 'cdata' and why.type == 'LuajitError' then error(why.message, 0) end -- Tarantool's is a text
    error(why, 0)
end

return setmetatable({}, {
    __index = function(_, name)
        local described = functions.ask('describe_sequence', name)
        return described and setmetatable(described, {__index = methods})
    end,
})
