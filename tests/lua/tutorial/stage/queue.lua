-- The queue as it is in the middle of the tutorial: data are all arguments of `put`, and calls answer rows.
local clock = require('clock')
local fiber = require('fiber')

local tasks = box.schema.space.create('queue', {if_not_exists = true})
tasks:format{{'id', 'number'}, {'status', 'string'}, {'data', '*'}}
tasks:create_index('primary', {parts = {'id'}, if_not_exists = true})
tasks:create_index('status', {parts = {'status', 'id'}, if_not_exists = true})

local queue = {wakes = true, channel = fiber.channel()}

function queue.put(...)
    if queue.wakes and queue.channel:has_readers() then queue.channel:put(true, 0) end
    local id = clock.realtime64()
    while tasks:get{id} do id = id + 1 end
    return tasks:insert{id, 'R', {...}}
end

function queue.take(timeout)
    local deadline = fiber.time() + (timeout or 0)
    while true do
        local task = tasks.index.status:pairs({'R'}, {iterator = 'EQ'}):nth(1)
        if task then return tasks:update({task.id}, {{'=', 'status', 'T'}}) end
        local left = deadline - fiber.time()
        if left <= 0 then return end
        queue.channel:get(left)
    end
end

local function taken(id)
    local task = assert(tasks:get{id}, 'Task not exists')
    if task.status ~= 'T' then error('Task not taken') end
    return task.id
end

function queue.ack(id) return tasks:delete{taken(id)} end

function queue.release(id) return tasks:update({taken(id)}, {{'=', 'status', 'R'}}) end

function queue.stats()
    local count = tasks.index.status
    return {total = tasks:len(), ready = count:count{'R'}, waiting = count:count{'W'}, taken = count:count{'T'}}
end

return queue
