-- Runs in a real Tarantool: reads snippets from its standard input, each behind a line with its size, and writes their
-- descriptions in the same way.
local run = dofile(arg[1])
io.stdout:setvbuf('no')
while true do
    local size = io.read('*l')
    if not size then os.exit(0) end
    local answer = run(size == '0' and '' or io.read(tonumber(size)))
    io.write(#answer, '\n', answer)
end
