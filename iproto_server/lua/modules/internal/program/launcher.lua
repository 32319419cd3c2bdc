-- Runs what the command line says, in a fiber of its own, and ends the process when nothing is left to do.
local _, host = ...
local scheduler = require('internal.fibers.scheduler')
local activity = require('internal.program.activity')
local error_report = require('internal.error_report')
local shutdown = require('internal.program.shutdown')
local streams = require('internal.program.streams')
local tarantool = require('tarantool')

local FIBERS_BEFORE = 2
local FATAL, ERROR, CRIT = 0, 2, 3 -- levels of the log

local function take_steps(steps)
    for _, step in ipairs(steps) do
        local kind, text = unpack(step)
        if kind == 'l' then
            local ok, module = pcall(require, text) -- by pcall, its errors have no position in this file
            if not ok then error(module, 0) end
            _G[text] = module
        else
            local chunk, why = loadstring(text, '=(command line)')
            if not chunk then error(why, 0) end
            chunk()
        end
    end
end

-- The chunk of the script, or nil if there is none.
local function script_of(line)
    local path = line.script
    if path == '-' then path = nil end
    if path == nil and host.program_is_terminal(0) then return nil end
    local chunk, why = loadfile(path)
    if not chunk then error(why, 0) end
    return chunk
end

local function open_console()
    host.log_write(
        CRIT, ("%s %s\ntype 'help' for interactive help"):format(tarantool.package, tarantool.version)
    )
    local ok, console = pcall(require, 'console')
    if not ok then error(console, 0) end
    console.start()
end

local function execute(line)
    take_steps(line.steps)
    local chunk = script_of(line)
    if chunk then chunk(unpack(line.arguments)) else line.is_interactive = true end
    if line.is_interactive then open_console() end
end

local function report(fiber, why)
    if fiber.is_cancelled and tostring(why) == 'fiber is cancelled' then
        host.log_write(ERROR, "fiber `sched' has been cancelled")
        host.log_write(ERROR, "fiber `sched': exiting")
        return
    end
    local kind, text = error_report(why)
    host.log_write(ERROR, kind, nil, 0, nil, nil, nil, text)
end

local function after(line, ok, why)
    local fiber = scheduler.current()
    if not ok then
        activity.let_run()
        report(fiber, why)
        host.log_write(FATAL, 'fatal error, exiting the event loop')
        return shutdown.fail(1)
    end
    local is_left = not line.is_interactive and (activity.is_any() or host.program_is_serving())
    if shutdown.is_begun() then return end
    if is_left and not host.program_is_stopping() then
        host.log_write(CRIT, 'entering the event loop')
    else
        shutdown.begin(0)
    end
end

local function title_of(path)
    return path and path:match('[^/]*$') or 'interactive'
end

local function taken(count, place, ...)
    local steps, words = {}, {...}
    for n = 1, count do
        steps[n] = {words[place], words[place + 1]}
        place = place + 2
    end
    local arguments = {}
    for n = place, #words do arguments[#arguments + 1] = words[n] end
    return steps, arguments
end

-- Start. `executable` is the path of this program, `name` what it was started as, `script` a path, '-' or nil; behind the
-- number of steps follow these, each as 'e' and a chunk or 'l' and a module, and the arguments of the script.
local function start(executable, name, script, is_interactive, step_count, ...)
    local steps, arguments = taken(step_count, 1, ...)
    local line = {script = script, is_interactive = is_interactive, steps = steps, arguments = arguments}
    streams.buffer()
    arg = {[-1] = executable, [0] = script or name, unpack(arguments)}
    -- Scripts know the number of their fiber: in Tarantool, two others come before it.
    for _ = 1, FIBERS_BEFORE do scheduler.start(function() end) end
    scheduler.start(function()
        scheduler.current().name = title_of(script)
        local ok, why = pcall(after, line, pcall(execute, line))
        if not ok then
            io.stderr:write('the program has failed: ', tostring(why), '\n')
            shutdown.fail(1)
        end
    end)
end

return {start = start, flush = streams.flush}
