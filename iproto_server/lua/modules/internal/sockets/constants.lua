-- Numbers of the operating system by their names, on Linux.
local constants = {}

constants.DOMAIN = {}
for name, number in pairs{
    UNIX = 1, LOCAL = 1, INET = 2, AX25 = 3, IPX = 4, APPLETALK = 5, ATMPVC = 8, X25 = 9, INET6 = 10, NETLINK = 16,
    PACKET = 17,
} do
    constants.DOMAIN['AF_' .. name], constants.DOMAIN['PF_' .. name] = number, number
end
constants.AF_UNIX, constants.AF_INET, constants.AF_INET6 = 1, 2, 10

constants.SO_TYPE = {SOCK_STREAM = 1, SOCK_DGRAM = 2, SOCK_RAW = 3, SOCK_RDM = 4, SOCK_SEQPACKET = 5}
constants.SOCK_STREAM, constants.SOCK_NONBLOCK, constants.SOCK_CLOEXEC = 1, 0x800, 0x80000

constants.protocols = {ip = 0, tcp = 6, udp = 17}

constants.AI_FLAGS = {
    AI_PASSIVE = 0x1, AI_CANONNAME = 0x2, AI_NUMERICHOST = 0x4, AI_V4MAPPED = 0x8, AI_ALL = 0x10, AI_ADDRCONFIG = 0x20,
    AI_IDN = 0x40, AI_CANONIDN = 0x80, AI_NUMERICSERV = 0x400,
}

constants.SEND_FLAGS = {
    MSG_OOB = 0x1, MSG_PEEK = 0x2, MSG_DONTROUTE = 0x4, MSG_TRYHARD = 0x4, MSG_CTRUNC = 0x8, MSG_PROXY = 0x10,
    MSG_TRUNC = 0x20, MSG_DONTWAIT = 0x40, MSG_EOR = 0x80, MSG_WAITALL = 0x100, MSG_FIN = 0x200, MSG_SYN = 0x400,
    MSG_CONFIRM = 0x800, MSG_RST = 0x1000, MSG_ERRQUEUE = 0x2000, MSG_NOSIGNAL = 0x4000, MSG_MORE = 0x8000,
    MSG_WAITFORONE = 0x10000, MSG_FASTOPEN = 0x20000000, MSG_CMSG_CLOEXEC = 0x40000000,
}
constants.MSG_PEEK, constants.MSG_TRUNC, constants.MSG_NOSIGNAL = 0x2, 0x20, 0x4000

-- Types of options: what has no simple value, a number, a text.
local OTHER, NUMBER, TEXT = 0, 1, 2
constants.OTHER, constants.NUMBER, constants.TEXT = OTHER, NUMBER, TEXT

local SOL_SOCKET, TCP = 1, 6
constants.SOL_SOCKET = SOL_SOCKET

local function options(numbers, read_only, types)
    local found = {}
    for name, number in pairs(numbers) do
        found[name] = {iname = number, rw = not read_only[name], type = types[name] or NUMBER}
    end
    return found
end

-- Options by their level.
constants.SO_OPT = {
    [SOL_SOCKET] = options({
        SO_DEBUG = 1, SO_REUSEADDR = 2, SO_TYPE = 3, SO_ERROR = 4, SO_DONTROUTE = 5, SO_BROADCAST = 6, SO_SNDBUF = 7,
        SO_RCVBUF = 8, SO_KEEPALIVE = 9, SO_OOBINLINE = 10, SO_PRIORITY = 12, SO_LINGER = 13, SO_PASSCRED = 16,
        SO_PEERCRED = 17, SO_RCVLOWAT = 18, SO_SNDLOWAT = 19, SO_RCVTIMEO = 20, SO_SNDTIMEO = 21, SO_BINDTODEVICE = 25,
        SO_TIMESTAMP = 29, SO_ACCEPTCONN = 30, SO_SNDBUFFORCE = 32, SO_RCVBUFFORCE = 33, SO_MARK = 36,
        SO_PROTOCOL = 38, SO_DOMAIN = 39,
    }, {
        SO_ACCEPTCONN = true, SO_DOMAIN = true, SO_ERROR = true, SO_LINGER = true, SO_PEERCRED = true,
        SO_PROTOCOL = true, SO_TYPE = true,
    }, {SO_LINGER = OTHER, SO_BINDTODEVICE = TEXT}),
    [TCP] = options({
        TCP_NODELAY = 1, TCP_MAXSEG = 2, TCP_CORK = 3, TCP_KEEPIDLE = 4, TCP_KEEPINTVL = 5, TCP_KEEPCNT = 6,
        TCP_SYNCNT = 7, TCP_LINGER2 = 8, TCP_DEFER_ACCEPT = 9, TCP_WINDOW_CLAMP = 10, TCP_INFO = 11, TCP_QUICKACK = 12,
        TCP_CONGESTION = 13, TCP_MD5SIG = 14, TCP_COOKIE_TRANSACTIONS = 15, TCP_THIN_LINEAR_TIMEOUTS = 16,
        TCP_THIN_DUPACK = 17, TCP_USER_TIMEOUT = 18, TCP_REPAIR = 19, TCP_REPAIR_QUEUE = 20, TCP_QUEUE_SEQ = 21,
        TCP_REPAIR_OPTIONS = 22, TCP_FASTOPEN = 23, TCP_TIMESTAMP = 24, TCP_NOTSENT_LOWAT = 25, TCP_CC_INFO = 26,
        TCP_SAVE_SYN = 27, TCP_SAVED_SYN = 28,
    }, {TCP_INFO = true}, {TCP_INFO = OTHER}),
}

-- Names of the numbers of a table. Where a number has several, the one that matches a pattern.
local function names(numbers, pattern)
    local found = {}
    for name, number in pairs(numbers) do
        if name:find(pattern) then found[number] = name end
    end
    return found
end
constants.domain_names = names(constants.DOMAIN, '^AF_')
constants.domain_names[constants.AF_UNIX] = 'AF_UNIX'
constants.type_names = names(constants.SO_TYPE, '')
constants.protocol_names = {[6] = 'tcp', [17] = 'udp'}

-- The number of a flag, or of several in a list; nil if a name is unknown.
function constants.flags(given, numbers)
    if given == nil then return 0 end
    if type(given) == 'number' then return given end
    local sum = 0
    for _, name in pairs(type(given) == 'table' and given or {given}) do
        if not numbers[name] then return nil end
        sum = bit.bor(sum, numbers[name])
    end
    return sum
end

return constants
