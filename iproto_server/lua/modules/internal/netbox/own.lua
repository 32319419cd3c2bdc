-- The connection of a server to itself, which needs no network.
local check = require('internal.netbox.check')
local failures = require('internal.netbox.failures')

local methods = {}
local own = setmetatable(methods, {__index = function(_, name)
    if name == 'space' then return box.space end
end})

-- The results of `pcall`. Texts become errors of box.
local function converted(ok, ...)
    if ok then return ... end
    local why = ...
    failures.raise(failures.is(why) and why or failures.new(failures.codes.PROC_LUA, tostring(why)))
end

function methods:call(name, args)
    check.call(self, args)
    local calls = require('internal.box.calls')
    return converted(pcall(calls.invoke, tostring(name), unpack(args or {})))
end

function methods:eval(text, args)
    check.eval(self, args)
    text = tostring(text)
    local chunk, why = loadstring(text)
    if not chunk then chunk, why = loadstring('return ' .. text) end
    if not chunk then failures.usage(why) end
    return converted(pcall(chunk, unpack(args or {})))
end

function methods.ping() return true end
function methods.is_connected() return true end
function methods.wait_connected() return true end
function methods.close() end
function methods.reload_schema() end
function methods:timeout() return self end

return own
