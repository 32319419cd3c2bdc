-- The application of the crash test in Lua: the queue that benchmarks compare with, and the spaces of application.lua.
box.cfg{}

local folder = debug.getinfo(1, 'S').source:match('^@(.*)/')

queue = dofile(folder .. '/../../../bench/peers/queue.lua')
dofile(folder .. '/application.lua')
