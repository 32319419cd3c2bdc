-- The buffers of C's files.
local _, host = ...
local ffi = require('ffi')

-- By names of its own, so that scripts may declare C's as they like.
ffi.cdef[[
int iproto_server_fflush(void *) __asm__("fflush");
int iproto_server_setvbuf(void *, char *, int, size_t) __asm__("setvbuf");
void *iproto_server_malloc(size_t) __asm__("malloc");
]]
local FULL, LINE, SIZE = 0, 1, 65536 -- of setvbuf

local streams = {}

local function set_buffer(file, mode)
    ffi.C.iproto_server_setvbuf(file, ffi.C.iproto_server_malloc(SIZE), mode, SIZE)
end

-- Give standard input and output buffers, which Python has taken from them if PYTHONUNBUFFERED is set. These are never
-- freed, because C writes to them up to the end.
function streams.buffer()
    set_buffer(io.stdin, FULL)
    set_buffer(io.stdout, host.program_is_terminal(1) and LINE or FULL)
end

-- Write what all files hold back.
function streams.flush()
    ffi.C.iproto_server_fflush(nil)
end

return streams
