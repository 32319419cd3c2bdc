-- The tutorial's consumer: takes tasks one after the other, and does with each what it was told.
-- Usage: tarantool consumer.lua HOST:PORT ack|release|hold TIMEOUT ROUNDS
-- TIMEOUT is how many seconds a take waits, ROUNDS how many takes there are; who holds a task stays with it for ever.

local fiber = require('fiber')
local json = require('json')
local net_box = require('net.box')

local address, what, timeout, rounds = arg[1], arg[2], tonumber(arg[3]), tonumber(arg[4])

io.stdout:setvbuf('line')

local broker = net_box.connect(address)
local finish = {
    ack = function(task)
        print('acknowledged ' .. json.encode(broker:call('queue.ack', {task.id})))
    end,
    release = function(task)
        print('released ' .. json.encode(broker:call('queue.release', {task.id})))
    end,
    hold = function()
        fiber.sleep(math.huge)
    end,
}

for _ = 1, rounds do
    local task = broker:call('queue.take', {timeout})
    if task then
        print('took ' .. json.encode(task))
        finish[what](task)
    else
        print('no more tasks')
    end
end
broker:close()
os.exit(0)
