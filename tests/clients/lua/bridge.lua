-- Carries out requests, read as lines of JSON, with net.box. See bridge.py for the lines.
-- Usage: tarantool bridge.lua HOST PORT USER PASSWORD

local fiber = require('fiber')
local json = require('json')
local net_box = require('net.box')
local socket = require('socket')

local STDIN = 0

io.stdout:setvbuf('line')

local function answer(ok, result)
    if ok then
        print(json.encode({result = result}))
    elseif type(result) == 'cdata' then
        print(json.encode({error = {code = result.code, message = result.message, type = result.type}}))
    else
        print(json.encode({error = {message = tostring(result)}}))
    end
end

local function rows(tuple)
    return {tuple}
end

local function connect(host, port, user, password)
    local options = {wait_connected = true}
    if user ~= '' then
        options.user, options.password = user, password
    end
    local connection = net_box.connect(host, port, options)
    if connection.state == 'error' then
        error(connection.error, 0)
    end
    return connection
end

local function methods(connection)
    local reloaded = fiber.cond()
    connection:on_schema_reload(function()
        reloaded:broadcast()
    end)

    local function space(name)
        -- the answer to a DDL request tells net.box to load the schema again; be sure that it has
        if connection.space[name] == nil then
            connection:reload_schema()
        end
        return connection.space[name] or error('no space ' .. name, 0)
    end

    local function index(space_name, index_name)
        return space(space_name).index[index_name] or error('no index ' .. index_name, 0)
    end

    return {
        ping = function()
            return connection:ping()
        end,
        insert = function(name, row)
            return rows(space(name):insert(row))
        end,
        replace = function(name, row)
            return rows(space(name):replace(row))
        end,
        update = function(name, index_name, key, operations)
            return rows(index(name, index_name):update(key, operations))
        end,
        upsert = function(name, row, operations)
            return rows(space(name):upsert(row, operations))
        end,
        delete = function(name, index_name, key)
            return rows(index(name, index_name):delete(key))
        end,
        select = function(name, index_name, key, iterator, limit, offset)
            return index(name, index_name):select(key, {iterator = iterator, limit = limit, offset = offset})
        end,
        call = function(procedure, arguments)
            return {connection:call(procedure, arguments)}
        end,
        has_space = function(name)
            return connection.space[name] ~= nil
        end,
        wait_for_space = function(name)
            -- any answer tells of the new schema version; net.box then loads the schema in the background
            connection:ping()
            while connection.space[name] == nil do
                reloaded:wait()
            end
            return true
        end,
        instance_uuid = function()
            return connection.peer_uuid
        end,
    }
end

local ok, connection = pcall(connect, arg[1], tonumber(arg[2]), arg[3], arg[4])
answer(ok, not ok and connection or true)
if ok then
    local known = methods(connection)
    while true do
        socket.iowait(STDIN, 'R') -- lets net.box's own fibers run while nothing is asked
        local line = io.read('*l')
        if line == nil then
            break
        end
        local request = json.decode(line)
        answer(pcall(known[request[1]], unpack(request, 2)))
    end
    connection:close()
end
os.exit(0)
