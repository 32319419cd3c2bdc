-- A delayed queue for the real Tarantool: queue.put, take, ack, release and stats, as the tutorial's clients know them.
--
-- A task is ready (R), taken (T) by one session, or waiting (W) until its time has come. This is the reference that
-- the server's own queue is measured against, so it does no more work for a request than its contract asks for.

local clock = require('clock')
local fiber = require('fiber')
local msgpack = require('msgpack')

local READY, TAKEN, WAITING = 'R', 'T', 'W'

box.schema.space.create('queue', {
    if_not_exists = true,
    format = {
        {name = 'id', type = 'number'},
        {name = 'status', type = 'string'},
        {name = 'runat', type = 'number'},
        {name = 'data', type = '*'},
    },
})
local tasks = box.space.queue
tasks:create_index('primary', {parts = {{'id', 'number'}}, if_not_exists = true})
tasks:create_index('status', {parts = {{'status', 'string'}, {'id', 'number'}}, if_not_exists = true})
tasks:create_index('runat', {parts = {{'runat', 'number'}, {'id', 'number'}}, if_not_exists = true})

local queue = {}
local owners = {}  -- the session that has a task, by the task's key
local holdings = {}  -- the tasks of a session: ids by the same keys
local counts = {[READY] = 0, [TAKEN] = 0, [WAITING] = 0}
local has_ready = fiber.cond()
local has_delayed = fiber.cond()

-- An id is a table's key by its value, be it a Lua number or a 64-bit one.
local key_of = msgpack.encode

local function as_map(task)
    return task:tomap({names_only = true})
end

-- Nobody who had a task before this start is still there.
for _, task in ipairs(tasks.index.status:select({TAKEN})) do
    tasks:update(task.id, {{'=', 'status', READY}})
end
for status in pairs(counts) do
    counts[status] = tasks.index.status:count({status})
end

tasks:on_replace(function(before, after)
    if before ~= nil then
        counts[before.status] = counts[before.status] - 1
    end
    if after ~= nil then
        counts[after.status] = (counts[after.status] or 0) + 1
    end
end)

box.space._truncate:on_replace(function(_, after)
    if after ~= nil and after.id == tasks.id then
        for status in pairs(counts) do
            counts[status] = 0
        end
    end
end)

local function unused_id()
    local id = clock.realtime64()
    while tasks:get(id) ~= nil do
        id = id + 1
    end
    return id
end

-- What becomes of a task that somebody has put or given back.
local function fate(options)
    if not options or not options.delay then
        return READY, 0
    end
    return WAITING, clock.realtime() + tonumber(options.delay)
end

local function tell(status)
    if status == READY then
        has_ready:signal()
    else
        has_delayed:signal()
    end
end

function queue.put(data, options)
    local status, runat = fate(options)
    local task = tasks:insert({unused_id(), status, runat, data})
    tell(status)
    return as_map(task)
end

function queue.take(timeout)
    local deadline = clock.monotonic() + (timeout or 0)
    local first = tasks.index.status:select({READY}, {limit = 1})[1]
    while first == nil do
        local left = deadline - clock.monotonic()
        if left <= 0 then
            return
        end
        has_ready:wait(left)
        first = tasks.index.status:select({READY}, {limit = 1})[1]
    end
    -- A session is there for as long as its requests are, even if nobody is at the other end.
    if box.session.storage.is_closed then
        has_ready:signal()
        return
    end
    local session = box.session.id()
    local key = key_of(first.id)
    owners[key] = session
    holdings[session] = holdings[session] or {}
    holdings[session][key] = first.id
    return as_map(tasks:update(first.id, {{'=', 'status', TAKEN}}))
end

-- The id of a task that the caller has taken, and now gives up.
local function surrender(id)
    if not id then
        error('Task id required', 3)
    end
    id = tonumber64(id)
    local key, session = key_of(id), box.session.id()
    if tasks:get(id) == nil then
        error(('Task {%s} was not found'):format(id), 3)
    end
    local owner = owners[key]
    if owner == nil then
        error(('Task %s not taken by anybody'):format(id), 3)
    elseif owner ~= session then
        error(('Task %s taken by %d. Not you (%d)'):format(id, owner, session), 3)
    end
    owners[key] = nil
    holdings[session][key] = nil
    return id
end

function queue.ack(id)
    return as_map(tasks:delete(surrender(id)))
end

function queue.release(id, options)
    local status, runat = fate(options)
    local task = tasks:update(surrender(id), {{'=', 'status', status}, {'=', 'runat', runat}})
    tell(status)
    return as_map(task)
end

function queue.stats()
    return {
        total = tasks:len(),
        ready = counts[READY],
        waiting = counts[WAITING],
        taken = counts[TAKEN],
    }
end

box.session.on_disconnect(function()
    box.session.storage.is_closed = true
    local session = box.session.id()
    local held = holdings[session] or {}
    holdings[session] = nil
    for key, id in pairs(held) do
        owners[key] = nil
        if tasks:get(id) ~= nil then
            tasks:update(id, {{'=', 'status', READY}})
            has_ready:signal()
        end
    end
end)

-- Makes delayed tasks ready when their time has come.
fiber.create(function()
    fiber.name('queue.delayed')
    while true do
        local pause = 1
        for _, task in ipairs(tasks.index.runat:select({0}, {iterator = 'GT', limit = 100})) do
            local left = task.runat - clock.realtime()
            if left > 0 then
                pause = math.min(left, 1)
                break
            end
            tasks:update(task.id, {{'=', 'status', READY}, {'=', 'runat', 0}})
            has_ready:signal()
            pause = 0
        end
        has_delayed:wait(pause)
    end
end)

return queue
