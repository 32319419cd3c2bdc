-- The tutorial's queue with a console: `make run APP=examples/tutorial/init.lua`.
--
-- Change queue.lua while it runs, and type `package.reload()`.
require('strict').on()
fiber = require('fiber')
require('package.reload')

box.cfg{listen = '127.0.0.1:3301'}
box.once('guest', box.schema.user.grant, 'guest', 'super', nil, nil, {if_not_exists = true})

queue = require('queue')

-- A reload runs this file again, in the fiber of the console.
local is_first_load = package.reload.count == 1
if is_first_load then
    require('console').start()
    os.exit(0)
end
