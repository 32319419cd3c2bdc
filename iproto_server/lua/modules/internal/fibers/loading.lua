-- `require` and `dofile` in Lua: a fiber may wait in what they load.
local missing = require('internal.missing')
local loaded = package.loaded

local LOADING = newproxy() -- in the place of a module that is being loaded

local function checked_name(...)
    local name = ...
    if type(name) == 'number' then return tostring(name) end
    if type(name) ~= 'string' then
        local kind = select('#', ...) == 0 and 'no value' or type(name)
        error(("bad argument #1 to '?' (string expected, got %s)"):format(kind), 3)
    end
    return name:match('^[^%z]*')
end

-- The chunk of a module, or nil and where it was looked for.
local function find(name)
    if type(package.loaders) ~= 'table' then error("'package.loaders' must be a table", 3) end
    local reasons = {}
    for place = 1, math.huge do
        local loader = package.loaders[place]
        if loader == nil then return nil, table.concat(reasons) end
        if type(loader) == 'number' then error('attempt to call a number value', 0) end
        local found = loader(name)
        if type(found) == 'function' then return found end
        if type(found) == 'string' then reasons[#reasons + 1] = found end
    end
end

function require(...)
    local module = type((...)) == 'string' and loaded[...] -- most often
    if module and module ~= LOADING then return module end
    local name = checked_name(...)
    module = loaded[name]
    if module == LOADING then error(("loop or previous error loading module '%s'"):format(name), 2) end
    if module then return module end
    local chunk, reasons = find(name)
    if not chunk then error(missing(name) or ("module '%s' not found:%s"):format(name, reasons), 2) end
    loaded[name] = LOADING
    local result = chunk(name)
    if result ~= nil then loaded[name] = result end
    if loaded[name] == LOADING then loaded[name] = true end
    return loaded[name]
end

function dofile(path)
    local chunk, reason = loadfile(path)
    if not chunk then error(reason, 0) end
    return chunk()
end
