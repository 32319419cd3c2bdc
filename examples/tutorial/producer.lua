#!/usr/bin/env tarantool
-- Puts a task: tarantool producer.lua HOST:PORT TEXT
if #arg < 2 then error('Usage: producer.lua HOST:PORT TEXT', 0) end

local connection = require('net.box').connect(arg[1])
print(require('json').encode(connection:call('queue.put', {arg[2]})))
connection:close()
os.exit(0)
