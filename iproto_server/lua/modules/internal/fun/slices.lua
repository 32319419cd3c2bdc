-- Parts of an iterator: by place, by count, by a function.
local iterator = require('internal.fun.iterator')
local define, wrap, ended, counted = iterator.define, iterator.wrap, iterator.ended, iterator.counted
local each_item, each_character = iterator.each_item, iterator.each_character
local find, sub = string.find, string.sub

local function values(state, ...)
    if state == nil then return nil end
    return ...
end

define(1, 'nth', function(n, gen, param, state)
    if not (n > 0) then error('invalid first argument to nth') end
    if gen == each_item then return param[n] end
    if gen == each_character then
        if n <= #param then return sub(param, n, n) end
        return nil
    end
    for _ = 1, n - 1 do
        state = gen(param, state)
        if state == nil then return nil end
    end
    return values(gen(param, state))
end)

local function values_of_head(state, ...)
    if state == nil then error('head: iterator is empty') end
    return ...
end

define(0, 'head car', function(gen, param, state) return values_of_head(gen(param, state)) end)

define(0, 'tail cdr', function(gen, param, state)
    state = gen(param, state)
    if state == nil then return wrap(ended, nil, nil) end
    return wrap(gen, param, state)
end)

local function each_of_first(param, state)
    local n, gen, its_param = param[1], param[2], param[3]
    if state[1] >= n then return nil end
    return counted(state[1] + 1, gen(its_param, state[2]))
end

local take_n = define(1, 'take_n', function(n, gen, param, state)
    if not (n >= 0) then error('invalid first argument to take_n') end
    return wrap(each_of_first, {n, gen, param}, {0, state})
end)

local function while_true(fun, state, ...)
    if state == nil or not fun(...) then return nil end
    return state, ...
end

local function each_while(param, state) return while_true(param[1], param[2](param[3], state)) end

local take_while = define(1, 'take_while', function(fun, gen, param, state)
    if type(fun) ~= 'function' then error('invalid first argument to take_while') end
    return wrap(each_while, {fun, gen, param}, state)
end)

local take = define(1, 'take', function(n_or_fun, gen, param, state)
    if type(n_or_fun) == 'number' then return take_n(n_or_fun, gen, param, state) end
    return take_while(n_or_fun, gen, param, state)
end)

local drop_n = define(1, 'drop_n', function(n, gen, param, state)
    if not (n >= 0) then error('invalid first argument to drop_n') end
    for _ = 1, n do
        state = gen(param, state)
        if state == nil then return wrap(ended, nil, nil) end
    end
    return wrap(gen, param, state)
end)

local function dropped(fun, state, ...)
    if state == nil or not fun(...) then return state, false end
    return state, true
end

local drop_while = define(1, 'drop_while', function(fun, gen, param, state)
    if type(fun) ~= 'function' then error('invalid first argument to drop_while') end
    local before, more
    repeat
        before = state
        state, more = dropped(fun, gen(param, state))
    until not more
    if state == nil then return wrap(ended, nil, nil) end
    return wrap(gen, param, before)
end)

local drop = define(1, 'drop', function(n_or_fun, gen, param, state)
    if type(n_or_fun) == 'number' then return drop_n(n_or_fun, gen, param, state) end
    return drop_while(n_or_fun, gen, param, state)
end)

define(1, 'span split split_at', function(n_or_fun, gen, param, state)
    return take(n_or_fun, gen, param, state), drop(n_or_fun, gen, param, state)
end)

-- Places

define(1, 'index index_of elem_index', function(value, gen, param, state)
    local place = 0
    for _, found in gen, param, state do
        place = place + 1
        if found == value then return place end
    end
    return nil
end)

local function each_place(param, state)
    local value, gen, its_param = param[1], param[2], param[3]
    local place, its_state, found = state[1], state[2], nil
    while true do
        its_state, found = gen(its_param, its_state)
        if its_state == nil then return nil end
        place = place + 1
        if found == value then return {place, its_state}, place end
    end
end

define(1, 'indexes indices elem_indexes elem_indices', function(value, gen, param, state)
    return wrap(each_place, {value, gen, param}, {0, state})
end)

-- Filters

-- Whether the values are wanted or the generator has ended, with all of them.
local function tested(fun, state, ...) return state == nil or fun(...), state, ... end

-- The first result of `tested` whose values are wanted, without the test.
local function wanted(fun, gen, param, found, state, ...)
    if found then return state, ... end
    return wanted(fun, gen, param, tested(fun, gen(param, state)))
end

-- Where the first values are a single one, only single values are looked at.
local function chosen(fun, gen, param, state, ...)
    if select('#', ...) > 1 then return wanted(fun, gen, param, tested(fun, state, ...)) end
    local value = ...
    while state ~= nil and not fun(value) do state, value = gen(param, state) end
    return state, value
end

local function each_filtered(param, state)
    local fun, gen, its_param = param[1], param[2], param[3]
    return chosen(fun, gen, its_param, gen(its_param, state))
end

local filter = define(1, 'filter remove_if', function(fun, gen, param, state)
    return wrap(each_filtered, {fun, gen, param}, state)
end)

define(1, 'grep', function(fun_or_pattern, gen, param, state)
    if type(fun_or_pattern) ~= 'string' then return filter(fun_or_pattern, gen, param, state) end
    return filter(function(text) return find(text, fun_or_pattern) ~= nil end, gen, param, state)
end)

define(1, 'partition', function(fun, gen, param, state)
    local function fails(...) return not fun(...) end
    return filter(fun, gen, param, state), filter(fails, gen, param, state)
end)
