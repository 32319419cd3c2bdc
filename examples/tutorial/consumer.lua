#!/usr/bin/env tarantool
-- Takes tasks, prints them, and acknowledges them: tarantool consumer.lua HOST:PORT [SECONDS]
--
-- It ends when there was no task for some seconds.
if #arg < 1 then error('Usage: consumer.lua HOST:PORT [SECONDS]', 0) end

local connection = require('net.box').connect(arg[1])
local patience = tonumber(arg[2] or 10)

local task = connection:call('queue.take', {patience})
while task do
    print(('task: %s'):format(task.data))
    connection:call('queue.ack', {task.id})
    task = connection:call('queue.take', {patience})
end
connection:close()
os.exit(0)
