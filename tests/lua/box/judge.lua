-- Runs snippets of standard input in a database of a folder, which the environment names with the path of described.lua.
box.cfg{work_dir = os.getenv('FOLDER'), log_level = 'error', wal_mode = 'none'}
local run = dofile(os.getenv('DESCRIBED'))
while true do
    local size = io.read('*n')
    if not size then os.exit(0) end
    io.read(1)
    local described = run(io.read(size))
    io.write(#described, '\n', described)
    io.flush()
end
