-- Iterators: their objects, what can be iterated, and how public functions and methods are defined.
local sub = string.sub

local fun, methods = {}, {}

local iterator_mt = {
    __index = methods,
    __call = function(self, param, state) return self.gen(param, state) end,
    __tostring = function() return '<generator>' end,
}

local function wrap(gen, param, state)
    return setmetatable({gen = gen, param = param, state = state}, iterator_mt), param, state
end

local function unwrap(self) return self.gen, self.param, self.state end

local function ended() return nil end

local function each_character(param, state)
    state = state + 1
    if state > #param then return nil end
    return state, sub(param, state, state)
end

local each_item = ipairs({}) -- the generator of arrays
local next_pair = pairs({}) -- that of other tables

-- `next` with the key as the first of the values.
local function each_pair(param, state)
    local key, value = next_pair(param, state)
    return key, key, value
end

-- The generator, parameter and state of what can be iterated.
local function raw(object, param, state)
    if object == nil then error('invalid iterator') end
    local kind = type(object)
    if kind == 'table' then
        local mt = getmetatable(object)
        if mt ~= nil then
            if mt == iterator_mt then return unwrap(object) end
            if mt.__ipairs ~= nil then return mt.__ipairs(object) end
            if mt.__pairs ~= nil then return mt.__pairs(object) end
        end
        if #object > 0 then return each_item, object, 0 end
        return each_pair, object, nil
    elseif kind == 'function' then
        return object, param, state
    elseif kind == 'string' then
        if #object == 0 then return ended, nil, nil end
        return each_character, object, 0
    end
    error(('object %s of type "%s" is not iterable'):format(tostring(object), kind))
end

-- Define a public function of an iterator, and a method. `count` arguments come before the iterator.
local function define(count, names, perform)
    local public, method
    if count == 0 then
        public = function(gen, param, state) return perform(raw(gen, param, state)) end
        method = function(self) return perform(self.gen, self.param, self.state) end
    elseif count == 1 then
        public = function(first, gen, param, state) return perform(first, raw(gen, param, state)) end
        method = function(self, first) return perform(first, self.gen, self.param, self.state) end
    else
        public = function(first, second, gen, param, state) return perform(first, second, raw(gen, param, state)) end
        method = function(self, first, second) return perform(first, second, self.gen, self.param, self.state) end
    end
    for name in names:gmatch('%S+') do fun[name], methods[name] = public, method end
    return perform
end

-- The state and values of a generator within another one, whose state has a counter before it.
local function counted(count, state, ...)
    if state == nil then return nil end
    return {count, state}, ...
end

-- The state, and the results of a function for the values.
local function applied(fun, state, ...)
    if state == nil then return nil end
    return state, fun(...)
end

return {
    functions = fun,
    methods = methods,
    define = define,
    wrap = wrap,
    unwrap = unwrap,
    raw = raw,
    is_iterator = function(object) return type(object) == 'table' and getmetatable(object) == iterator_mt end,
    ended = ended,
    each_item = each_item,
    each_character = each_character,
    counted = counted,
    applied = applied,
}
