-- Tarantool's additions to `table`: copy, deepcopy and new.
-- A metatable's `__copy` makes the copy; a copy has the original's metatable. Keys of a deep copy are copied as well,
-- and tables that occur several times in the original occur as often in the copy.

table.new = require('table.new')

function table.copy(original)
    if type(original) ~= 'table' then return original end
    local mt = getmetatable(original)
    local copy_function = mt ~= nil and mt.__copy or nil
    if copy_function ~= nil then return (copy_function(original)) end
    local copy = {}
    for key, value in next, original do copy[key] = value end
    setmetatable(copy, mt)
    return copy
end

local function deepcopy(original, copies)
    if type(original) ~= 'table' then return original end
    if copies[original] then return copies[original] end
    local mt = getmetatable(original)
    local copy_function = mt ~= nil and mt.__copy or nil
    if copy_function ~= nil then
        local copy = copy_function(original)
        copies[original] = copy
        return copy
    end
    local copy = {}
    copies[original] = copy
    for key, value in next, original do copy[deepcopy(key, copies)] = deepcopy(value, copies) end
    setmetatable(copy, mt)
    return copy
end

function table.deepcopy(original) return deepcopy(original, {}) end

return table
