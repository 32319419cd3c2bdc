-- Values that compiled code cannot pack or unpack by itself: decimals, UUIDs, errors, and objects with `__serialize`.
local _, host = ...
local ffi = require('ffi')

local type, tonumber, tostring, pcall, find = type, tonumber, tostring, pcall, string.find
local typeof = ffi.typeof

local extensions = {}

-- To MessagePack ------------------------------------------------------------------------------------------------------

-- Functions that pack a cdata, by the number of its type.
local packers = {}

-- Pack cdata of a type by a function that returns the packed value.
function extensions.add_packer(ctype, pack)
    packers[tonumber(ctype)] = pack
end

local integers = {}
for _, name in ipairs{'int8_t', 'uint8_t', 'int16_t', 'uint16_t', 'int32_t', 'uint32_t', 'char'} do
    integers[tonumber(typeof(name))] = true
end
local boolean = tonumber(typeof('bool'))

-- Types up to this one are LuaJIT's own, and have no methods.
local LAST_PLAIN = tonumber(typeof('const char *'))

-- The head of an extension with a payload.
local function extension(number, payload)
    local size = #payload
    local fixed = ({[1] = '\212', [2] = '\213', [4] = '\214', [8] = '\215', [16] = '\216'})[size]
    if fixed then return fixed .. string.char(number) .. payload end
    return '\199' .. string.char(size, number) .. payload
end

local uuid = require('uuid')
-- References, as `uuid.NULL`, have another type, which Tarantool does not pack either.
extensions.add_packer(typeof('struct tt_uuid'), function(value) return extension(2, value:bin('n')) end)
require('decimal')
extensions.add_packer(typeof('decimal_t'), function(value)
    return extension(1, host.decimal_pack(ffi.string(value, ffi.sizeof('decimal_t'))))
end)

local function index(value, key)
    return value[key]
end

-- What is packed in place of a value: true and a packed value, or false and another value. Returns nil if there is
-- none, or nil and what is wrong.
function extensions.encode(value, load_metatables, use_tostring)
    local id = type(value) == 'cdata' and tonumber(typeof(value))
    if id and find(tostring(value), '^ctype<') then id = nil end -- the type itself
    if id then
        if integers[id] then return false, tonumber(value) end
        if id == boolean then return false, value == ffi.new('bool', true) end
        if packers[id] then return true, packers[id](value) end
    end
    if load_metatables and (id and id > LAST_PLAIN or type(value) == 'userdata') then
        local found, convert = pcall(index, value, '__serialize')
        if found and type(convert) ~= 'nil' then
            if type(convert) ~= 'function' then return nil, 'invalid __serialize value' end
            local _, converted = pcall(convert, value)
            return false, converted
        end
    end
    if use_tostring then return false, tostring(value) end
    return nil
end

-- From MessagePack ----------------------------------------------------------------------------------------------------

local INVALID = 'msgpack.decode: invalid MsgPack'

local unpackers = {
    function(payload)
        local bytes = host.decimal_unpack(payload)
        if not bytes then return nil, INVALID end
        local value = ffi.new('decimal_t')
        ffi.copy(value, bytes, #bytes)
        return value
    end,
    function(payload)
        if #payload ~= 16 then return nil, INVALID end
        local value = uuid.frombin(payload, 'n')
        if value.clock_seq_hi_and_reserved >= 0xE0 then return nil, INVALID end -- reserved variants
        return value
    end,
    function(payload)
        local found = require('internal.box.values.error').unpack_stack(payload)
        if not found then return nil, 'Can not parse an error from MsgPack' end
        return found
    end,
}

-- The value of an extension, or nil and what is wrong.
function extensions.decode(number, payload)
    local unpack_value = unpackers[number]
    if not unpack_value then return nil, 'Unsuported MsgPack extension type: ' .. number end
    return unpack_value(payload)
end

return extensions
