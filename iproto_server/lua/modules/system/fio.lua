-- Tarantool's module fio: files and directories.
-- On purpose different: other fibers wait while a function runs; a size that is negative or no number is refused
-- (Tarantool reads for ever, or shows an error of its code); integers of C such as `2LL` are sizes and offsets, which
-- Tarantool takes as 0; copying a file onto itself leaves it as it is, where Tarantool truncates it and does not
-- return; a copy that fails leaves no empty file; files of a tree are copied in the order of the directory.
local _, host = ...
local ffi = require('ffi')
local handles = require('internal.files.file_handle')
local paths = require('internal.files.path_names')
local trees = require('internal.files.directory_tree')

local outcome, integer, c_text = handles.outcome, handles.integer, paths.c_text

ffi.cdef[[
typedef struct {
    size_t count;
    char **paths;
    size_t offset;
    int flags;
    void *functions[5];
} iproto_glob_t;
int iproto_glob(const char *pattern, int flags, void *on_error, iproto_glob_t *found) __asm__("glob");
void iproto_globfree(iproto_glob_t *found) __asm__("globfree");
]]

local fio = {
    abspath = paths.abspath,
    basename = paths.basename,
    copyfile = trees.copyfile,
    copytree = trees.copytree,
    cwd = paths.cwd,
    dirname = paths.dirname,
    listdir = trees.listdir,
    mktree = trees.mktree,
    pathjoin = paths.pathjoin,
    rmtree = trees.rmtree,
}

fio.c = {
    flag = {
        O_APPEND = 0x400, O_ASYNC = 0x2000, O_CLOEXEC = 0x80000, O_CREAT = 0x40, O_DIRECT = 0x4000,
        O_DIRECTORY = 0x10000, O_EXCL = 0x80, O_LARGEFILE = 0, O_NDELAY = 0x800, O_NOATIME = 0x40000, O_NOCTTY = 0x100,
        O_NOFOLLOW = 0x20000, O_NONBLOCK = 0x800, O_PATH = 0x200000, O_RDONLY = 0, O_RDWR = 2, O_SYNC = 0x101000,
        O_TMPFILE = 0x410000, O_TRUNC = 0x200, O_WRONLY = 1,
    },
    mode = {
        S_IRGRP = 32, S_IROTH = 4, S_IRUSR = 256, S_IRWXG = 56, S_IRWXO = 7, S_IRWXU = 448, S_IWGRP = 16, S_IWOTH = 2,
        S_IWUSR = 128, S_IXGRP = 8, S_IXOTH = 1, S_IXUSR = 64,
    },
    seek = handles.whence,
}
if jit.arch == 'arm64' then
    fio.c.flag.O_DIRECT, fio.c.flag.O_DIRECTORY = 0x10000, 0x4000
    fio.c.flag.O_NOFOLLOW, fio.c.flag.O_TMPFILE = 0x8000, 0x404000
end

-- Flags or modes by their names; numbers stand for themselves.
local function combined(given, numbers, what)
    local bits = 0
    for _, each in ipairs(type(given) == 'table' and given or {given}) do
        local number = type(each) == 'number' and each or numbers[each]
        if not number then error(('fio.open(): unknown %s: %s'):format(what, tostring(each))) end
        bits = bit.bor(bits, number)
    end
    return bits
end

function fio.open(path, flags, mode)
    if type(path) ~= 'string' then error('Usage: fio.open(path[, flags[, mode]])') end
    flags, mode = combined(flags, fio.c.flag, 'flag'), combined(mode, fio.c.mode, 'mode')
    local descriptor, why = outcome(nil, host.file_open(c_text(path), flags, bit.band(mode, 4095)))
    if not descriptor then return nil, why end
    return handles.new(descriptor)
end

-- A function of one path.
local function of_path(usage, failed, call)
    return function(...)
        local path = c_text((...))
        if not path then error(usage, 2) end
        return outcome(failed, call(path))
    end
end

-- A function of two paths.
local function of_paths(usage, call)
    return function(...)
        local first, second = ...
        first, second = c_text(first), c_text(second)
        if not first or not second then error(usage, 2) end
        return outcome(false, call(first, second))
    end
end

fio.link = of_paths('Usage: fio.link(target, linkpath)', host.file_link)
fio.readlink = of_path('Usage: fio.readlink(pathname)', nil, host.file_readlink)
fio.rename = of_paths('Usage: fio.rename(oldpath, newpath)', host.file_rename)
fio.rmdir = of_path('Usage: fio.rmdir(pathname)', false, host.directory_remove)
fio.symlink = of_paths('Usage: fio.symlink(target, linkpath)', host.file_symlink)
fio.unlink = of_path('Usage: fio.unlink(pathname)', false, host.file_unlink)

local function status_function(usage, follow)
    return function(path)
        path = c_text(path)
        if not path then error(usage, 2) end
        return handles.status(path, follow)
    end
end
fio.stat = status_function('Usage: fio.stat(pathname)', true)
fio.lstat = status_function('pathname is absent', false)

function fio.mkdir(path, mode)
    path = c_text(path)
    if not path then error('Usage fio.mkdir(pathname[, mode])', 2) end
    return outcome(false, host.directory_make(path, mode == nil and 511 or integer(mode)))
end

function fio.chmod(...)
    local path = c_text((...))
    if not path or select('#', ...) < 2 then error('Usage: fio.chmod(pathname, mode)', 2) end
    return outcome(false, host.file_chmod(path, integer((select(2, ...)))))
end

-- A user's or group's number, of a number or a name; nil if there is none.
local function owner_number(value, by_name)
    if type(value) == 'number' then return integer(value) end
    if type(value) ~= 'string' then return nil end
    return tonumber(value) or by_name(value)
end

function fio.chown(...)
    local path, owner, group = ...
    path = c_text(path)
    if not path or select('#', ...) < 3 then error('Usage: fio.chown(pathname, owner, group)', 2) end
    owner, group = owner_number(owner, host.user_number), owner_number(group, host.group_number)
    if not owner or not group then return nil end
    return outcome(false, host.file_chown(path, owner, group))
end

function fio.truncate(path, size)
    path = c_text(path)
    if not path then error('Usage: fio.truncate(pathname[, newlen])', 2) end
    return outcome(false, host.file_truncate(path, integer(size)))
end

local NOW = -1

function fio.utime(path, atime, mtime)
    if type(path) ~= 'string' then error('Usage: fio.utime(filepath[, atime[, mtime]])') end
    if atime == nil then atime = NOW end
    if mtime == nil then mtime = atime end
    if type(atime) ~= 'number' then error('fio.utime: atime should be a number') end
    if type(mtime) ~= 'number' then error('fio.utime: mtime should be a number') end
    return outcome(false, host.file_utime(c_text(path), atime, mtime))
end

function fio.chdir(path)
    if type(path) ~= 'string' then error('Usage: fio.chdir(path)') end
    return (host.directory_change(c_text(path))) or false
end

-- The mask of new files' modes, which is set if one is given.
function fio.umask(mask)
    if mask == nil then return (host.file_umask(nil)) end
    local number = tonumber(mask)
    if not number then error("bad argument #1 to '?' (cannot convert 'nil' to 'int')", 0) end
    return (host.file_umask(bit.band(number < 0 and math.ceil(number) or math.floor(number), 511)))
end

function fio.sync() return outcome(false, host.file_sync_all()) end

function fio.tempdir() return outcome(nil, host.directory_temporary()) end

local GLOB_NOESCAPE = 0x40
local GLOB_NOSPACE = 1

function fio.glob(pattern)
    pattern = c_text(pattern)
    if not pattern then error('Usage: fio.glob(pattern)', 2) end
    local found = ffi.new('iproto_glob_t')
    local code = ffi.C.iproto_glob(pattern, GLOB_NOESCAPE, nil, found)
    local list = {}
    if code == 0 then
        for place = 0, tonumber(found.count) - 1 do list[place + 1] = ffi.string(found.paths[place]) end
    end
    ffi.C.iproto_globfree(found)
    if code == GLOB_NOSPACE then error('fio.glob: there is not enough memory', 2) end
    return list
end

-- Questions about a path that are false where it does not exist.
local function question(status, method)
    return function(path)
        local found = status(path)
        return found ~= nil and (not method or found[method](found))
    end
end
fio.path = {
    exists = question(fio.stat),
    is_dir = question(fio.stat, 'is_dir'),
    is_file = question(fio.stat, 'is_reg'),
    is_link = question(fio.lstat, 'is_link'),
    lexists = question(fio.lstat),
}

return fio
