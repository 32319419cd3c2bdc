-- box.sequence: sequences by name.
--
-- Source: Tarantool reference, "box.schema.sequence".
local functions = require('internal.box.functions')

local methods = {}
for _, name in ipairs{'next', 'set', 'reset', 'current', 'alter', 'drop'} do
    methods[name] = function(sequence, ...)
        return functions.ask(('box.sequence.%s:%s'):format(sequence.name, name), ...)
    end
end

return setmetatable({}, {
    __index = function(_, name)
        local described = functions.ask('describe_sequence', name)
        return described and setmetatable(described, {__index = methods})
    end,
})
