-- A database that guest may change, for tests of what Lua code may take.
box.cfg{}
box.once('schema', function()
    box.schema.space.create('numbers'):create_index('primary')
    box.schema.user.grant('guest', 'super')
end)
numbers = box.space.numbers
fiber = require('fiber')
