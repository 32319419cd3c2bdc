-- An open file: a C struct with the methods of Tarantool's module fio.
local _, host = ...
local ffi = require('ffi')
local c_text = require('internal.files.path_names').c_text
local system_error = require('internal.system_error')

ffi.cdef[[
struct fio_handle { int fh; };
int iproto_close(int descriptor) __asm__("close");
]]

local handle_t = ffi.typeof('struct fio_handle')
local char_pointer, const_char_pointer = ffi.typeof('char *'), ffi.typeof('const char *')
local AT_POSITION = -1

local WHENCE = {SEEK_SET = 0, SEEK_CUR = 1, SEEK_END = 2, SEEK_DATA = 3, SEEK_HOLE = 4}

local handles = {whence = WHENCE}

-- A result of a function of Python: itself, or `failed` and an error.
local function outcome(failed, result, number, text)
    if result == nil then return failed, system_error('fio: ' .. text, number) end
    return result
end
handles.outcome = outcome

-- A number without its fraction; what is no number is 0.
local function integer(value)
    local number = tonumber(value)
    if not number or number ~= number then return 0 end
    number = math.max(-2 ^ 63, math.min(2 ^ 63 - 1024, number))
    return number < 0 and math.ceil(number) or math.floor(number)
end
handles.integer = integer

local function is_pointer(value)
    return ffi.istype(char_pointer, value) or ffi.istype(const_char_pointer, value)
end

-- A size that may be read.
local function checked_size(value, method, usage)
    local number = type(value) ~= 'string' and tonumber(value)
    if not number or number < 0 then
        local wrong = 'fio: %s: the size must be a number of bytes, not %s; usage: %s'
        error(wrong:format(method, tostring(value), usage), 3)
    end
    return integer(number)
end

-- The status of a descriptor or a path.
local STATUS_FIELDS = {
    'dev', 'inode', 'mode', 'nlink', 'uid', 'gid', 'rdev', 'size', 'blksize', 'blocks', 'atime', 'mtime', 'ctime',
}
local KINDS = {
    is_blk = 0x6000, is_chr = 0x2000, is_dir = 0x4000, is_fifo = 0x1000, is_link = 0xA000, is_reg = 0x8000,
    is_sock = 0xC000,
}
local KIND_MASK = 0xF000

local status_methods = {}
for name, kind in pairs(KINDS) do
    status_methods[name] = function(status)
        if type(status) ~= 'table' then error(('usage: stat:%s()'):format(name), 2) end
        return bit.band(tonumber(status.mode) or 0, KIND_MASK) == kind
    end
end
local status_metatable = {__index = status_methods}

local function status_of(first, ...)
    if first == nil then return outcome(nil, first, ...) end
    local values = {first, ...}
    local status = {}
    for place, name in ipairs(STATUS_FIELDS) do status[name] = values[place] end
    return setmetatable(status, status_metatable)
end

function handles.status(file, follow)
    if type(file) == 'string' then file = c_text(file) end
    return status_of(host.file_status(file, follow))
end

local methods = {}

-- Read into memory, or return the bytes.
local function read(self, buffer, size, offset)
    if size == 0 then return buffer and 0 or '' end
    if not buffer then return outcome(nil, host.file_read(self.fh, size, offset)) end
    local data, why = outcome(nil, host.file_read(self.fh, size, offset))
    if not data then return nil, why end
    ffi.copy(buffer, data, #data)
    return #data
end

function methods:read(buffer, size)
    local descriptor = self.fh
    if not is_pointer(buffer) then buffer, size = nil, buffer end
    if size == nil and not buffer then
        local status, why = handles.status(descriptor, true)
        if not status then return nil, why end
        if status:is_reg() and status.size == 0 then return '' end
        return outcome(nil, host.file_read(descriptor, nil, AT_POSITION))
    end
    return read(self, buffer, checked_size(size, 'read', 'fh:read([buffer, ][size])'), AT_POSITION)
end

function methods:pread(buffer, size, offset)
    if not is_pointer(buffer) then buffer, size, offset = nil, buffer, size end
    size = checked_size(size, 'pread', 'fh:pread([buffer, ]size, offset)')
    return read(self, buffer, size, integer(offset))
end

-- Bytes to write: of memory with a size, or the text of anything else.
local function bytes_of(data, size)
    if is_pointer(data) then return ffi.string(data, size) end
    return tostring(data)
end

function methods:write(data, size)
    if is_pointer(data) then size = checked_size(size, 'write', 'fh:write(buffer, size)') end
    return outcome(false, host.file_write(self.fh, bytes_of(data, size), AT_POSITION))
end

function methods:pwrite(data, size, offset)
    if is_pointer(data) then
        size = checked_size(size, 'pwrite', 'fh:pwrite(buffer, size, offset)')
    else
        size, offset = nil, size
    end
    return outcome(false, host.file_write(self.fh, bytes_of(data, size), integer(offset)))
end

function methods:seek(offset, whence)
    if type(whence) == 'string' then
        local number = WHENCE[whence]
        if not number then error('fio.seek(): unknown whence: ' .. whence) end
        whence = number
    end
    return (host.file_seek(self.fh, integer(offset), integer(whence))) or -1
end

function methods:truncate(size)
    return outcome(false, host.file_truncate(self.fh, integer(size)))
end

function methods:fsync() return outcome(false, host.file_sync(self.fh, false)) end

function methods:fdatasync() return outcome(false, host.file_sync(self.fh, true)) end

function methods:stat()
    local descriptor = self.fh
    return handles.status(descriptor, true)
end

function methods:close()
    local ok, why = outcome(false, host.file_close(self.fh))
    if not ok then return false, why end
    self.fh = -1
    return true
end

ffi.metatype(handle_t, {
    __index = methods,
    __gc = function(self)
        if self.fh >= 0 then ffi.C.iproto_close(self.fh) end
    end,
})

function handles.new(descriptor) return ffi.new(handle_t, descriptor) end

return handles
