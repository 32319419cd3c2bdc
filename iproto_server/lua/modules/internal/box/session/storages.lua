-- box.session.storage: a table for each session, which lives as long as it, and as long as fibers that act for it.
local functions = require('internal.box.functions')

local open = {}
local closed = setmetatable({}, {__mode = 'v'})

local storages = {}

-- The table of a session.
function storages.of(id)
    local storage = open[id] or closed[id]
    if storage then return storage end
    storage = {}
    if not functions.is_attached or functions.ask('keep_storage', id) then open[id] = storage else closed[id] = storage end
    return storage
end

-- Called at the end of a session.
function storages.forget(id)
    closed[id], open[id] = open[id], nil
end

return storages
