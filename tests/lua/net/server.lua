-- A server for connections: at the path in the environment variable SOCKET, with a user, spaces and functions.
box.cfg{listen = 'unix/:' .. os.getenv('SOCKET'), log_level = 1, memtx_memory = 33554432}
box.schema.user.create('user', {password = 'secret'})
box.schema.user.grant('user', 'read,write,execute,create,drop,alter', 'universe')
local space = box.schema.space.create('test', {
    format = {{'id', 'unsigned'}, {name = 'name', type = 'string', is_nullable = true}},
})
space:create_index('pk')
space:create_index('name', {parts = {{2, 'string', is_nullable = true}}, unique = false})
box.schema.space.create('bare')

function echo(...) return ... end
function fail() error('no', 0) end
function refuse() box.error(box.error.PROC_LUA, 'refused') end
function sleep(seconds) require('fiber').sleep(seconds) return 'slept' end
function push(count)
    for number = 1, count do box.session.push(number) end
    return 'pushed'
end
function refill()
    box.space.test:truncate()
    for number = 1, 3 do box.space.test:insert{number, ('abc'):sub(number, number)} end
end
require('fiber').create(function()
    print('ready')
    io.stdout:flush()
end)
