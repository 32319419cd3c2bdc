-- Tarantool's module errno: `errno()` is the last error number of C, and `errno.ENOENT` a number by its name.
local _, host = ...
local ffi = require('ffi')

ffi.cdef[[char *iproto_strerror(int number) __asm__("strerror");]]

local NAMES = [[
E2BIG EACCES EADDRINUSE EADDRNOTAVAIL EAFNOSUPPORT EAGAIN EALREADY EBADF EBADMSG EBUSY ECANCELED ECHILD ECONNABORTED
ECONNREFUSED ECONNRESET EDEADLK EDESTADDRREQ EDOM EDQUOT EEXIST EFAULT EFBIG EHOSTUNREACH EIDRM EILSEQ EINPROGRESS
EINTR EINVAL EIO EISCONN EISDIR ELOOP EMFILE EMLINK EMSGSIZE EMULTIHOP ENAMETOOLONG ENETDOWN ENETRESET ENETUNREACH
ENFILE ENOBUFS ENODATA ENODEV ENOENT ENOEXEC ENOLCK ENOLINK ENOMEM ENOMSG ENOPROTOOPT ENOSPC ENOSR ENOSTR ENOSYS
ENOTCONN ENOTDIR ENOTEMPTY ENOTSOCK ENOTSUP ENOTTY ENXIO EOPNOTSUPP EOVERFLOW EPERM EPIPE EPROTO EPROTONOSUPPORT
EPROTOTYPE ERANGE EROFS ESPIPE ESRCH ESTALE ETIME ETIMEDOUT ETXTBSY EWOULDBLOCK EXDEV]]

local numbers = {}
for name in NAMES:gmatch('%S+') do numbers[name] = host.error_number(name) end

local function strerror(number)
    if number == nil then
        number = ffi.errno()
    else
        number = tonumber(number)
        if number == nil then error("bad argument #1 to 'strerror' (cannot convert 'nil' to 'int')") end
    end
    local text = ffi.C.iproto_strerror(number)
    return ffi.string(text)
end

return setmetatable({strerror = strerror}, {
    __index = numbers,
    __newindex = function() error("Can't create new errno constants") end,
    __call = function(_, ...) return ffi.errno(...) end,
})
