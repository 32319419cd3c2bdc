-- `require` and `dofile` in Lua: a fiber may wait in what they load.
local loaded = package.loaded

function require(name)
    local module = loaded[name]
    if module ~= nil then return module end
    local reasons = {}
    for _, loader in ipairs(package.loaders) do
        local found = loader(name)
        if type(found) == 'function' then
            local result = found(name)
            if result ~= nil then loaded[name] = result end
            if loaded[name] == nil then loaded[name] = true end
            return loaded[name]
        end
        reasons[#reasons + 1] = type(found) == 'string' and found or nil
    end
    error(("module '%s' not found:%s"):format(name, table.concat(reasons)), 2)
end

function dofile(path)
    local chunk, reason = loadfile(path)
    if not chunk then error(reason, 0) end
    return chunk()
end
