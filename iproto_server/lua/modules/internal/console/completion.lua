-- Completion of names: globals, keywords, fields and methods. No function of a metatable is called.
local type, next, rawget = type, next, rawget
local metatable_of = debug.getmetatable

local METATABLES_MAX = 20 -- in a chain of `__index`

local KEYWORDS = {
    'and', 'break', 'do', 'else', 'elseif', 'end', 'false', 'for', 'function', 'if', 'in', 'local', 'nil', 'not', 'or',
    'repeat', 'return', 'then', 'true', 'until', 'while',
}

-- The value whose fields a value has, too.
local function inherited(value)
    local meta = metatable_of(value)
    return type(meta) == 'table' and rawget(meta, '__index') or nil
end

local function field(value, name)
    for _ = 1, METATABLES_MAX do
        if type(value) == 'table' then
            local found = rawget(value, name)
            if type(found) ~= 'nil' then return found end
        elseif type(value) == 'nil' or type(value) == 'cdata' then
            return nil
        end
        value = inherited(value)
    end
end

-- Add the fields of a value that begin with a text.
local function add_fields(found, value, before, beginning, only_functions)
    for _ = 1, METATABLES_MAX do
        if type(value) == 'table' then
            for name, each in next, value do
                local is_name = type(name) == 'string' and name:find('^[%a_][%w_]*$')
                    and name:sub(1, #beginning) == beginning and (name:sub(1, 1) ~= '_' or beginning ~= '')
                local is_function = type(each) == 'function'
                if is_name and (is_function or not only_functions) then
                    found[#found + 1] = before .. name .. (is_function and '(' or '')
                end
            end
        elseif type(value) == 'nil' or type(value) == 'cdata' then
            return
        end
        local parent = inherited(value)
        if rawequal(parent, value) then return end
        value = parent
    end
end

local function common_beginning(texts)
    local first = texts[1]
    local size = #first
    for place = 2, #texts do
        local each = texts[place]
        while first:sub(1, size) ~= each:sub(1, size) do size = size - 1 end
    end
    return first:sub(1, size)
end

local function candidates(word)
    local found = {}
    local path, separator, beginning = word:match('^(.-)([.:]?)([%w_]*)$')
    if path == nil then return found end
    if separator == '' then
        if path ~= '' then return found end
        for _, each in ipairs(KEYWORDS) do
            if word ~= '' and each:sub(1, #word) == word then found[#found + 1] = each .. ' ' end
        end
        add_fields(found, _G, '', word, false)
        return found
    end
    if not (path .. '.'):find('^[%a_]') then return found end
    local value = _G
    for name in (path .. '.'):gmatch('([^.]*)%.') do
        if not name:find('^[%a_][%w_]*$') then return found end
        value = field(value, name)
    end
    add_fields(found, value, path .. separator, beginning, separator == ':')
    return found
end

-- The completions of the first `size` bytes of a text: what all have in common, then each; nil if there are none.
return function(text, size)
    if size < 0 or size > #text then return nil end
    local found = candidates(text:sub(1, size))
    if #found == 0 then return nil end
    table.sort(found)
    table.insert(found, 1, common_beginning(found))
    return found
end
