-- What comes before all modules: the functions of Python, and `require` for the modules of this folder.
-- A module is called with its name and the table of these functions.
local host_functions, module_text = ...

local function answered(ok, ...)
    if not ok then error((...), 3) end
    return ...
end

local host = {}
for name, call in pairs(host_functions) do
    host[name] = function(...) return answered(call(...)) end
end

-- The first loader finds these modules, too, so that `package.loaders` has as many as Tarantool's.
host.builtin = {} -- the names of those that were asked for
local preloaded = package.loaders[1]
package.loaders[1] = function(name)
    local found = preloaded(name)
    local text = type(found) ~= 'function' and module_text(name)
    if not text then return found end
    host.builtin[name] = true
    local chunk = assert(loadstring(text, '@builtin/' .. name .. '.lua'))
    return function() return chunk(name, host) end
end

-- Types of cdata that compiled code knows, see `internal/native.lua`. Names of members that no code can write leave all
-- names to fields.
local ffi = require('ffi')
ffi.cdef([[
struct tuple { uint32_t $; uint32_t $; uint8_t $[?]; };
struct error { uint64_t $; };
struct msgpack_options {
    int32_t encode_sparse_ratio, encode_sparse_safe, encode_max_depth;
    bool encode_sparse_convert, encode_deep_as_nil, encode_invalid_as_nil, encode_invalid_numbers;
    bool encode_load_metatables, encode_use_tostring, decode_save_metatables, in_order;
};
]], '\0size', '\0format', '\0row', '\0error')
ffi.typeof('char *')

-- Extensions of Lua's own tables, which need no `require`.
for _, name in ipairs{'table', 'string', 'os', 'package'} do
    local text = module_text('internal.extensions.' .. name)
    if text then assert(loadstring(text, '@builtin/' .. name .. '.lua'))(name, host) end
end

require('internal.garbage')

-- Globals that need no `require`.
utf8 = require('utf8')
tonumber64 = require('internal.extensions.tonumber64')
_TARANTOOL = require('tarantool').version

return host
