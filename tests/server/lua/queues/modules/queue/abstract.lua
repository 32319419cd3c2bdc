-- A stand-in for the module tarantool/queue, with its spaces and one type of tubes, fifo.
local fiber = require('fiber')

local spaces = box.schema.space
local tubes = spaces.create('_queue', {if_not_exists = true})
tubes:create_index('tube', {parts = {1, 'string'}, if_not_exists = true})
local consumers = spaces.create('_queue_consumers', {temporary = true, if_not_exists = true})
consumers:create_index('pk', {parts = {1, 'unsigned', 2, 'unsigned'}, if_not_exists = true})
consumers:create_index('consumer', {parts = {3, 'unsigned', 4, 'unsigned'}, unique = false, if_not_exists = true})
local taken = spaces.create('_queue_taken_2', {temporary = true, if_not_exists = true})
taken:create_index('task', {parts = {1, 'unsigned', 2, 'unsigned'}, if_not_exists = true})

local abstract, conds, methods = {tube = {}, stat = {}}, {}, {}

local function changed(tube, task, event)
    abstract.stat[tube.name][event] = (abstract.stat[tube.name][event] or 0) + 1
    taken:delete{tube.id, task[1]}
    if task[2] == 't' then
        taken:insert{tube.id, task[1], box.session.id(), 'uuid', fiber.time64()}
    elseif task[2] == 'r' then
        local consumer = consumers.index.consumer:min{tube.id}
        if consumer then conds[consumer[2]]:signal() end
    end
    return task
end

local function change(tube, id, status, event)
    return changed(tube, tube.space:update({id}, {{'=', 2, status}}), event)
end

function methods.put(tube, data)
    local last = tube.space.index.task_id:max()
    return changed(tube, tube.space:insert{last and last[1] + 1 or 0, 'r', data}, 'put')
end

function methods.take(tube, timeout)
    local task = tube.space.index.status:min{'r'}
    if (not task or task[2] ~= 'r') and timeout > 0 then
        local id = fiber.id()
        conds[id] = fiber.cond()
        consumers:insert{box.session.id(), id, tube.id, 0, fiber.time64()}
        conds[id]:wait(timeout)
        consumers:delete{box.session.id(), id}
        return methods.take(tube, 0)
    end
    if task and task[2] == 'r' then return change(tube, task[1], 't', 'take') end
end

function methods.delete(tube, id)
    return changed(tube, tube.space:delete{id}:update{{'=', 2, '-'}}, 'delete')
end

function methods.bury(tube, id) return change(tube, id, '!', 'bury') end

function methods.kick(tube, count)
    for number = 1, count do
        local task = tube.space.index.status:min{'!'}
        if not task or task[2] ~= '!' then return number - 1 end
        change(tube, task[1], 'r', 'kick')
    end
    return count
end

function abstract.create_tube(name, kind)
    local space = spaces.create(name, {format = {{'task_id', 'unsigned'}, {'status', 'string'}, {'data', '*'}}})
    space:create_index('task_id', {parts = {'task_id'}})
    space:create_index('status', {parts = {'status', 'task_id'}})
    local tube = setmetatable({name = name, id = tubes:len(), space = space}, {__index = methods})
    tube.raw = {release = function(_, id) return change(tube, id, 'r', 'release') end}
    tubes:insert{name, tube.id, name, kind, {}}
    abstract.tube[name], abstract.stat[name] = tube, {}
    return tube
end

return abstract
