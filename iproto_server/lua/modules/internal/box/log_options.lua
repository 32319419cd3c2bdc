-- The options of `box.cfg` that concern the log, of a process whose log Lua code sets; else it is the server's.
local _, host = ...
local failure = require('internal.box.failure')
local fio = require('fio')
local settings = require('internal.log_settings')

local WRONG, PROC_LUA = 59, 32
local NAMES = {log = 'log', level = 'log_level', format = 'log_format', nonblock = 'log_nonblock'}

local log_options = {}

local function own(found)
    return {log = found.log, level = found.log_level, format = found.log_format, nonblock = found.log_nonblock}
end

-- Raise an error if one of them is wrong.
function log_options.check(found)
    if not host.log_is_own() then return end
    local name, why = settings.wrong(own(found))
    if name then failure.raise(WRONG, ("Incorrect value for option '%s': %s"):format(NAMES[name], why)) end
end

-- Take those among the options. Returns the others.
function log_options.take(found)
    if not host.log_is_own() then return found end
    local ok, why = pcall(settings.configure, own(found))
    if not ok then failure.raise(PROC_LUA, (tostring(why):gsub('^builtin/[^:]+:%d+: ', ''))) end
    return log_options.without(found)
end

-- Options without those that Python does not know.
function log_options.without(options)
    if not host.log_is_own() then return options end
    local others = {}
    for name, value in pairs(options) do others[name] = value end
    for _, name in pairs(NAMES) do others[name] = nil end
    return others
end

-- The fields of `box.cfg` that `log.cfg` has set before.
function log_options.shown()
    return host.log_is_own() and {log = settings.cfg.log} or {}
end

-- Enter the option `work_dir`, since the log may be there. Returns the options as they are from there.
function log_options.enter_folder(found)
    if not host.log_is_own() or found.work_dir == nil then return found end
    if not fio.mktree(found.work_dir) or not fio.chdir(found.work_dir) then return found end
    local others = {}
    for name, value in pairs(found) do others[name] = value end
    others.work_dir = fio.cwd()
    return others
end

return log_options
