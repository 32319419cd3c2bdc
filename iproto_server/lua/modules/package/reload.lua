-- package.reload: runs the file that has required this module again, with modules that were loaded since loaded again.
--
-- `package.reload.count` is the number of the load, from 1 on. Source: the tutorial's chapter "Hot code reloading".
local _, host = ...
local fio = require('fio')
local log = require('log')

-- The path of the file that has required this module.
local function requiring_file()
    for level = 3, 20 do
        local info = debug.getinfo(level, 'S')
        if not info then break end
        local path = info.source:match('^@(.+)$')
        if path and not path:find('^builtin/') then return path end
    end
    error('package.reload must be required by a file', 3)
end

local file = requiring_file()

-- The path of the file from where the process is now: `box.cfg` enters `work_dir`.
local function path_now()
    if file:sub(1, 1) == '/' or fio.cwd() == host.start_folder then return file end
    return fio.pathjoin(host.start_folder, file)
end

local preloaded = {}
for name in pairs(package.loaded) do preloaded[name] = true end
preloaded['package.reload'] = true

local reload = {count = 1}

local function unload()
    local names = {}
    for name in pairs(package.loaded) do
        if not preloaded[name] and not host.builtin[name] then names[#names + 1] = name end
    end
    table.sort(names)
    for _, name in ipairs(names) do package.loaded[name] = nil end
    return table.concat(names, ', ')
end

setmetatable(reload, {
    __call = function()
        reload.count = reload.count + 1
        log.info('load %d: unloading {%s}', reload.count, unload())
        dofile(path_now())
    end,
})

log.info('load 1 of %s', file)
package.reload = reload
return reload
