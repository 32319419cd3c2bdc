-- Functions that Python calls when something has changed. They are called as functions of Lua, whose errors undo a change.
local functions = require('internal.box.functions')
local spaces = require('internal.box.space.spaces')
local stored = require('internal.box.schema.stored')

spaces.refresh_all()
stored.refresh_all()
functions.ask('set_hooks', {'space', 'function', 'read_only', 'storage'}, spaces.refresh, stored.refresh,
              require('internal.box.state').notify, require('internal.box.session.storages').forget)
functions.is_attached = true
require('internal.box.session.fiber_triggers').attach()
require('internal.box.state').notify()
