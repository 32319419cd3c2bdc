-- What Python answers, as Lua code expects it.
local scheduler = require('internal.fibers.scheduler')
local failure = require('internal.box.failure')

local plain = {}

-- Remove the hints for the serializer from a table and those in it.
function plain.table(value)
    if type(value) ~= 'table' then return value end
    setmetatable(value, nil)
    for _, each in pairs(value) do plain.table(each) end
    return value
end

-- Results of which the first may be a table.
function plain.results(first, ...)
    return plain.table(first), ...
end

local function result_of(ok, ...)
    if not ok then failure.raise(...) end
    return ...
end

-- Wait for what a function of Python begins: it answers (true, values …) or (false, code, message).
function plain.await(begin, ...)
    return result_of(scheduler.await(begin, ...))
end

return plain
