-- Statements of a console: commands with a backslash, Lua and SQL.
local commands = require('internal.console.commands')
local output = require('internal.console.output')
local settings = require('internal.console.settings')

local evaluation = {}

local function packed(ok, ...)
    return ok, {n = select('#', ...), ...}
end

local function run_lua(line)
    -- A statement may be an expression.
    local chunk = loadstring('return ' .. line)
    local why
    if not chunk then
        chunk, why = loadstring(line)
        if not chunk then error(why, 0) end
    end
    return chunk()
end

local function run_sql(line)
    return box.execute(line)
end

local function run(line)
    if line:sub(1, 1) == '\\' then return commands.run(line) end
    if settings.current().language == 'sql' then return run_sql(line) end
    return run_lua(line)
end

-- Run a statement. Returns what a console shows, or no value if the console is to end.
function evaluation.eval(line)
    if type(line) == 'nil' then return nil end
    line:sub(1, 1) -- what has no such method is refused with Lua's own error
    local ok, results = packed(pcall(run, line))
    local format = settings.current().format
    if not ok then return output.failure(format, results[1]) end
    if rawequal(results[1], commands.QUIT) then return end
    return output.values(format, results)
end

-- Whether a statement goes on in the next line.
function evaluation.is_incomplete(text)
    if text:sub(1, 1) == '\\' or loadstring('return ' .. text) then return false end
    local chunk, why = loadstring(text)
    return not chunk and why:sub(-12) == "near '<eof>'"
end

return evaluation
