-- Lists of triggers of a connection.
local triggers = {}
local methods = {}
local metatable = {__index = methods}

function triggers.new(name)
    return setmetatable({name = name, list = {}}, metatable)
end

local function place_of(list, trigger)
    for place, each in ipairs(list) do
        if each == trigger then return place end
    end
end

local function is_callable(value)
    return type(value) == 'function' or (type(value) == 'table' and (getmetatable(value) or {}).__call ~= nil)
end

-- Add a trigger, replace an old one, or remove it if there is no new one; the last two return the old one. Returns the
-- list without arguments.
function methods:set(new, old)
    if new == nil and old == nil then return {unpack(self.list)} end
    if new ~= nil and not is_callable(new) then error(('Usage: %s(callable)'):format(self.name)) end
    if old == nil then
        table.insert(self.list, new)
        return
    end
    local place = place_of(self.list, old)
    if not place then error(('%s: trigger is not found'):format(self.name)) end
    if new == nil then table.remove(self.list, place) else self.list[place] = new end
    return old
end

function methods:run(...)
    for _, each in ipairs{unpack(self.list)} do each(...) end
end

return triggers
