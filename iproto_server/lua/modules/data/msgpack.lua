-- The module msgpack, whose functions are compiled.
--
-- Differences from Tarantool 2.6: `encode` and `ibuf_decode` take no ibuf; `decode_unchecked` of a text does
-- not read behind its end.
local native = require('internal.native')
local serializer = require('internal.serial.serializer')

-- A new module. `rows` are options that follow its own, but that make no table a map because it is sparse.
local function new(compiled, rows)
    local function changed(options)
        native.set_options(compiled, options)
        if rows then native.set_options(rows, options, 0) end
    end
    local options, module = serializer.new_module(changed)
    changed(options)
    for name, call in pairs(native.msgpack_functions(compiled)) do module[name] = call end
    module.ibuf_decode = function() error('msgpack.ibuf_decode: there are no buffers, use msgpack.decode', 2) end
    module.new = function() return new(native.options_t()) end
    return module
end

return new(native.encoding, native.tuple_encoding)
