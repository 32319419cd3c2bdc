-- Lazy iterators with the functions, names and errors of Lua Fun, as Tarantool 2.6 has it.
-- An iterator is a generator, its parameter and its state: `generator(parameter, state)` returns the next state, nil at
-- the end, and the values. Constructors return an object of these three, then the parameter and the state again, so
-- that the result is of use in `for` as well.
-- As in Tarantool: `remove_if` is `filter`, `operator.neq` is `unm`, and `nth` and `length` of an array or a text count
-- from its start, whatever the state is.
local iterator = require('internal.fun.iterator')
require('internal.fun.slices')
require('internal.fun.reductions')
require('internal.fun.transformations')
local fun, wrap, raw, ended = iterator.functions, iterator.wrap, iterator.raw, iterator.ended
local random = math.random

function fun.wrap(...) return wrap(...) end

function fun.iter(object, param, state) return wrap(raw(object, param, state)) end

iterator.methods.unwrap = iterator.unwrap

local function each_upward(param, state)
    state = state + param[2]
    if state > param[1] then return nil end
    return state, state
end

local function each_downward(param, state)
    state = state + param[2]
    if state < param[1] then return nil end
    return state, state
end

function fun.range(start, stop, step)
    if step == nil then
        if stop == nil then
            if start == 0 then return ended, nil, nil end
            start, stop = 0 < start and 1 or -1, start
        end
        step = start <= stop and 1 or -1
    end
    if type(start) ~= 'number' then error('start must be a number') end
    if type(stop) ~= 'number' then error('stop must be a number') end
    if type(step) ~= 'number' then error('step must be a number') end
    if step == 0 then error('step must not be zero') end
    return wrap(step > 0 and each_upward or each_downward, {stop, step}, start - step)
end

local function each_tuple(param, state) return state + 1, unpack(param) end
local function each_same(param, state) return state + 1, param end
local function each_tabulated(call, state) return state + 1, call(state) end
local function each_random(param, state) return state + 1, random(param[1], param[2]) end
local function each_random_fraction() return 0, random() end

function fun.duplicate(...)
    if select('#', ...) <= 1 then return wrap(each_same, (...), 0) end
    return wrap(each_tuple, {...}, 0)
end
fun.replicate, fun.xrepeat = fun.duplicate, fun.duplicate

function fun.tabulate(call)
    assert(type(call) == 'function')
    return wrap(each_tabulated, call, 0)
end
function fun.zeros() return wrap(each_same, 0, 0) end
function fun.ones() return wrap(each_same, 1, 0) end

function fun.rands(from, to)
    if from == nil and to == nil then return wrap(each_random_fraction, 0, 0) end
    if type(from) ~= 'number' then error('invalid first arg to rands') end
    if to == nil then
        from, to = 0, from
    elseif type(to) ~= 'number' then
        error('invalid second arg to rands')
    end
    if from >= to then error('empty interval') end
    return wrap(each_random, {from, to - 1}, 0)
end

-- Operators

local function unm(a) return -a end
local function div(a, b) return a / b end
local function len(a) return #a end

local operator = {
    lt = function(a, b) return a < b end,
    le = function(a, b) return a <= b end,
    eq = function(a, b) return a == b end,
    ne = function(a, b) return a ~= b end,
    ge = function(a, b) return a >= b end,
    gt = function(a, b) return a > b end,
    add = function(a, b) return a + b end,
    sub = function(a, b) return a - b end,
    mul = function(a, b) return a * b end,
    div = div,
    truediv = div,
    floordiv = function(a, b) return math.floor(a / b) end,
    intdiv = function(a, b)
        local quotient = a / b
        return quotient >= 0 and math.floor(quotient) or math.ceil(quotient)
    end,
    mod = function(a, b) return a % b end,
    pow = function(a, b) return a ^ b end,
    unm = unm,
    neq = unm,
    concat = function(a, b) return a .. b end,
    len = len,
    length = len,
    land = function(a, b) return a and b end,
    lor = function(a, b) return a or b end,
    lnot = function(a) return not a end,
    truth = function(a) return not not a end,
}

fun.operator, fun.op = operator, operator
iterator.methods.operator, iterator.methods.op = operator, operator

-- `fun()` makes all of them global; with a true argument also in place of other globals.
return setmetatable(fun, {
    __call = function(_, replaces)
        for name, value in pairs(fun) do
            if rawget(_G, name) == nil then
                _G[name] = value
            elseif replaces then
                print(('WARNING: function %s already exists in global scope. Overwritten.'):format(name))
                _G[name] = value
            else
                print(('NOTICE: function %s already exists in global scope. Skipped.'):format(name))
            end
        end
    end,
})
