-- Options of sockets.
local ffi = require('ffi')
local constants = require('internal.sockets.constants')
local object = require('internal.sockets.object')

ffi.cdef[[struct iproto_linger { int is_on; int seconds; };]]

local EPROTOTYPE = 91
local TEXT_MAX = 4096
local SOL_SOCKET, TCP, SO_LINGER = constants.SOL_SOCKET, constants.protocols.tcp, 13
local LEVELS = {SOL_SOCKET = SOL_SOCKET, SOL_TCP = TCP, tcp = TCP, ip = constants.protocols.ip}

local library = ffi.C
local text_t, size_t = ffi.typeof('char[?]'), ffi.typeof('uint32_t[1]')
local linger_t = ffi.typeof('struct iproto_linger')
local descriptor, outcome, fail = object.descriptor, object.outcome, object.fail

local options = {}

-- The level's number and what is known of an option; nil if the level is unknown.
local function found(level, name)
    if level == nil then return nil, 'EINVAL' end
    level = type(level) == 'number' and level or LEVELS[level]
    if not level then return nil end
    local option = (constants.SO_OPT[level] or {})[name]
    if not option then error(('Unknown socket option name: %s'):format(tostring(name)), 2) end
    return level, option
end

local function refuse_level(socket, reason)
    fail(socket, reason == 'EINVAL' and 22 or EPROTOTYPE)
    return false
end

function options.set(socket, level, name, value)
    local fd = descriptor(socket)
    local number, option = found(level, name)
    if not number then return refuse_level(socket, option) end
    if not option.rw then error(('Socket option %s is read only'):format(name)) end
    if option.type == constants.TEXT then
        if type(value) ~= 'string' then
            local kind = type(value)
            error(("bad argument #4 to 'setsockopt' (cannot convert '%s' to 'const void *')"):format(kind))
        end
        return outcome(socket, library.iproto_setsockopt(fd, number, option.iname, value, #value) == 0)
    end
    if type(value) == 'boolean' then value = value and 1 or 0 end
    return outcome(socket, object.set_number(fd, number, option.iname, value))
end

local function get_text(socket, fd, level, name)
    local value, size = text_t(TEXT_MAX), size_t(TEXT_MAX)
    if not outcome(socket, library.iproto_getsockopt(fd, level, name, value, size) == 0) then return nil end
    return ffi.string(value, size[0])
end

function options.get(socket, level, name)
    local fd = descriptor(socket)
    local number, option = found(level, name)
    if not number then return refuse_level(socket, option) end
    if option.type == constants.TEXT then return get_text(socket, fd, number, option.iname) end
    if option.type == constants.OTHER then
        error(name == 'SO_LINGER' and 'Use s:linger()' or ('Unsupported socket option: %s'):format(name))
    end
    local value = object.get_number(fd, number, option.iname)
    outcome(socket, value ~= nil)
    return value
end

-- Get how long `close` waits for data to be sent, or set it. Returns whether it is on, and the seconds.
function options.linger(socket, is_on, seconds)
    local fd = descriptor(socket)
    if is_on == nil then
        local value, size = linger_t(), size_t(ffi.sizeof(linger_t))
        local is_done = library.iproto_getsockopt(fd, SOL_SOCKET, SO_LINGER, value, size) == 0
        if not outcome(socket, is_done) then return nil end
        return value.is_on ~= 0, value.seconds
    end
    if seconds == nil then seconds = 0 end
    local value = linger_t(is_on and 1 or 0, seconds)
    local size = ffi.sizeof(linger_t)
    if not outcome(socket, library.iproto_setsockopt(fd, SOL_SOCKET, SO_LINGER, value, size) == 0) then return nil end
    return is_on, seconds
end

return options
