-- The functions of compiled code, and the types of cdata that it knows.
--
-- Types are declared here in one order, so that they have the same numbers in each state of Lua: `prelude.lua` loads
-- this module's types before any other module declares some.
local _, host = ...
local ffi = require('ffi')
local serializer = require('internal.serial.serializer')

local open, why = package.loadlib(host.compiled_module(), 'luaopen_iproto')
if not open then error('the compiled module cannot be loaded into Lua: ' .. tostring(why), 0) end
local native = open()

-- Formats of tuples by their numbers: tables of fields' numbers from 1 by name; lists of names; and such lists packed.
native.formats, native.name_lists, native.names = {}, {}, {}
native.tuple_methods = {}
native.tuple_t = ffi.typeof('struct tuple')
native.options_t = ffi.typeof('struct msgpack_options')
-- Options of the module msgpack, and those of rows, which are never maps.
native.encoding, native.tuple_encoding = native.options_t(), native.options_t()

-- Let compiled code know options of a serializer, with another `encode_sparse_ratio` if it is given.
function native.set_options(compiled, options, sparse_ratio)
    for _, name in ipairs{
        'encode_max_depth', 'encode_sparse_convert', 'encode_deep_as_nil', 'encode_invalid_as_nil',
        'encode_invalid_numbers', 'encode_load_metatables', 'encode_use_tostring', 'decode_save_metatables',
    } do
        compiled[name] = options[name]
    end
    compiled.encode_sparse_ratio = sparse_ratio or options.encode_sparse_ratio
    compiled.encode_sparse_safe = options.encode_sparse_safe == math.huge and -1 or options.encode_sparse_safe
end

local defaults = serializer.new_module()
native.set_options(native.encoding, defaults)
native.set_options(native.tuple_encoding, defaults, 0)
local extensions = require('internal.msgpack.extensions')

local a_tuple = native.tuple_t(3)
ffi.cast('uint32_t *', a_tuple)[0] = 7

local understands = native.setup{
    null = serializer.NULL,
    int64 = ffi.typeof('int64_t'), an_int64 = -5LL,
    uint64 = ffi.typeof('uint64_t'), a_uint64 = 5ULL,
    a_float = ffi.new('float'), a_double = ffi.new('double'),
    text = ffi.typeof('char *'), a_text = ffi.new('char *'),
    const_text = ffi.typeof('const char *'), a_const_text = ffi.new('const char *'),
    encode_other = extensions.encode,
    decode_extension = extensions.decode,
    array_mt = serializer.array_mt,
    map_mt = serializer.map_mt,
    serialize = '__serialize',
    tuple = native.tuple_t, a_tuple = a_tuple,
    tuple_methods = native.tuple_methods,
    formats = native.formats, name_lists = native.name_lists, names = native.names,
    encoding = native.encoding,
    tuple_encoding = native.tuple_encoding,
    new_error = function(...) return require('internal.box.values.error').new_error(...) end,
}
if not understands then
    error('Lua needs a LuaJIT with 64-bit references (GC64), and its objects as lupa 2.8 has them', 0)
end

return native
