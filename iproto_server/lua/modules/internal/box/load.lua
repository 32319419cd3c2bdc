-- The global `box`: before `box.cfg` has been called, and after it.
--
-- Source: Tarantool reference, "Module box".
local _, host = ...
local functions = require('internal.box.functions')
local transactions = require('internal.box.transactions')
local plain = require('internal.box.plain')
local spaces = require('internal.box.space.spaces')
local encode = require('msgpack').encode
require('internal.box.session.fiber_sessions')

local box = rawget(_G, 'box') or {}
_G.box = box

for name, value in pairs(require('internal.box.init')) do box[name] = value end
box.index = spaces.ITERATORS

for _, name in ipairs{'begin', 'commit', 'rollback', 'savepoint', 'rollback_to_savepoint', 'is_in_txn', 'atomic'} do
    box[name] = transactions[name]
end

-- What there is after `box.cfg` only.
local later = {
    'space', 'schema', 'func', 'sequence', 'session', 'info', 'stat', 'slab', 'runtime', 'snapshot', 'once', 'ctl', 'backup',
    'broadcast', 'watch', 'on_commit', 'on_rollback',
}
local is_later = {}
for _, name in ipairs(later) do is_later[name] = true end

setmetatable(box, {
    __index = function(_, name)
        if is_later[name] then error('Please call box.cfg{} first', 2) end
    end,
})

local function asked(name)
    return function(...) return functions.ask(name, ...) end
end

local function configured_values()
    return plain.table(functions.ask('cfg_values'))
end

local function configure_again(_, options)
    if options == nil then return end
    local others = {}
    for name, value in pairs(options) do
        if name ~= 'listen' or value == box.cfg.listen then others[name] = value end
    end
    if next(others) ~= nil then functions.ask('box.cfg', others) end
    if options.listen ~= nil and options.listen ~= box.cfg.listen then
        plain.await(host.listen, encode(options.listen))
    end
    for name, value in pairs(configured_values()) do rawset(box.cfg, name, value) end
end

local function fill()
    box.space = spaces.all
    box.schema = require('internal.box.schema.schema')
    box.session = require('internal.box.session.session')
    box.func = require('internal.box.schema.stored').by_name
    box.sequence = require('internal.box.schema.sequence')
    box.once = require('internal.box.once')
    local state = require('internal.box.state')
    for name, value in pairs(state) do box[name] = value end
    box.on_commit, box.on_rollback = transactions.on_commit, transactions.on_rollback
    box.snapshot = function() return plain.await(host.wait_for_box, 'box.snapshot') end
    box.broadcast = asked('box.broadcast')
end

local is_starting = false

function box.cfg(options)
    if options ~= nil and type(options) ~= 'table' then
        error("bad argument #1 to 'pairs' (table expected, got " .. type(options) .. ')', 2)
    end
    if is_starting then error('box.cfg is running in another fiber', 2) end
    is_starting = true
    local packed = encode(setmetatable(table.copy(options or {}), {__serialize = 'map'}))
    local ok, why = pcall(plain.await, host.start_box, packed)
    is_starting = false
    if not ok then error(why, 0) end
    fill()
    rawset(box, 'cfg', setmetatable(configured_values(), {__call = configure_again}))
end

return box
