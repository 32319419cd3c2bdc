-- The compiled functions of the database.
local _, host = ...
require('internal.native')
local tuple = require('internal.box.tuple')
local errors = require('internal.box.error')

local open, why = package.loadlib(host.compiled_module(), 'luaopen_iproto_box')
if not open then error('the compiled module cannot be loaded into Lua: ' .. tostring(why), 0) end
local functions = open()

functions.setup_box{
    define_format = tuple.define_format,
    enter = function(...) return require('internal.box.calls').enter(...) end,
    new_error = errors.of_host,
    describe_error = errors.describe,
    function_numbers = setmetatable({}, {__mode = 'k'}),
}

return functions
