-- What json and yaml share: their options, the classification of tables as arrays or maps, `__serialize`, and errors.
--
-- Differences from Tarantool 2.6:
-- * `raise` raises strings until `internal/box/values/error.lua` replaces it; Tarantool raises box errors there.
-- * A `__serialize` function that returns its own argument is an error; Tarantool crashes.
local ffi = require('ffi')

local floor, find = math.floor, string.find
local type, next, pcall, rawget, getmetatable = type, next, pcall, rawget, getmetatable
local metatable_of = debug.getmetatable

local serializer = {}

serializer.NULL = ffi.cast('void *', 0)

-- A decoded table that gets a new key is an ordinary one from then on.
local function set_new(value, key, new)
    setmetatable(value, nil)
    rawset(value, key, new)
end
serializer.array_mt = {__serialize = 'seq', __newindex = set_new}
serializer.map_mt = {__serialize = 'map', __newindex = set_new}

-- Text of cdata that is no integer and has no `__serialize`, by the number of its type: JSON has it as a string, YAML
-- as a plain scalar. Modules add their types with `add_scalar`.
local scalars = {}

-- Write cdata of a type, such as a decimal, as the text that a function makes of it.
function serializer.add_scalar(ctype, to_text)
    scalars[tonumber(ctype)] = to_text
end

-- Raise an error of the kind that is a box error. A module that has box errors replaces this function.
function serializer.raise(message)
    error(message, 0)
end

-- Public functions: an error names the place that called one of them.
local entries = setmetatable({}, {__mode = 'k'})

function serializer.entry(call)
    entries[call] = true
    return call
end

-- The level of the caller of the public function, seen from the caller of this function.
local function entry_level()
    for level = 2, 1000000 do
        local info = debug.getinfo(level, 'f')
        if not info then return 2 end
        if entries[info.func] then return level end
    end
end

-- Raise an error with the position of the code that called the module.
function serializer.fail(message)
    error(message, entry_level())
end

-- Raise an error about an argument of the public function.
function serializer.bad_argument(place, message)
    local level = entry_level()
    local name = debug.getinfo(level - 1, 'n').name or '?'
    error(("bad argument #%d to '%s' (%s)"):format(place, name, message), level)
end

-- Options ------------------------------------------------------------------------------------------------------------

local DEFAULTS = {
    encode_sparse_convert = true,
    encode_sparse_ratio = 2,
    encode_sparse_safe = 10,
    encode_max_depth = 128,
    encode_deep_as_nil = false,
    encode_invalid_numbers = true,
    encode_number_precision = 14,
    encode_load_metatables = true,
    encode_use_tostring = false,
    encode_invalid_as_nil = false,
    decode_invalid_numbers = true,
    decode_save_metatables = true,
    decode_max_depth = 128,
}

local function as_integer(value)
    local number = type(value) ~= 'cdata' and tonumber(value) or 0
    return tonumber(ffi.cast('int32_t', ffi.cast('int64_t', number)))
end

local function read_options(given, options)
    for name, default in pairs(DEFAULTS) do
        local value = given[name]
        if value ~= nil or type(value) == 'cdata' then
            if type(default) == 'boolean' then
                options[name] = type(value) == 'cdata' or value ~= false
            else
                options[name] = as_integer(value)
            end
        end
    end
    local precision = options.encode_number_precision
    if precision < 1 or precision > 14 then precision = 14 end
    if options.encode_sparse_safe < 0 then options.encode_sparse_safe = math.huge end
    options.number_format = '%.' .. precision .. 'g'
    return options
end

-- The options of one call: those of the module, and what the call changes.
function serializer.call_options(options, given)
    if type(given) == 'string' or type(given) == 'userdata' then return options end
    if type(given) ~= 'table' then error('attempt to index a ' .. type(given) .. ' value', 0) end
    local changed = {}
    for name, value in next, options do changed[name] = value end
    return read_options(given, changed)
end

-- Start a module. Returns its options, and a table with what all serializers have, but `encode`, `decode` and `new`.
-- `on_change` is called with the options when `cfg` has changed them.
function serializer.new_module(on_change)
    local options = read_options(DEFAULTS, {})
    local shown = {}
    for name, value in next, DEFAULTS do shown[name] = value end
    local configure = serializer.entry(function(cfg, ...)
        local given = ...
        if type(given) ~= 'table' then
            serializer.bad_argument(2, 'table expected, got ' .. (select('#', ...) == 0 and 'no value' or type(given)))
        end
        for name in next, DEFAULTS do
            local value = given[name]
            if value ~= nil or type(value) == 'cdata' then cfg[name] = value end
        end
        read_options(given, options)
        if on_change then on_change(options) end
    end)
    local module = {
        cfg = setmetatable(shown, {__call = configure}),
        NULL = serializer.NULL,
        array_mt = serializer.array_mt,
        map_mt = serializer.map_mt,
    }
    return options, module
end

-- Numbers ------------------------------------------------------------------------------------------------------------

local uint64_t = ffi.typeof('uint64_t')

-- The text of a number: integers in full, others with the precision of the options.
function serializer.number_text(value, options)
    if floor(value) == value and value >= -0x1p63 and value < 0x1p64 then
        if value < 0x1p53 then return ('%d'):format(value) end
        return tostring(uint64_t(value)):sub(1, -4)
    end
    if value ~= value or value == math.huge or value == -math.huge then
        if not options.encode_invalid_numbers then serializer.raise('number must not be NaN or Inf') end
        if value ~= value then return 'nan' end
    end
    return options.number_format:format(value)
end

local nan = ffi.new('union { double number; uint8_t bytes[8]; }')

-- The text of a NaN, with its sign as printf has it.
function serializer.nan_text(value)
    nan.number = value
    return nan.bytes[7] >= 128 and '-nan' or 'nan'
end

-- Cdata --------------------------------------------------------------------------------------------------------------

local BY_NAME = {
    integer = {'int8_t', 'uint8_t', 'int16_t', 'uint16_t', 'int32_t', 'uint32_t', 'char'},
    long = {'int64_t', 'uint64_t'},
    float = {'float', 'double'},
    boolean = {'bool'},
    null = {'void *'},
}
local ctype_kinds = {}
for kind, names in next, BY_NAME do
    for _, name in ipairs(names) do ctype_kinds[tonumber(ffi.typeof(name))] = kind end
end

local function index(value, key)
    return value[key]
end

local unsupported

-- Call a `__serialize` function and classify what it returns.
local function converted(convert, value, options, rounds)
    local ok, found = pcall(convert, value)
    if not ok then
        serializer.raise((type(found) == 'string' or type(found) == 'number') and tostring(found) or '')
    end
    rounds = (rounds or 0) + 1
    if rounds > 100 then serializer.fail('__serialize returns its own argument') end
    return serializer.classify(found, options, rounds)
end

local function classify_cdata(value, options, rounds)
    local id = tonumber(ffi.typeof(value))
    local kind = ctype_kinds[id]
    if kind and find(tostring(value), '^ctype<') then return unsupported(value, options) end -- the type itself
    if kind == 'integer' then return 'number', tonumber(value) end
    if kind == 'long' then return 'long', value end
    if kind == 'float' then
        local number = tonumber(value)
        if not options.encode_invalid_numbers and number - number ~= 0 then
            serializer.raise('number must not be NaN or Inf')
        end
        return 'float', number
    end
    if kind == 'boolean' then return 'boolean', value == ffi.new('bool', true) end
    if kind == 'null' and value == nil then return 'nil' end
    if scalars[id] then return 'scalar', scalars[id](value) end
    local found, convert = pcall(index, value, '__serialize')
    if not options.encode_load_metatables or not found or convert == nil then return unsupported(value, options) end
    if type(convert) ~= 'function' then serializer.fail('invalid __serialize value') end
    local ok, message = pcall(convert, value)
    if not ok then return serializer.classify(message, options, rounds) end
    return converted(function() return message end, value, options, rounds)
end

-- The text of an int64_t or uint64_t.
function serializer.long_text(value)
    return (tostring(value):gsub('U?LL$', ''))
end

function unsupported(value, options)
    if options.encode_use_tostring then
        return 'string', tostring(value)
    end
    if options.encode_invalid_as_nil then return 'nil' end
    serializer.fail("unsupported Lua type '" .. type(value) .. "'")
end

-- Tables -------------------------------------------------------------------------------------------------------------

-- Keys are counted in 32 bits.
local function as_size(key)
    if key < 0x1p32 then return key end
    return key < 0x1p63 and key % 0x1p32 or 0
end

-- The greatest key of a table whose keys are integers from 1, or nil: it is a map.
local function array_size(value, options)
    local count, size = 0, 0
    for key in next, value do
        if type(key) ~= 'number' or key < 1 or floor(key) ~= key then return nil end
        count = count + 1
        if key > size then size = as_size(key) end
    end
    local ratio = options.encode_sparse_ratio
    if ratio > 0 and size > count * ratio and size > options.encode_sparse_safe then
        if not options.encode_sparse_convert then serializer.raise('excessively sparse array') end
        return nil
    end
    return size
end

-- The greatest integer key of a table that is to be an array.
local function greatest_key(value)
    local size = 0
    for key in next, value do
        if type(key) == 'number' and key > size and floor(key) == key then size = as_size(key) end
    end
    return size
end

local HINTS = {
    seq = {'array', true}, sequence = {'array', false}, array = {'array', false},
    map = {'map', true}, mapping = {'map', false},
}

local function classify_table(value, options, rounds)
    if getmetatable(value) ~= nil and options.encode_load_metatables then
        local meta = metatable_of(value)
        local hint = rawget(meta, '__serialize')
        if type(hint) == 'function' then return converted(hint, value, options, rounds) end
        if type(hint) == 'cdata' or hint ~= nil then
            local found = type(hint) == 'string' and HINTS[hint]
            if not found then serializer.raise('invalid __serialize value') end
            if found[1] == 'map' then return 'map', value, nil, found[2] end
            return 'array', value, greatest_key(value), found[2]
        end
    end
    local size = array_size(value, options)
    if size then return 'array', value, size, false end
    return 'map', value, nil, false
end

local OWN_KIND = {string = true, number = true, boolean = true}

-- The kind of a value after `__serialize`: 'nil', 'boolean', 'string', 'number', 'long' (an int64_t or uint64_t),
-- 'float' (a number that is no integer even if it is whole), 'scalar' (a text of its own), 'array' or 'map'. Returns it,
-- the value, an array's size, and whether the hint asks for YAML's flow style.
function serializer.classify(value, options, rounds)
    local kind = type(value)
    if kind == 'table' then return classify_table(value, options, rounds) end
    if OWN_KIND[kind] then return kind, value end
    if kind == 'nil' then return kind end
    if kind == 'cdata' then return classify_cdata(value, options, rounds) end
    if kind == 'userdata' and options.encode_load_metatables then
        local meta = metatable_of(value)
        local convert = type(meta) == 'table' and rawget(meta, '__serialize')
        if type(convert) == 'function' then return converted(convert, value, options, rounds) end
    end
    return unsupported(value, options)
end

return serializer
