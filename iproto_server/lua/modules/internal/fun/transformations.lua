-- Iterators made of other iterators: map, enumerate, intersperse, zip, cycle and chain.
local iterator = require('internal.fun.iterator')
local functions, methods, define = iterator.functions, iterator.methods, iterator.define
local wrap, raw, ended = iterator.wrap, iterator.raw, iterator.ended
local counted, applied = iterator.counted, iterator.applied

local function each_mapped(param, state)
    local gen, its_param, fun = param[1], param[2], param[3]
    return applied(fun, gen(its_param, state))
end

define(1, 'map', function(fun, gen, param, state) return wrap(each_mapped, {gen, param, fun}, state) end)

define(1, 'each for_each foreach', function(fun, gen, param, state)
    repeat state = applied(fun, gen(param, state)) until state == nil
end)

local function enumerated(place, state, ...)
    if state == nil then return nil end
    return {place + 1, state}, place, ...
end

local function each_enumerated(param, state)
    local gen, its_param = param[1], param[2]
    return enumerated(state[1], gen(its_param, state[2]))
end

define(0, 'enumerate', function(gen, param, state) return wrap(each_enumerated, {gen, param}, {1, state}) end)

-- An odd counter says that the separator is next.
local function each_interspersed(param, state)
    local separator, gen, its_param = param[1], param[2], param[3]
    if state[1] % 2 == 1 then return {state[1] + 1, state[2]}, separator end
    return counted(state[1] + 1, gen(its_param, state[2]))
end

define(1, 'intersperse', function(value, gen, param, state)
    return wrap(each_interspersed, {value, gen, param}, {0, state})
end)

-- Several iterators at once. The last one comes first in the parameter and the state, and is asked first.
local function zipped(param, state, states, ...)
    local place = #states + 1
    if #states == #param / 2 then return states, ... end
    local its_state, value = param[2 * place - 1](param[2 * place], state[place])
    if its_state == nil then return nil end
    states[place] = its_state
    return zipped(param, state, states, value, ...)
end

local function each_zipped(param, state) return zipped(param, state, {}) end

-- How many arguments are iterators: the parameter and the state after the last one are parts of it.
local function count_iterators(...)
    local count = select('#', ...)
    if count < 3 then return count end
    local last, param, state = select(count - 2, ...)
    if iterator.is_iterator(last) and last.param == param and last.state == state then return count - 2 end
    return count
end

function functions.zip(...)
    local count = count_iterators(...)
    if count == 0 then return wrap(ended, nil, nil) end
    local param, states = {}, {}
    for place = 1, count do
        local gen, its_param, its_state = raw((select(count - place + 1, ...)))
        param[2 * place - 1], param[2 * place], states[place] = gen, its_param, its_state
    end
    return wrap(each_zipped, param, states)
end
methods.zip = functions.zip

local function restarted(param, state, ...)
    if state == nil then return param[1](param[2], param[3]) end
    return state, ...
end

local function each_cycled(param, state) return restarted(param, param[1](param[2], state)) end

define(0, 'cycle', function(gen, param, state) return wrap(each_cycled, {gen, param, state}, state) end)

local each_chained

-- The values of the iterator of this place, or those of the next one at its end. As in Tarantool, a next one without a
-- parameter, as `range(0)`, ends the chain.
local function chained(param, place, state, ...)
    if state ~= nil then return {place, state}, ... end
    if param[3 * place + 2] == nil then return nil end
    return each_chained(param, {place + 1, param[3 * place + 3]})
end

function each_chained(param, state)
    local place = state[1]
    return chained(param, place, param[3 * place - 2](param[3 * place - 1], state[2]))
end

function functions.chain(...)
    local count = count_iterators(...)
    if count == 0 then return wrap(ended, nil, nil) end
    local param = {}
    for place = 1, count do
        param[3 * place - 2], param[3 * place - 1], param[3 * place] = wrap(raw((select(place, ...))))
    end
    return wrap(each_chained, param, {1, param[3]})
end
methods.chain = functions.chain
