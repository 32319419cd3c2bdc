-- Functions that set triggers: `on_replace(new, old)` and others.
--
-- Source: Tarantool reference, "Triggers".
local triggers = {}

local function oldest_first(...)
    local found, count = {}, select('#', ...)
    for place = 1, count do found[count + 1 - place] = (select(place, ...)) end
    return found
end

local function set(ok, ...)
    if ok then return ... end
    error(tostring((...)), 2) -- Tarantool's error is a text
end

-- Raise an error unless these are functions or nil.
function triggers.check(new, old)
    if (new ~= nil and type(new) ~= 'function') or (old ~= nil and type(old) ~= 'function') then
        error('trigger reset: incorrect arguments', 3)
    end
end

-- Set, replace or delete a trigger by a function of Python, which gets these arguments; the list of triggers without any.
function triggers.set(ask, new, old)
    if new == nil and old == nil then return oldest_first(ask()) end
    triggers.check(new, old)
    return set(pcall(ask, new, old))
end

return triggers
