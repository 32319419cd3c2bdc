-- The module msgpack, whose functions are compiled.
--
-- Differences from Tarantool 2.6: `encode` takes no ibuf, and there is no `ibuf_decode`; `decode_unchecked` of a text does
-- not read behind its end.
local native = require('internal.native')
local serializer = require('internal.serial.serializer')

-- Let compiled code know the options of a module.
local function apply(options, compiled)
    for _, name in ipairs{
        'encode_sparse_ratio', 'encode_max_depth', 'encode_sparse_convert', 'encode_deep_as_nil', 'encode_invalid_as_nil',
        'encode_invalid_numbers', 'encode_load_metatables', 'encode_use_tostring', 'decode_save_metatables',
    } do
        compiled[name] = options[name]
    end
    compiled.encode_sparse_safe = options.encode_sparse_safe == math.huge and -1 or options.encode_sparse_safe
end

-- A new module. `rows` are options that follow its own, but that make no table a map because it is sparse.
local function new(compiled, rows)
    local function changed(options)
        apply(options, compiled)
        if rows then
            apply(options, rows)
            rows.encode_sparse_ratio = 0
        end
    end
    local options, module = serializer.new_module(changed)
    changed(options)
    for name, call in pairs(native.msgpack_functions(compiled)) do module[name] = call end
    module.new = function() return new(native.options_t()) end
    return module
end

return new(native.encoding, native.tuple_encoding)
