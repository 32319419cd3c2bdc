-- The application of tests/server/lua.
box.cfg{}
local fiber = require('fiber')

box.schema.user.grant('guest', 'super', nil, nil, {if_not_exists = true})
box.schema.user.create('worker', {password = 'secret', if_not_exists = true})
box.schema.user.create('stranger', {password = 'secret', if_not_exists = true})
box.schema.func.create('jobs.add', {if_not_exists = true})
box.schema.func.create('jobs.as_owner', {if_not_exists = true, setuid = true})
box.schema.user.grant('worker', 'execute', 'function', 'jobs.add', {if_not_exists = true})
box.schema.user.grant('stranger', 'execute', 'function', 'jobs.as_owner', {if_not_exists = true})

local space = box.schema.space.create('jobs', {if_not_exists = true})
space:create_index('primary', {parts = {{1, 'unsigned'}}, if_not_exists = true})
box.schema.user.grant('worker', 'read,write', 'space', 'jobs', {if_not_exists = true})

connected, disconnected = {}, {}
box.session.on_connect(function()
    fiber.yield()
    connected[box.session.id()] = box.session.user()
    box.session.storage.name = 'session ' .. box.session.id()
end)
box.session.on_disconnect(function()
    disconnected[#disconnected + 1] = box.session.storage.name
end)

jobs = {}

function jobs.add(id, data)
    return space:insert{id, data}
end

function jobs.as_owner(id)
    return space:get(id)
end

function jobs:method(value)
    return self == jobs, value
end

function jobs.nothing() end

function jobs.values()
    return 1, 'two', nil, {a = {1, 2}}, 18446744073709551615ULL
end

function jobs.fail()
    error('it failed')
end

function jobs.fail_with_code()
    box.error{code = 1234, reason = 'its own'}
end

function jobs.leave_transaction_open()
    box.begin()
    space:insert{1000}
end

function jobs.half()
    space:insert{2000}
    error('after an insert')
end

local has_value, value = fiber.cond(), nil

function jobs.wait(timeout)
    jobs.waiting = true
    while value == nil do
        if not has_value:wait(timeout) then return 'timeout' end
    end
    local found = value
    value = nil
    return found, box.session.user(), box.session.storage.name
end

function jobs.give(given)
    value = given
    has_value:signal()
end

function jobs.wait_in_transaction()
    box.begin()
    space:insert{3000}
    fiber.sleep(0)
    box.commit()
end

function jobs.push(count)
    for number = 1, count do box.session.push(number) end
    return 'done'
end
