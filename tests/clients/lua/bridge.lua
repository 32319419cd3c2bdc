-- Carries out requests, read as lines of JSON, with net.box. See bridge.py for the lines.
-- Usage: tarantool bridge.lua

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
        call_with_pushes = function(procedure, arguments)
            local pushed = {}
            local result = connection:call(procedure, arguments, {
                on_push = table.insert,
                on_push_ctx = pushed,
            })
            return {pushed = pushed, answer = result}
        end,
        iterate_over_pushes = function(procedure, arguments)
            local heard = {}
            local future = connection:call(procedure, arguments, {is_async = true})
            for _, message in future:pairs() do
                table.insert(heard, message)
            end
            -- the last one is the answer, as a table of what was returned
            heard[#heard] = heard[#heard][1]
            return heard
        end,
        row_as_map = function(name, key)
            return space(name):get(key):tomap({names_only = true})
        end,
        get = function(name, index_name, key)
            return index(name, index_name):get(key)
        end,
        count = function(name, index_name, key, iterator)
            return index(name, index_name):count(key, {iterator = iterator})
        end,
        min = function(name, index_name, key)
            return index(name, index_name):min(key)
        end,
        max = function(name, index_name, key)
            return index(name, index_name):max(key)
        end,
        describe_index = function(name, index_number)
            local described = space(name).index[index_number]
            return {
                name = described.name,
                type = described.type,
                unique = described.unique,
                parts = described.parts,
            }
        end,
        -- Calls at once, and answers the results in the order of the calls.
        call_at_once = function(calls)
            local futures = {}
            for number, call in ipairs(calls) do
                futures[number] = connection:call(call[1], call[2], {is_async = true})
            end
            local results = {}
            for number, future in ipairs(futures) do
                local result, err = future:wait_result(10)
                results[number] = result or {error = err.message}
            end
            return results
        end,
        call_with_timeout = function(procedure, arguments, timeout)
            return {connection:call(procedure, arguments, {timeout = timeout})}
        end,
        -- Has the answer's bytes in a buffer, and decodes them.
        call_into_buffer = function(procedure, arguments)
            local buffer = require('buffer').ibuf()
            connection:call(procedure, arguments, {buffer = buffer, skip_header = true})
            return require('msgpack').decode_unchecked(buffer.rpos)
        end,
        eval = function(expression)
            return connection:eval(expression)
        end,
        execute = function(statement)
            return connection:execute(statement)
        end,
        state = function()
            return {
                state = connection.state,
                connected = connection:is_connected(),
                protocol = connection.protocol,
            }
        end,
        -- Closes, and says what the triggers were told and what a request gets.
        close_and_ping = function()
            local told = {}
            connection:on_disconnect(function()
                table.insert(told, 'disconnected')
            end)
            connection:close()
            return {told = told, ping = connection:ping(), state = connection.state}
        end,
        -- Stores a value of Lua's own, and answers what comes back, as it is shown.
        store = function(name, id, kind, text)
            local value
            if kind == 'decimal' then
                value = require('decimal').new(text)
            elseif kind == 'uuid' then
                value = require('uuid').fromstr(text)
            else
                value = tonumber64(text)
            end
            return {
                tostring(space(name):replace({id, value})[2]),
                tostring(space(name):get(id)[2]),
                tostring(connection:call('features.echo', {value})),
            }
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

-- One connection after the other: `connect`, requests, `disconnect`.
local connection
local known = {}

local function connect_to(...)
    connection = connect(...)
    known = methods(connection)
    return true
end

local function disconnect()
    connection:close()
    known = {}
    return true
end

while true do
    socket.iowait(STDIN, 'R') -- lets net.box's own fibers run while nothing is asked
    local line = io.read('*l')
    if line == nil then
        break
    end
    local request = json.decode(line)
    local method = ({connect = connect_to, disconnect = disconnect})[request[1]] or known[request[1]]
    answer(pcall(method, unpack(request, 2)))
end
os.exit(0)
