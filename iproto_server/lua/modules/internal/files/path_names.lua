-- Paths as texts: joining, parts, and absolute paths. These functions look at no files but for the current directory.
local _, host = ...
local ffi = require('ffi')

ffi.cdef'char *iproto_dirname(char *path) __asm__("dirname");'

local paths = {}

-- A path as C functions take it: a text or a number, up to the first NUL; nil for other values.
function paths.c_text(value)
    if type(value) == 'number' then return tostring(value) end
    return type(value) == 'string' and value:match('^[^%z]*') or nil
end

function paths.pathjoin(...)
    local parts = {}
    for place = 1, select('#', ...) do
        local value = select(place, ...)
        if value == nil then error(('fio.pathjoin(): undefined path part %d'):format(place)) end
        local part = tostring(value)
        if #parts > 0 then part = part:gsub('^/+', '') end
        part = part:gsub('/+', '/')
        if part ~= '/' then part = part:gsub('/$', '') end
        if part ~= '' then parts[#parts + 1] = part end
    end
    if #parts == 0 then return '.' end
    return (table.concat(parts, '/'):gsub('/+', '/'))
end

function paths.basename(path, suffix)
    if type(path) ~= 'string' then error('Usage: fio.basename(path[, suffix])') end
    local name = path:match('[^/]*$')
    local ending = suffix == nil and '' or tostring(suffix)
    if ending ~= '' and name:sub(-#ending) == ending then return name:sub(1, -#ending - 1) end
    return name
end

function paths.dirname(path)
    if type(path) ~= 'string' then error('Usage: fio.dirname(path)') end
    local copy = ffi.new('char[?]', #path + 1, path)
    return ffi.string(ffi.C.iproto_dirname(copy))
end

function paths.cwd()
    return (host.directory_current())
end

function paths.abspath(path)
    if path == nil then error('Usage: fio.abspath(path)') end
    if type(path) == 'number' then path = tostring(path) end
    if type(path) ~= 'string' then
        error(("bad argument #1 to 'sub' (string expected, got %s)"):format(type(path)))
    end
    if path:sub(1, 1) ~= '/' then path = paths.pathjoin(paths.cwd(), path) end
    local parts = {}
    for part in path:gmatch('[^/]+') do
        if part == '..' then
            parts[#parts] = nil
        elseif part ~= '.' then
            parts[#parts + 1] = part
        end
    end
    return '/' .. table.concat(parts, '/')
end

return paths
