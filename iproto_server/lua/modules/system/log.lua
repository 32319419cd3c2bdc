-- Tarantool's module log, see https://www.tarantool.io/en/doc/2.6/reference/reference_lua/log/.
-- On purpose different: tables that are no objects of JSON are messages in the format json, so that its lines are JSON;
-- a table that is logged keeps all its fields; a destination that cannot be opened is an error, not the end of the
-- process.
local _, host = ...
local json = require('json')
local scheduler = require('internal.fibers.scheduler')
local settings = require('internal.log_settings')

local format, getinfo, next_key = string.format, debug.getinfo, next
local SCHEDULER_ID = 1 -- of what runs outside of fibers

-- Fields of the line itself, which a table cannot have in it.
local RESERVED = {
    level = true, pid = true, cord_name = true, fiber_id = true, fiber_name = true, file = true, line = true,
}

local function without_reserved(object)
    local has_reserved = false
    for name in pairs(RESERVED) do has_reserved = has_reserved or rawget(object, name) ~= nil end
    if not has_reserved then return object end
    local copy = setmetatable({}, getmetatable(object))
    for name, value in next_key, object do
        if not RESERVED[name] then rawset(copy, name, value) end
    end
    return copy
end

-- The text of a message, and the members of an object that it shows.
local function text_of(message)
    if type(message) ~= 'table' then return tostring(message) end
    local text = json.encode(without_reserved(message))
    return text, text:match('^{(.*)}$') or text == '[]' and '' or nil
end

-- `level` is Tarantool's; the statement that logs is two functions up.
local function say(level, message, ...)
    if level > settings.level then return end
    local members
    if select('#', ...) > 0 then
        local ok, text = pcall(format, message, ...)
        if not ok then error(text, 3) end
        message = text
    else
        message, members = text_of(message)
    end
    local info = getinfo(3, 'Sl')
    local fiber = scheduler.current()
    local is_fiber = fiber.id ~= SCHEDULER_ID
    host.log_write(
        level, message:match('^[^%z]*'), info and info.short_src or 'eval', info and info.currentline or 0,
        is_fiber and fiber.id or nil, is_fiber and fiber.name or nil, members
    )
end

local function at(level)
    return function(message, ...) say(level, message, ...) end
end

local log = {
    error = at(settings.LEVELS.error),
    warn = at(settings.LEVELS.warn),
    info = at(settings.LEVELS.info),
    verbose = at(settings.LEVELS.verbose),
    debug = at(settings.LEVELS.debug),
    box_api = settings.box_api,
    rotate = function() host.log_rotate() end,
    pid = host.log_process_id,
}

function log.level(level)
    settings.set_level(level)
    log.debug('log: level set to %s', settings.level)
end

function log.log_format(name)
    settings.set_format(name)
    log.debug("log: format set to '%s'", name)
end

log.cfg = setmetatable(settings.cfg, {
    __call = function(_, options)
        if options == nil then options = {} end
        settings.configure(options)
        if options.level ~= nil then log.debug('log: level set to %s', settings.level) end
        if options.format ~= nil then log.debug("log: format set to '%s'", options.format) end
    end,
})

local function logger_pid()
    log.warn('logger_pid() is deprecated, please use pid() instead')
    return host.log_process_id()
end

return setmetatable(log, {
    __index = {logger_pid = logger_pid},
    __serialize = function(module)
        local shown = {}
        for name, value in pairs(module) do
            if name ~= 'box_api' then shown[name] = value end
        end
        return shown
    end,
})
