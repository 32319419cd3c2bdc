-- box.tuple: rows as cdata.
local ffi = require('ffi')
local native = require('internal.native')

local tuple_t, formats = native.tuple_t, native.formats

local tuple = {new = native.tuple_new}

function tuple.is(value)
    return type(value) == 'cdata' and ffi.istype(tuple_t, value)
end

-- Give fields of tuples with a format's number names: a list of them.
function tuple.define_format(number, names)
    local numbers = {}
    for place, name in ipairs(names) do numbers[name] = place end
    formats[number] = numbers
end

ffi.metatype(tuple_t, {
    __index = native.tuple_index,
    __len = native.tuple_length,
})

tuple.public = {is = tuple.is, new = tuple.new}

return tuple
