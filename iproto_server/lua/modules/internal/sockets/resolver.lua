-- Addresses of host names.
--
-- The functions of Python are `address_of_number(host, service, family, type, protocol, flags)`, which answers at once,
-- and `resolve_address(done, …)`, see `network.py`.
local _, host_functions = ...
local ffi = require('ffi')
local scheduler = require('internal.fibers.scheduler')
local constants = require('internal.sockets.constants')

local EIO, EINVAL, EPROTOTYPE, ETIMEDOUT = 5, 22, 91, 110
local FIELDS = 6 -- of an address, in what Python answers

local resolver = {}

local function fail(number)
    ffi.errno(number)
    return nil
end

-- The number of a name, or 0 without one; nil if the name is unknown.
local function number_of(given, numbers)
    if given == nil then return 0 end
    return type(given) == 'number' and given or numbers[given]
end

local function addresses_of(values)
    local list = {}
    for place = 1, values.n, FIELDS do
        local family, itype, protocol, canonname, host, port = unpack(values, place, place + FIELDS - 1)
        list[#list + 1] = {
            family = constants.domain_names[family] or family, type = constants.type_names[itype] or itype,
            protocol = constants.protocol_names[protocol] or protocol, canonname = canonname, host = host, port = port,
        }
    end
    return list
end

local function packed(...)
    return {n = select('#', ...), ...}
end

-- Wait for the answer of Python. Returns nil if there is none in time, or the fiber is cancelled.
local function answer_of(timeout, ...)
    local values = packed(host_functions.address_of_number(...))
    if values.n == 0 or values[1] ~= nil then return values end
    local fiber
    fiber, values = scheduler.current(), nil
    local function finish(...)
        values = packed(...)
        scheduler.wake(fiber)
    end
    local arguments = packed(...)
    scheduler.run_outside(function()
        host_functions.resolve_address(finish, unpack(arguments, 1, arguments.n))
    end)
    local end_at = timeout and scheduler.monotonic() + timeout
    while not values and not fiber.is_cancelled do
        if not scheduler.suspend(end_at and math.max(end_at - scheduler.monotonic(), 0)) then break end
    end
    return values
end

-- Find the addresses of a host and a service. Returns a list, or nil and errno is set.
function resolver.find(host, service, timeout, options)
    if type(timeout) == 'table' then timeout, options = nil, timeout end
    if type(timeout) ~= 'number' then timeout = nil end
    if type(options) ~= 'table' then options = {} end
    local family, itype = number_of(options.family, constants.DOMAIN), number_of(options.type, constants.SO_TYPE)
    local flags = constants.flags(options.flags, constants.AI_FLAGS)
    if not family or not itype or not flags then return fail(EINVAL) end
    local protocol = number_of(options.protocol, constants.protocols)
    if not protocol then return fail(EPROTOTYPE) end
    if type(host) ~= 'string' or host == '*' then host = nil end
    local values = answer_of(timeout, host, service == nil and '0' or tostring(service), family, itype, protocol, flags)
    if not values then return fail(ETIMEDOUT) end
    if values.n == 0 then return fail(EIO) end
    return addresses_of(values)
end

return resolver
