-- What application.py is, in Lua: for a real Tarantool, and for the server's own Lua.

local CLIENTS, ACCOUNTS_PER_CLIENT, BALANCE, SHARES = 5, 5, 1000, 20

local function create_spaces()
    local items = box.schema.space.create('items', {id = 600, format = {
        {'id', 'unsigned'}, {'version', 'unsigned'}, {'client', 'unsigned'},
        {'group', 'unsigned'}, {'code', 'string'}, {'text', 'string'},
    }})
    items:create_index('primary', {parts = {'id'}})
    items:create_index('code', {parts = {'code'}})
    items:create_index('group', {parts = {'group'}, unique = false})
    local names = box.schema.space.create('names', {id = 601})
    names:create_index('primary', {type = 'hash', parts = {1, 'string'}})
    names:create_index('weight', {parts = {{4, 'number', is_nullable = true}}, unique = false})
    local accounts = box.schema.space.create('accounts', {id = 602})
    accounts:create_index('primary', {parts = {1, 'unsigned'}})
    accounts:create_index('client', {parts = {2, 'unsigned'}, unique = false})
    local transfers = box.schema.space.create('transfers', {id = 603})
    transfers:create_index('primary', {parts = {1, 'unsigned'}})
    local ballast = box.schema.space.create('ballast')
    ballast:create_index('primary', {parts = {1, 'unsigned'}})
    ballast:create_index('number', {parts = {2, 'unsigned'}, unique = false})
    local words = box.schema.space.create('words', {id = 607})
    words:create_index('primary', {parts = {1, 'unsigned'}})
    words:create_index('word', {parts = {{4, 'string', collation = 'unicode_ci'}}})
    local labels = box.schema.space.create('labels', {id = 608})
    labels:create_index('primary', {parts = {1, 'unsigned'}})
    labels:create_index('tags', {parts = {{4, 'string', path = 'tags[*]'}}, unique = false})
    local numbered = box.schema.space.create('numbered', {id = 606})
    numbered:create_index('primary', {parts = {1, 'unsigned'}, sequence = true})
    local shares = box.schema.space.create('shares', {id = 604})
    shares:create_index('primary', {parts = {1, 'unsigned'}})
    shares:create_index('balance', {parts = {2, 'integer'}, unique = false})
    shares:create_index('seat', {parts = {4, 'unsigned'}})
    local deals = box.schema.space.create('deals', {id = 605})
    deals:create_index('primary', {parts = {1, 'unsigned'}})
    local totals = box.schema.space.create('totals')
    totals:create_index('primary', {parts = {1, 'string'}})
    totals:insert{'items', 0, 0}
    totals:insert{'transfers', 0, 0}
    for client = 0, CLIENTS - 1 do
        for number = 0, ACCOUNTS_PER_CLIENT - 1 do
            accounts:insert{client * 100 + number, client, BALANCE, 0}
        end
    end
    for key = 0, SHARES - 1 do shares:insert{key, BALANCE, 0, key} end
end

if box.space.totals == nil then
    box.atomic(create_spaces)
end

box.space.items:on_replace(function(old, new)
    local rows = (new and 1 or 0) - (old and 1 or 0)
    local versions = (new and new[2] or 0) - (old and old[2] or 0)
    box.space.totals:update('items', {{'+', 2, rows}, {'+', 3, versions}})
end)

crash = {}

local function atomic(fun)
    return function(...) return box.atomic(fun, ...) end
end

crash.fill = atomic(function(rows)
    for _, row in ipairs(rows) do box.space.ballast:insert(row) end
    return #rows
end)

crash.write = atomic(function(items, names, gone, fail)
    for _, row in ipairs(items) do box.space.items:replace(row) end
    for _, row in ipairs(names) do box.space.names:replace(row) end
    for _, key in ipairs(gone) do box.space.items:delete(key) end
    if fail then error('as asked', 0) end
    return #items + #names + #gone
end)

crash.transfer = atomic(function(client, number, source, target, amount)
    box.space.accounts:update(source, {{'-', 3, amount}, {'=', 4, number}})
    box.space.accounts:update(target, {{'+', 3, amount}, {'=', 4, number}})
    box.space.transfers:replace{client, number, source, target, amount}
    box.space.totals:update('transfers', {{'+', 2, 1}, {'+', 3, amount}})
    return number
end)

-- In the transaction of a stream, or in one of its own.
function crash.deal(number, source, target, amount)
    local function deal()
        box.space.shares:update(source, {{'-', 2, amount}, {'+', 3, 1}})
        box.space.shares:update(target, {{'+', 2, amount}, {'+', 3, 1}})
        box.space.deals:insert{number, source, target, amount}
        return number
    end
    if box.is_in_txn() then return deal() end
    return box.atomic(deal)
end

crash.create = atomic(function(name, rows)
    local space = box.schema.space.create(name)
    space:create_index('primary', {parts = {1, 'unsigned'}})
    for _, row in ipairs(rows) do space:insert(row) end
    return #rows
end)

crash.drop = atomic(function(name) box.space[name]:drop() end)

function crash.add_index(name)
    box.space[name]:create_index('by_value', {parts = {3, 'string'}, unique = false})
end

function crash.drop_index(name) box.space[name].index.by_value:drop() end

function crash.truncate(name) box.space[name]:truncate() end

function crash.put(name, row) return box.space[name]:replace(row) end

function crash.audit()
    local spaces = {}
    for _, row in box.space._space:pairs() do
        if row.engine == 'memtx' then
            local space, indexes = box.space[row.name], {}
            for id, index in pairs(space.index) do
                if type(id) == 'number' then
                    local place = id == 0 and 1 or #indexes + 1
                    table.insert(indexes, place, {index.name, index:count(), index:select()})
                end
            end
            spaces[row.name] = {#indexes > 0 and space:len() or 0, setmetatable(indexes, {__serialize = 'seq'})}
        end
    end
    local queue = rawget(_G, 'queue')
    return {spaces = spaces, stats = queue and queue.stats()}
end
