-- Objects of type userdata, as Tarantool's are, whose state is a table.
--
-- Neither a state nor what it refers to may refer to its object: weak tables would keep both for ever.
local userdata = {}

-- Create a kind of objects. Its `wrap(state)` returns the object of a state, the same one as long as it is in use, and
-- `state_of(object)` the state of an object, or nil for other values. `methods` are the methods of the objects, and
-- `describe(state)` is their text.
function userdata.kind(methods, describe)
    local states = setmetatable({}, {__mode = 'k'})
    local objects = setmetatable({}, {__mode = 'kv'})
    local template = newproxy(true)
    local meta = getmetatable(template)
    meta.__index = methods
    meta.__tostring = function(object) return describe(states[object]) end

    local function wrap(state)
        local object = objects[state]
        if not object then
            object = newproxy(template)
            objects[state] = object
            states[object] = state
        end
        return object
    end
    return wrap, function(object) return states[object] end, meta
end

return userdata
