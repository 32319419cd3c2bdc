-- The global `box`: before `box.cfg` has been called, and after it.
--
-- Source: Tarantool reference, "Module box".
local _, host = ...
local functions = require('internal.box.functions')
local transactions = require('internal.box.transactions')
local plain = require('internal.box.plain')
local log_options = require('internal.box.log_options')
local options = require('internal.box.options')
local spaces = require('internal.box.space.spaces')
local state = require('internal.box.state')
local encode = require('msgpack').encode
require('internal.box.session.fiber_sessions')
require('internal.box.session.console_sessions')

local box = rawget(_G, 'box') or {}
_G.box = box

for name, value in pairs(require('internal.box.init')) do box[name] = value end
box.index = spaces.ITERATORS

box.session = require('internal.box.session.session')
box.ctl, box.runtime = state.ctl, state.runtime

setmetatable(box, {
    __index = function() error('Please call box.cfg{} first', 2) end,
})

local function asked(name)
    return function(...) return functions.ask(name, ...) end
end

local function configured_values()
    return log_options.without(options.configured(plain.table(functions.ask('cfg_values'))))
end

local function check_table(given)
    if given ~= nil and type(given) ~= 'table' then
        error("bad argument #1 to 'pairs' (table expected, got " .. type(given) .. ')', 3)
    end
end

local function set_fields(fields)
    for name, value in pairs(fields) do rawset(box.cfg, name, value) end
end

local function configure_again(_, given)
    if given == nil then return end
    check_table(given)
    local found = options.of(given)
    options.check_dynamic(found, box.cfg, {instance_uuid = box.info.uuid, replicaset_uuid = box.info.cluster.uuid})
    log_options.check(found)
    local others, listen = log_options.take(options.with_effect(found)), found.listen
    others.listen, others.instance_uuid = nil, nil
    if next(others) ~= nil then functions.ask('box.cfg', others) end
    if listen ~= nil and tostring(listen) ~= box.cfg.listen then
        plain.await(host.listen, encode(listen))
    elseif given.listen == '' then
        plain.await(host.listen, encode{})
    end
    set_fields(configured_values())
    for name, value in pairs(given) do
        if value == '' then rawset(box.cfg, name, options.default(name)) end
    end
    set_fields(options.shown(found))
end

local function fill()
    setmetatable(box, nil)
    box.space = spaces.all
    box.schema = require('internal.box.schema.schema')
    box.func = require('internal.box.schema.stored').by_name
    box.sequence = require('internal.box.schema.sequence')
    box.once = require('internal.box.once')
    for _, name in ipairs{'info', 'stat', 'slab', 'backup'} do box[name] = state[name] end
    for _, name in ipairs{'begin', 'commit', 'rollback', 'savepoint', 'rollback_to_savepoint', 'is_in_txn', 'atomic'} do
        box[name] = transactions[name]
    end
    box.on_commit, box.on_rollback = transactions.on_commit, transactions.on_rollback
    box.snapshot = function() return plain.await(host.wait_for_box, 'box.snapshot') end
    box.broadcast = asked('box.broadcast')
end

local is_starting = false

function box.cfg(given)
    check_table(given)
    if is_starting then error('box.cfg is running in another fiber', 2) end
    local found = options.of(given or {})
    options.check_identities(found)
    log_options.check(found)
    is_starting = true
    local others = log_options.take(log_options.enter_folder(options.with_effect(found)))
    local packed = encode(setmetatable(others, {__serialize = 'map'}))
    local ok, why = pcall(plain.await, host.start_box, packed)
    is_starting = false
    if not ok then error(why, 0) end
    fill()
    rawset(box, 'cfg', setmetatable(options.defaults(), {__call = configure_again}))
    local effective = configured_values()
    set_fields(effective)
    set_fields(options.shown(found))
    set_fields(log_options.shown())
    -- What the command line says comes before what Lua code has given.
    if effective.wal_mode ~= found.wal_mode then rawset(box.cfg, 'wal_mode', effective.wal_mode) end
end

return box
