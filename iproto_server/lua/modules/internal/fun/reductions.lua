-- Single values made of an iterator.
local iterator = require('internal.fun.iterator')
local functions, define, raw, applied = iterator.functions, iterator.define, iterator.raw, iterator.applied
local each_item, each_character = iterator.each_item, iterator.each_character

local function folded(fun, result, state, ...)
    if state == nil then return nil, result end
    return state, fun(result, ...)
end

define(2, 'foldl reduce', function(fun, result, gen, param, state)
    while true do
        local following
        following, result = folded(fun, result, gen(param, state))
        if following == nil then return result end
        state = following
    end
end)

define(0, 'length', function(gen, param, state)
    if gen == each_item or gen == each_character then return #param end
    local count = 0
    for _ in gen, param, state do count = count + 1 end
    return count
end)

define(0, 'is_null', function(gen, param, state) return gen(param, state) == nil end)

function functions.is_prefix_of(prefix, object)
    local gen, param, state = raw(prefix)
    local other, other_param, other_state = raw(object)
    local value, other_value
    while true do
        state, value = gen(param, state)
        if state == nil then return true end
        other_state, other_value = other(other_param, other_state)
        if other_state == nil or value ~= other_value then return false end
    end
end
iterator.methods.is_prefix_of = functions.is_prefix_of

define(1, 'all every', function(fun, gen, param, state)
    local result
    repeat
        state, result = applied(fun, gen(param, state))
        if state ~= nil and not result then return false end
    until state == nil
    return true
end)

define(1, 'any some', function(fun, gen, param, state)
    local result
    repeat
        state, result = applied(fun, gen(param, state))
        if state ~= nil and result then return true end
    until state == nil
    return false
end)

define(0, 'sum', function(gen, param, state)
    local total = 0
    for _, r in gen, param, state do total = total + r end
    return total
end)

define(0, 'product', function(gen, param, state)
    local total = 1
    for _, r in gen, param, state do total = total * r end
    return total
end)

local function smallest(m, n) if n < m then return n else return m end end
local function largest(m, n) if m < n then return n else return m end end

-- The value that a function of two values chooses; `comparison` finds this function by the first value.
local function chosen(name, comparison, gen, param, state)
    local m
    state, m = gen(param, state)
    if state == nil then error(name .. ': iterator is empty') end
    local cmp = comparison(m)
    for _, r in gen, param, state do m = cmp(m, r) end
    return m
end

local function define_choice(name, names, names_by, numeric, general)
    local function comparison(value) return type(value) == 'number' and numeric or general end
    define(0, names, function(gen, param, state) return chosen(name, comparison, gen, param, state) end)
    define(1, names_by, function(cmp, gen, param, state)
        return chosen(name, function() return cmp end, gen, param, state)
    end)
end

define_choice('min', 'min minimum', 'min_by minimum_by', math.min, smallest)
define_choice('max', 'max maximum', 'max_by', math.max, largest)

define(0, 'totable', function(gen, param, state)
    local result = {}
    for _, value in gen, param, state do result[#result + 1] = value end
    return result
end)

define(0, 'tomap', function(gen, param, state)
    local result = {}
    for _, key, value in gen, param, state do result[key] = value end
    return result
end)
