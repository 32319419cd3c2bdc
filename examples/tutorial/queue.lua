-- A queue of tasks as in Tarantool's tutorial: put, take, ack, release and stats.
--
-- A task is ready (R), taken (T) by a session, or waiting (W) until its time has come. The code can be loaded again while
-- tasks are taken and consumers wait.
local clock = require('clock')
local fiber = require('fiber')
local log = require('log')
local msgpack = require('msgpack')

local READY, TAKEN, WAITING = 'R', 'T', 'W'

local tasks = box.schema.space.create('queue', {if_not_exists = true})
tasks:format{{'id', 'number'}, {'status', 'string'}, {'runat', 'number'}, {'data', 'any'}}
tasks:create_index('primary', {parts = {'id'}, if_not_exists = true})
tasks:create_index('status', {parts = {'status', 'id'}, if_not_exists = true})
tasks:create_index('runat', {parts = {'runat', 'id'}, if_not_exists = true})

local queue = {}

-- -- what a reload keeps --

local loaded_before = rawget(_G, 'queue')
local kept = loaded_before and loaded_before.kept or {
    counts = {[READY] = 0, [TAKEN] = 0, [WAITING] = 0},
    triggers = {},
    changed = fiber.cond(),
}
queue.kept = kept

-- What operators see beside the tasks.
queue.taken = loaded_before and loaded_before.taken or {} -- sessions by the keys of tasks
queue.bysid = loaded_before and loaded_before.bysid or {} -- ids of tasks by their keys, by session
queue._wait = loaded_before and loaded_before._wait or fiber.channel() -- has consumers that wait

-- Equal numbers of different types have the same key.
local key_of = msgpack.encode

local function wake_a_consumer()
    if queue._wait:has_readers() then queue._wait:put(true, 0) end
end

local function make_ready(id)
    wake_a_consumer()
    return tasks:update({id}, {{'=', 'status', READY}, {'=', 'runat', 0}})
end

if not loaded_before then
    -- The sessions that had tasks are gone.
    for _, task in ipairs(tasks.index.status:select{TAKEN}) do make_ready(task.id) end
    for status in pairs(kept.counts) do kept.counts[status] = tasks.index.status:count{status} end
end

-- -- triggers: each takes the place of the one before a reload --

local triggers = kept.triggers

triggers.count = tasks:on_replace(function(old, new)
    local counts = kept.counts
    if old then counts[old.status] = counts[old.status] - 1 end
    if new then counts[new.status] = (counts[new.status] or 0) + 1 end
end, triggers.count)

triggers.truncate = box.space._truncate:on_replace(function(_, new)
    if new and new.id == tasks.id then
        for status in pairs(kept.counts) do kept.counts[status] = 0 end
    end
end, triggers.truncate)

triggers.disconnect = box.session.on_disconnect(function()
    local session = box.session.id()
    box.session.storage.is_gone = true
    for key, id in pairs(queue.bysid[session] or {}) do
        queue.taken[key] = nil
        if tasks:get{id} then
            log.info('the task %s of the session %d is ready again', id, session)
            make_ready(id)
        end
    end
    queue.bysid[session] = nil
end, triggers.disconnect)

-- -- calls --

local function new_id()
    local id = clock.realtime64()
    while tasks:get{id} do id = id + 1 end
    return id
end

-- The status and the time of a task that is put or given back.
local function begin(options)
    local delay = options and options.delay
    if not delay then
        wake_a_consumer()
        return READY, 0
    end
    kept.changed:broadcast()
    return WAITING, clock.realtime() + tonumber(delay)
end

local function as_map(task)
    return task:tomap{names_only = true}
end

function queue.put(data, options)
    local status, runat = begin(options)
    return as_map(tasks:insert{new_id(), status, runat, data})
end

function queue.take(timeout)
    local deadline = fiber.clock() + (timeout or 0)
    local task
    while true do
        task = tasks.index.status:pairs({READY}, {iterator = 'EQ'}):nth(1)
        local left = deadline - fiber.clock()
        if task or left <= 0 then break end
        queue._wait:get(left)
    end
    if not task or box.session.storage.is_gone then return end
    local session, key = box.session.id(), key_of(task.id)
    queue.taken[key] = session
    queue.bysid[session] = queue.bysid[session] or {}
    queue.bysid[session][key] = task.id
    return as_map(tasks:update({task.id}, {{'=', 'status', TAKEN}}))
end

-- End the possession of a task. Returns its id. Errors have the place of the call in this file.
local function give_up(id)
    if not id then error('Task id required', 2) end
    id = tonumber64(id)
    local key, session = key_of(id), box.session.id()
    local owner = queue.taken[key]
    if not tasks:get{id} then error(('Task {%s} was not found'):format(id), 2) end
    if not owner then error(('Task %s not taken by anybody'):format(id), 2) end
    if owner ~= session then error(('Task %s taken by %d. Not you (%d)'):format(id, owner, session), 2) end
    queue.taken[key] = nil
    queue.bysid[session][key] = nil
    return id
end

function queue.ack(id)
    local own = give_up(id)
    return as_map(tasks:delete{own})
end

function queue.release(id, options)
    local own = give_up(id)
    local status, runat = begin(options)
    return as_map(tasks:update({own}, {{'=', 'status', status}, {'=', 'runat', runat}}))
end

function queue.stats()
    local counts = kept.counts
    return {total = tasks:len(), ready = counts[READY], waiting = counts[WAITING], taken = counts[TAKEN]}
end

-- -- fibers: each ends when the code is loaded again --

local generation = package.reload.count
local function is_current() return package.reload.count == generation end

-- Make tasks ready whose time has come. Returns the seconds until the next one.
local function make_due_ready()
    for _, task in tasks.index.runat:pairs({0}, {iterator = 'GT'}) do
        local left = task.runat - clock.realtime()
        if left > 0 then return left end
        make_ready(task.id)
    end
    return 1
end

kept.timer = fiber.create(function(previous)
    fiber.name('queue.timer.' .. generation)
    while is_current() and previous and previous:status() ~= 'dead' do kept.changed:wait(0.1) end
    while is_current() do kept.changed:wait(math.min(make_due_ready(), 1)) end
    kept.changed:broadcast()
end, kept.timer)
kept.changed:broadcast()

-- Send the counters to Graphite each second: QUEUE_GRAPHITE=HOST:PORT.
local host, port = (os.getenv('QUEUE_GRAPHITE') or ''):match('^(.+):(%d+)$')

local function counters()
    local lines, now = {}, math.floor(fiber.time())
    for name, count in pairs(queue.stats()) do
        lines[#lines + 1] = ('queue.stats.%s %d %d\n'):format(name, tonumber(count), now)
    end
    return table.concat(lines)
end

fiber.create(function()
    fiber.name('queue.graphite.' .. generation)
    fiber.yield() -- `queue` is not loaded yet
    while host and is_current() do
        local connection = require('socket').tcp_connect(host, tonumber(port), 5)
        if not connection then log.error('Graphite at %s:%s does not answer', host, port) end
        while connection and is_current() and connection:write(counters()) do fiber.sleep(1) end
        if connection then connection:close() end
        fiber.sleep(1)
    end
end)

return queue
