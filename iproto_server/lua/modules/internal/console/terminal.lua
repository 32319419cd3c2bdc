-- Consoles on the terminal, or on a standard input that is none.
local _, host = ...
local evaluation = require('internal.console.evaluation')
local scheduler = require('internal.fibers.scheduler')

local terminal = {}
local is_edited = false

-- Read a line without its end. Returns nil at the end of the input.
local function read_line(prompt)
    if not is_edited then io.write(prompt) end
    io.flush()
    local line = scheduler.await(host.terminal_read, prompt)
    if not is_edited and line then io.write(line, '\n') end
    return line
end

-- The text before a delimiter, or nil.
local function before_delimiter(text, delimiter)
    if text:sub(-#delimiter) == delimiter then return text:sub(1, -#delimiter - 1) end
end

-- Read a statement, which may have several lines. Returns nil at the end of the input.
function terminal.read(self)
    local prompt = self.prompt .. '> '
    local next_prompt = (' '):rep(#prompt - 2) .. '> '
    local text
    while true do
        local line = read_line(text and next_prompt or prompt)
        if line == nil then return nil end
        text = text and text .. '\n' .. line or line
        if self.delimiter == '' or text:sub(1, 1) == '\\' then
            host.terminal_remember(line)
            if not evaluation.is_incomplete(text) then return text end
        else
            local statement = before_delimiter(text, self.delimiter)
            host.terminal_remember(before_delimiter(line, self.delimiter) or line)
            if statement then return statement end
        end
    end
end

-- The completions of a word, without what all have in common.
local function completions(self, ...)
    if not self.ac then return end
    local found = self:completion(...)
    if type(found) == 'table' then return unpack(found, 2) end
end

-- Start using the terminal for a console.
function terminal.open(self)
    local function complete(found, ...)
        scheduler.start(function(...)
            local results = {pcall(completions, self, ...)}
            if results[1] then found(unpack(results, 2)) else found() end
        end, ...)
    end
    scheduler.await(host.terminal_load)
    is_edited = host.terminal_open(self.history_file, complete)
end

function terminal.close()
    host.terminal_close()
end

return terminal
