-- The end of the process by os.exit, a signal, or the end of a script: hooks first, in a fiber of their own.
local _, host = ...
local scheduler = require('internal.fibers.scheduler')
local activity = require('internal.program.activity')
local error_report = require('internal.error_report')
local streams = require('internal.program.streams')

-- `hooks` are functions that are called in order, the first one first; they may wait.
local shutdown = {hooks = {}}
local is_begun, own_fiber = false, nil
local NO_MORE = {} -- the error that ends a hook which calls os.exit

local function end_process(status)
    for _, hook in ipairs(shutdown.hooks) do
        local ok, why = pcall(hook)
        if not ok and why ~= NO_MORE then
            local kind, text = error_report(why)
            local fiber = scheduler.current()
            host.log_write(2, kind, nil, 0, fiber.id, fiber.name, nil, text)
        end
    end
    activity.let_run()
    scheduler.stop()
    host.program_end(status)
end

-- End the process with a status, soon. Nothing happens if it is already ending.
function shutdown.begin(status)
    if is_begun then return end
    is_begun = true
    scheduler.start(function()
        own_fiber = scheduler.current()
        own_fiber.name = 'on_shutdown'
        end_process(status)
    end)
end

-- Whether the process is ending.
function shutdown.is_begun()
    return is_begun
end

-- End with an error, without hooks.
function shutdown.fail(status)
    is_begun = true
    scheduler.stop()
    host.program_end(status)
end

local function wait_for_ever()
    while true do scheduler.suspend() end
end

function os.exit(code)
    local status = type(code) == 'number' and code or 0
    shutdown.begin(status)
    if scheduler.current() == own_fiber then error(NO_MORE, 0) end
    pcall(wait_for_ever)
    -- Here this fiber cannot wait, as in a function that C code has called.
    streams.flush()
    host.program_end_at_once(status)
end

return shutdown
