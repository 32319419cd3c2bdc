-- The settings of the module log: `log.cfg`, and `box_api`, by which `box.cfg` sets them.
local _, host = ...

local LEVELS = {fatal = 0, syserror = 1, error = 2, crit = 3, warn = 4, info = 5, verbose = 6, debug = 7}
local LEVEL_NAMES = 'crit,warn,info,debug,syserror,verbose,fatal,error'
local FORMATS = {plain = true, json = true}
local FORMAT_NAMES = 'json,plain'

-- `level` is the number above which events are dropped; `cfg` is `log.cfg`.
local cfg = {level = LEVELS.info, format = 'plain'}
local settings = {LEVELS = LEVELS, level = LEVELS.info, cfg = cfg}
local is_configured = false

-- -- checks: each returns what is wrong, if something is --

local function wrong_level(level)
    if type(level) == 'number' or LEVELS[level] then return nil end
    return type(level) == 'string' and 'expected ' .. LEVEL_NAMES or 'must be a number or a string'
end

local function wrong_format(name, log)
    if not FORMATS[name] then return 'expected ' .. FORMAT_NAMES end
    if name == 'json' and type(log) == 'string' and log:match('^syslog:') then
        return "json can't be used with syslog logger"
    end
end

local function wrong_nonblock(value)
    if value ~= nil and type(value) ~= 'boolean' then return "option must be 'true' or 'false'" end
end

local function wrong_log(log)
    if log ~= nil and type(log) ~= 'string' then return 'must be a string' end
end

-- -- changes --

local function apply_level(level)
    cfg.level = LEVELS[level] or level
    settings.level = math.floor(cfg.level)
    host.log_set_level(settings.level)
end

local function apply_format(name)
    cfg.format = name
    host.log_set_format(name)
end

function settings.set_level(level)
    local wrong = wrong_level(level)
    if wrong then error(wrong, 2) end
    apply_level(level)
end

function settings.set_format(name)
    local wrong = wrong_format(name, cfg.log)
    if wrong then error(wrong, 2) end
    apply_format(name)
end

local FIXED = "can't be set dynamically"

-- What is wrong with the options `log`, `level`, `format` and `nonblock`: the name of the first wrong one, and the reason.
-- Returns nil if nothing is.
function settings.wrong(options)
    local log = options.log
    if log == nil or log == '' then log = cfg.log end
    local why = wrong_nonblock(options.nonblock)
    if why then return 'nonblock', why end
    if is_configured then
        if log ~= cfg.log then return 'log', FIXED end
        if options.nonblock ~= nil and options.nonblock ~= cfg.nonblock then return 'nonblock', FIXED end
    end
    why = options.format ~= nil and wrong_format(options.format, log)
    if why then return 'format', why end
    why = options.level ~= nil and wrong_level(options.level)
    if why then return 'level', why end
    why = wrong_log(log)
    if why then return 'log', why end
end

-- Take the options `log`, `level`, `format` and `nonblock`. Errors are raised at the caller's position.
function settings.configure(options)
    local name, why = settings.wrong(options)
    if name then error(("log.cfg: '%s' %s"):format(name, why), 2) end
    local log = options.log
    if log == nil or log == '' then log = cfg.log end
    if not is_configured and log ~= nil then host.log_open(log) end
    cfg.log = log
    if options.nonblock ~= nil then cfg.nonblock = options.nonblock end
    apply_level(options.level == nil and cfg.level or options.level)
    apply_format(options.format == nil and cfg.format or options.format)
    is_configured = true
end

-- What `box.cfg` calls: its options are `log`, `log_level`, `log_format` and `log_nonblock`.
settings.box_api = {
    -- The value of an option, for `box.cfg`.
    cfg_get = function(name)
        return cfg[name:match('^log_(.*)$') or name]
    end,
    -- Take the options of `box.cfg` that concern the log. Raises errors.
    cfg_set = function(options)
        local own = {log = options.log, nonblock = options.log_nonblock}
        own.level, own.format = options.log_level, options.log_format
        settings.configure(own)
    end,
    cfg_set_log_level = function(level) settings.set_level(level) end,
    cfg_set_log_format = function(name) settings.set_format(name) end,
}

return settings
