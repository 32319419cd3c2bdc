-- Whole trees of directories: making, copying and removing them.
local _, host = ...
local handles = require('internal.files.file_handle')
local paths = require('internal.files.path_names')

local c_text = paths.c_text
local trees = {}

-- A directory's names; nil and a text otherwise.
function trees.listdir(path)
    if type(path) ~= 'string' then error('Usage: fio.listdir(path)') end
    local names, why = handles.outcome(nil, host.directory_list(c_text(path)))
    if not names then return nil, ("can't listdir %s: %s"):format(path, tostring(why)) end
    local list = {}
    for name in names:gmatch('[^%z]+') do list[#list + 1] = name end
    return list
end

-- Make a directory and those above it.
function trees.mktree(path, mode)
    if type(path) ~= 'string' then error('Usage: fio.mktree(path[, mode])') end
    local made = ''
    for part in paths.abspath(path):gmatch('[^/]+') do
        made = made .. '/' .. part
        local status = handles.status(made, true)
        local is_made, why = false, 'File exists'
        if status then
            is_made = status:is_dir()
        else
            local bits = mode == nil and 511 or handles.integer(mode)
            is_made, why = handles.outcome(false, host.directory_make(c_text(made), bits))
        end
        if not is_made then return false, ('Error creating directory %s: %s'):format(made, tostring(why)) end
    end
    return true
end

-- Remove a directory and all in it. Links are removed, not followed.
function trees.rmtree(path)
    if type(path) ~= 'string' then error('Usage: fio.rmtree(path)') end
    path = paths.abspath(path)
    local names, why = trees.listdir(path)
    if not names then return nil, why end
    for _, name in ipairs(names) do
        local inner = paths.pathjoin(path, name)
        local status, problem = handles.status(inner, false)
        if not status then return false, ('failed to remove %s: %s'):format(inner, tostring(problem)) end
        local ok
        if status:is_dir() then
            ok, problem = trees.rmtree(inner)
            if not ok then return false, problem end
        else
            ok, problem = handles.outcome(false, host.file_unlink(c_text(inner)))
            if not ok then return false, ('failed to remove %s: %s'):format(inner, tostring(problem)) end
        end
    end
    local ok, problem = handles.outcome(false, host.directory_remove(c_text(path)))
    if not ok then return false, ('failed to remove %s: %s'):format(path, tostring(problem)) end
    return true
end

-- Copy a file to a path, or into a directory.
function trees.copyfile(from, to)
    if type(from) ~= 'string' or type(to) ~= 'string' then error('Usage: fio.copyfile(from, to)') end
    local status = handles.status(to, true)
    if status and status:is_dir() then to = paths.pathjoin(to, paths.basename(from)) end
    local ok, why = handles.outcome(false, host.file_copy(c_text(from), c_text(to)))
    if not ok then return false, ('failed to copy %s to %s: %s'):format(from, to, tostring(why)) end
    return true
end

-- Copy a directory and all in it. Links stay links.
function trees.copytree(from, to)
    if type(from) ~= 'string' or type(to) ~= 'string' then error('Usage: fio.copytree(from, to)') end
    local status = handles.status(from, true)
    if not status then return false, ('Directory %s does not exist'):format(from) end
    if not status:is_dir() then return false, 'Not a directory' end
    local names, why = trees.listdir(from)
    if not names then return false, why end
    local ok
    ok, why = trees.mktree(to)
    if not ok then return false, why end
    for _, name in ipairs(names) do
        local source, target = paths.pathjoin(from, name), paths.pathjoin(to, name)
        local inner, problem = handles.status(source, false)
        if not inner then return false, ('failed to copy %s: %s'):format(source, tostring(problem)) end
        if inner:is_dir() then
            ok, problem = trees.copytree(source, target)
        elseif inner:is_link() then
            local link
            link, problem = handles.outcome(nil, host.file_readlink(c_text(source)))
            ok = link
            if link then ok, problem = handles.outcome(false, host.file_symlink(link, c_text(target))) end
        elseif inner:is_reg() then
            ok, problem = trees.copyfile(source, target)
        else
            ok, problem = false, ('failed to copy %s: neither a file, a directory nor a link'):format(source)
        end
        if not ok then return false, tostring(problem) end
    end
    return true
end

return trees
