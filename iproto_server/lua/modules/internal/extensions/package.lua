-- Where `require` finds modules, as in Tarantool: the working directory, `.rocks` in it and in those above it,
-- `package.path` and `package.cpath`. See https://www.tarantool.io/en/doc/2.6/reference/reference_lua/other/.
local _, host = ...

host.start_folder = host.directory_current()

-- -- package.path and package.cpath --

local LIBRARY = jit.os == 'OSX' and 'dylib' or 'so'

local function with_luarocks(templates, kind, endings)
    local home = os.getenv('HOME')
    local path = {}
    if home then
        for _, version in ipairs{'lua/5.1', 'lua'} do
            for _, ending in ipairs(endings) do
                path[#path + 1] = ('%s/.luarocks/%s/%s/%s'):format(home, kind, version, ending)
            end
        end
    end
    for _, template in ipairs(templates) do path[#path + 1] = template end
    return table.concat(path, ';') .. ';'
end

local function default_path()
    local templates = {}
    for _, folder in ipairs{'tarantool', 'lua/5.1'} do
        for _, prefix in ipairs{'/usr/local/share/', '/usr/share/'} do
            templates[#templates + 1] = prefix .. folder .. '/?.lua'
            templates[#templates + 1] = prefix .. folder .. '/?/init.lua'
        end
    end
    return with_luarocks(templates, 'share', {'?.lua', '?/init.lua'})
end

local function default_cpath()
    local triplet = host.multiarch()
    local templates = {}
    for _, folder in ipairs{'tarantool', 'lua/5.1'} do
        if triplet then
            templates[#templates + 1] = ('/usr/local/lib/%s/%s/?.%s'):format(triplet, folder, LIBRARY)
            templates[#templates + 1] = ('/usr/lib/%s/%s/?.%s'):format(triplet, folder, LIBRARY)
        end
        templates[#templates + 1] = ('/usr/local/lib/%s/?.%s'):format(folder, LIBRARY)
    end
    return with_luarocks(templates, 'lib', {'?.' .. LIBRARY})
end

-- In the variable, two semicolons stand for the default.
local function from_environment(name, default)
    local value = os.getenv(name)
    return value and value:gsub(';;', function() return ';' .. default .. ';' end) or default
end

package.path = from_environment('LUA_PATH', default_path())
package.cpath = from_environment('LUA_CPATH', default_cpath())

-- -- the search root --

local root

-- The folder that is searched first: the working directory, unless another one is set.
function package.searchroot()
    return root or host.directory_current()
end

function package.setsearchroot(path)
    if path ~= nil and type(path) ~= 'string' then error('Search root must be a string') end
    root = path ~= nil and require('fio').abspath(path) or nil
end

local LUA, C = {'/?.lua', '/?/init.lua'}, {'/?.' .. LIBRARY}
local ROCKS_LUA = {'/.rocks/share/tarantool/?.lua', '/.rocks/share/tarantool/?/init.lua'}
local ROCKS_C = {'/.rocks/lib/tarantool/?.' .. LIBRARY}

local function append(templates, folder, endings)
    for _, ending in ipairs(endings) do templates[#templates + 1] = folder .. ending end
end

-- The templates of a kind, in the root alone, or in all folders above it, too.
local function templates_of(endings, is_up)
    local templates, folder = {}, (package.searchroot():gsub('/+$', ''))
    append(templates, folder, endings)
    while is_up and folder ~= '' do
        folder = folder:match('^(.*)/[^/]*$') or ''
        append(templates, folder, endings)
    end
    return table.concat(templates, ';')
end

local function c_function_name(name)
    return 'luaopen_' .. name:gsub('^.-%-', ''):gsub('%.', '_')
end

local function load_lua(path) return loadfile(path) end
local function load_c(path, name) return package.loadlib(path, c_function_name(name)) end

local function loader(endings, is_up, load)
    return function(name)
        if not name then return 'empty name of module' end
        local path, tried = package.searchpath(name, templates_of(endings, is_up))
        if not path then return tried end
        local chunk, reason = load(path, name)
        return chunk or reason
    end
end

local LOCAL = {{LUA, false, load_lua}, {C, false, load_c}, {ROCKS_LUA, true, load_lua}, {ROCKS_C, true, load_c}}
for place, each in ipairs(LOCAL) do table.insert(package.loaders, place + 1, loader(unpack(each))) end

-- The file of a module. Returns nil if there is none.
function package.search(name)
    if not name then return 'empty name of module' end
    for _, each in ipairs(LOCAL) do
        local path = package.searchpath(name, templates_of(each[1], each[2]))
        if path then return path end
    end
    return package.searchpath(name, package.path) or package.searchpath(name, package.cpath) or nil
end
