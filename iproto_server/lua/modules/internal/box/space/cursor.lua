-- Iterators over rows: `index:pairs()`.
local fun = require('fun')
local functions = require('internal.box.functions')

local cursor = {}

-- The numbers of the protocol, as `box.index` has them.
cursor.ITERATORS = {
    EQ = 0, REQ = 1, ALL = 2, LT = 3, LE = 4, GE = 5, GT = 6, BITS_ALL_SET = 7, BITS_ANY_SET = 8, BITS_ALL_NOT_SET = 9,
    OVERLAPS = 10, NEIGHBOR = 11,
}

local function is_empty(key)
    return key == nil or (type(key) == 'table' and next(key) == nil) or (type(key) == 'cdata' and box.tuple.is(key) and #key == 0)
end

local function number_of(given)
    if type(given) == 'number' then return given end
    local number = type(given) == 'string' and cursor.ITERATORS[given:upper()] or nil
    if not number then
        require('internal.box.failure').raise(72, ("Unknown iterator type '%s'"):format(tostring(given)))
    end
    return number
end

-- Raise Lua's error for options in which nothing can be looked up.
function cursor.check(opts)
    return opts ~= nil and opts.iterator
end

-- The number of the iterator in options.
function cursor.iterator(options, key)
    if options ~= nil and cursor.check(options) ~= nil then return number_of(options.iterator) end
    if type(options) == 'string' then return number_of(options) end
    return is_empty(key) and cursor.ITERATORS.ALL or cursor.ITERATORS.EQ
end

-- An iterator of luafun over an index's rows. Where it can begin behind a row, the first one is found without Python.
function cursor.pairs(facade, key, iterator, can_go_on_behind)
    local handle, first
    return fun.wrap(function(_, state)
        if handle then
            local row = functions.next_row(handle)
            if row ~= nil then return state, row end
        elseif can_go_on_behind and not first then
            first = functions.select(facade, key, iterator, 0, 1)[1]
            if first ~= nil then return state, first end
            handle = functions.iterate(facade, key, iterator, nil)
        else
            handle = functions.iterate(facade, key, iterator, first)
            local row = functions.next_row(handle)
            if row ~= nil then return state, row end
        end
    end, true, 0)
end

return cursor
