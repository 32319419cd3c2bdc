-- The tutorial's producer: puts one task and shows it.
-- Usage: tarantool producer.lua HOST:PORT WORD...

local json = require('json')
local net_box = require('net.box')

local address = table.remove(arg, 1)
if #arg == 0 then
    error('give the words of the task', 0)
end

local broker = net_box.connect(address)
local task = broker:call('queue.put', {{unpack(arg)}})
print('put ' .. json.encode(task))
broker:close()
os.exit(0)
