-- Commands of a console that begin with a backslash. One returns its values, or raises an error without a position.
local output = require('internal.console.output')
local settings = require('internal.console.settings')

local commands = {}

local HELP = [[
To get help, see the Tarantool manual at https://tarantool.io/en/doc/
To start the interactive Tarantool tutorial, type 'tutorial()' here.

Available backslash commands:

  \set language <language>   -- set language (lua or sql)
  \set output <format>       -- set output format (lua[,line|block] or yaml)
  \set delimiter <delimiter> -- set expression delimiter
  \help                      -- show this screen
  \quit                      -- quit interactive console
]]

local LANGUAGES = {lua = true, sql = true}

-- What `run` returns for `\quit`.
commands.QUIT = {}

local parameters = {}

function parameters.language(value)
    if value == nil then return {language = settings.current().language} end
    if not LANGUAGES[value] then
        error(('Invalid language "%s", supported languages: lua and sql.'):format(value), 0)
    end
    settings.current().language = value
    return true
end

function parameters.output(value)
    if value == nil then error('Specify output format: lua or yaml.', 0) end
    local format, why = output.read_format(value)
    if not format then error(why, 0) end
    settings.current().format = format
    return true
end

function parameters.delimiter(value)
    commands.set_delimiter(value or '')
end

local function help()
    return {HELP}
end

local function quit()
    return commands.QUIT
end

local function set(name, value)
    if name == nil then error('Invalid set syntax, type \\help for help', 0) end
    local parameter = parameters[name]
    if not parameter then error('Unknown parameter: ' .. name, 0) end
    return parameter(value)
end

for short, name in pairs{l = 'language', lang = 'language', o = 'output', d = 'delimiter', delim = 'delimiter'} do
    parameters[short] = parameters[name]
end

local by_name = {[''] = help, h = help, help = help, s = set, set = set, q = quit, quit = quit}

-- Run a command. `line` begins with a backslash.
function commands.run(line)
    local words = {}
    for word in line:sub(2):gmatch('%S+') do words[#words + 1] = word end
    local command = by_name[words[1] or '']
    if not command then error(('Invalid command \\%s. Type \\help for help.'):format(words[1]), 0) end
    return command(words[2], words[3])
end

return commands
