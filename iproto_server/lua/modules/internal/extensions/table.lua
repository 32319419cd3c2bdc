-- Tarantool's additions to `table`: copy, deepcopy and new.
-- A metatable's `__copy` makes the copy; other copies have the original's metatable. Keys of a deep copy are copied as
-- well, and a table that occurs several times in the original is copied once, except by `__copy`.

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
    if copy_function ~= nil then return (copy_function(original)) end
    local copy = {}
    copies[original] = copy
    for key, value in next, original do copy[deepcopy(key, copies)] = deepcopy(value, copies) end
    setmetatable(copy, mt)
    return copy
end

function table.deepcopy(original) return deepcopy(original, {}) end

return table
