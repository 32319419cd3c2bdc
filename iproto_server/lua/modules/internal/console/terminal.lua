-- Consoles on the terminal, or on the standard input.
local _, host = ...
local evaluation = require('internal.console.evaluation')
local scheduler = require('internal.fibers.scheduler')

local terminal = {}

-- Read a line without its end. Returns nil at the end of the input.
local function read_line(self, prompt)
    local function complete(word, first, last)
        return self.ac and self:completion(word, first, last) or nil
    end
    return scheduler.await(host.terminal_read, prompt, complete)
end

-- The statement in lines before a delimiter, or nil.
local function before_delimiter(text, delimiter)
    if text:sub(-#delimiter) == delimiter then return text:sub(1, -#delimiter - 1) end
end

-- Read a statement, which may have several lines. Returns nil at the end of the input.
function terminal.read(self)
    local prompt = self.prompt .. '> '
    local next_prompt = (' '):rep(#prompt - 2) .. '> '
    local text
    while true do
        local line = read_line(self, text and next_prompt or prompt)
        if line == nil then return nil end
        text = text and text .. '\n' .. line or line
        if self.delimiter == '' then
            host.terminal_remember(line)
            if not evaluation.is_incomplete(text) then return text end
        else
            local statement = before_delimiter(text, self.delimiter)
            host.terminal_remember(before_delimiter(line, self.delimiter) or line)
            if statement then return statement end
        end
    end
end

-- Start using the terminal, with a file of the lines that were entered.
function terminal.open(history_file)
    host.terminal_open(history_file)
end

function terminal.close()
    host.terminal_close()
end

return terminal
