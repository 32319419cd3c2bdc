-- Tuples: rows as cdata, whose fields compiled code reads.
--
-- Differences from Tarantool 2.6: tuples are equal if their fields are, there it has to be the same tuple.
local _, host = ...
local ffi = require('ffi')
local fun = require('fun')
local native = require('internal.native')
local to_text = require('internal.box.values.tuple_text')

local tuple_t, methods = native.tuple_t, native.tuple_methods
local formats, lists, names_of = native.formats, native.name_lists, native.names
local type, istype, floor = type, ffi.istype, math.floor
local tuple_field = native.tuple_field
local encode = native.msgpack_functions(native.encoding).encode

local function is(value)
    return type(value) == 'cdata' and istype(tuple_t, value)
end

-- Raise the error of a method that is called with something else.
local function check(value, usage)
    if not is(value) then error('Usage: ' .. usage) end
end

-- Give the fields of tuples with a format's number names: a list of them.
local function define_format(number, names)
    local numbers = {}
    for place, name in ipairs(names) do numbers[name] = place end
    formats[number], lists[number], names_of[number] = numbers, names, encode(names)
end

-- Fields --------------------------------------------------------------------------------------------------------------

local TABLE_USAGE = 'tuple:totable([from[, to]])'
local ALL = 4294967295 -- the number of fields behind all

local function totable(tuple, from, to)
    check(tuple, TABLE_USAGE)
    local first = 0
    if from == nil then
        from = 1
    else
        if from < 1 then error('tuple.totable: invalid second argument') end
        first = from - 1
    end
    if to == nil then
        to = ALL
    elseif to <= 0 then
        error('tuple.totable: invalid third argument')
    end
    return native.tuple_table(tuple, first, to - from + 1)
end

function methods.totable(tuple, from, to) return totable(tuple, from, to) end
methods.__serialize = methods.totable

function methods.unpack(tuple, from, to) return unpack(totable(tuple, from, to)) end

function methods.bsize(tuple)
    check(tuple, 'tuple:bsize()')
    return native.tuple_size(tuple)
end

methods.slice = native.tuple_slice

methods.tomap = native.tuple_map

-- Iterators -----------------------------------------------------------------------------------------------------------

local function step(tuple, number)
    if number == nil then
        number = 0
    elseif type(number) ~= 'number' then
        error("error: invalid key to 'next'")
    end
    local value, found = tuple_field(tuple, number + 1)
    if found then return floor(number) + 1, value end
    if #tuple ~= number then error("error: invalid key to 'next'") end
    return nil
end

local function iterate(tuple, from)
    check(tuple, 'tuple:pairs(tuple[, pos])')
    return fun.wrap(step, tuple, from)
end

methods.pairs, methods.ipairs = iterate, iterate

function methods.next(tuple, from)
    check(tuple, 'tuple:next(tuple[, pos])')
    if from == nil then from = 0 end
    if type(from) ~= 'number' then
        error(("bad argument #2 to 'box_tuple_field' (cannot convert '%s' to 'unsigned int')"):format(type(from)))
    end
    local value, found = tuple_field(tuple, from + 1)
    if not found then return nil end
    return from + 1, value
end

-- Whether a search would never end, since 1 more is the same number.
local function is_endless(offset)
    return type(offset) == 'number' and not (offset >= -2^53 and offset < 2^53)
end

function methods.find(tuple, offset, value)
    check(tuple, 'tuple:find([offset, ]val)')
    if value == nil then offset, value = 0, offset end
    if is_endless(offset) then return nil end
    local place = iterate(tuple, offset):index(value)
    return place ~= nil and offset + place or nil
end

function methods.findall(tuple, offset, value)
    check(tuple, 'tuple:findall([offset, ]val)')
    if value == nil then offset, value = 0, offset end
    local places = {}
    if is_endless(offset) then return places end
    for _, place in iterate(tuple, offset):indexes(value) do places[#places + 1] = offset + place end
    return places
end

-- Changed copies ------------------------------------------------------------------------------------------------------

methods.transform = native.tuple_transform

-- The tuple after operations. Compiled code knows most of them, and Python all.
local function changed(tuple, operations, is_upsert)
    local packed, is_done = native.tuple_update(tuple, operations)
    local format = native.tuple_format(tuple)
    if not is_done then
        local row, code, message, kind = host.tuple_update(native.tuple_row(tuple), packed, names_of[format], is_upsert)
        if not row then error(require('internal.box.values.error').new_error(code, message, kind), 0) end
        packed = row
    end
    return native.tuple_of(packed, format)
end

local function changing(usage, is_upsert)
    return function(tuple, operations)
        check(tuple, usage)
        if type(operations) ~= 'table' then error('Usage: ' .. usage) end
        return changed(tuple, operations, is_upsert)
    end
end

methods.update = changing('tuple:update({ { op, field, arg}+ })', false)
methods.upsert = changing('tuple:upsert({ { op, field, arg}+ })', true)

-- The type ------------------------------------------------------------------------------------------------------------

local pointer_t = ffi.typeof('void *')

ffi.metatype(tuple_t, {
    __index = native.tuple_index,
    __len = native.tuple_length,
    __pairs = iterate,
    __ipairs = iterate,
    __tostring = to_text,
    __eq = function(left, right)
        if type(left) == 'nil' or type(right) == 'nil' then return false end -- most often
        if is(left) and is(right) then return native.tuple_equal(left, right) end
        local other = right
        if is(right) then other = left end
        ffi.cast(pointer_t, other) -- for the error of what can be no pointer
        return false
    end,
})

local public = {is = is, new = native.tuple_new}
for name, method in pairs(methods) do
    if name ~= '__serialize' then public[name] = method end
end

return {define_format = define_format, is = is, new = native.tuple_new, public = public}
