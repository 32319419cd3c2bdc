-- The compiled functions of the database.
local _, host = ...
require('internal.native')
local formats = require('internal.box.values.tuple')
local failure = require('internal.box.failure')

local open, why = package.loadlib(host.compiled_module(), 'luaopen_iproto_box')
if not open then error('the compiled module cannot be loaded into Lua: ' .. tostring(why), 0) end
local functions = open()

-- The module of calls needs this one, so it is loaded by the first call.
local calls

local function enter(...)
    calls = calls or require('internal.box.calls')
    return calls.enter(...)
end

functions.setup_box{
    define_format = formats.define_format,
    enter = enter,
    new_error = failure.of_host,
    describe_error = failure.describe,
    function_numbers = setmetatable({}, {__mode = 'k'}),
}

return functions
