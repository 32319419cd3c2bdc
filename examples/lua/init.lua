-- A stock of articles: spaces, a trigger, functions for clients, and a fiber.
--
--     make run APP=examples/lua/init.lua
--
-- The same file runs in Tarantool: tarantool examples/lua/init.lua
local fiber = require('fiber')
local log = require('log')

box.cfg{}

box.once('stock-1', function()
    local articles = box.schema.space.create('articles')
    articles:format{{'name', 'string'}, {'amount', 'unsigned'}}
    articles:create_index('primary', {parts = {'name'}})
    local movements = box.schema.space.create('movements')
    movements:format{{'id', 'unsigned'}, {'name', 'string'}, {'change', 'integer'}}
    movements:create_index('primary', {sequence = true})
    box.schema.user.grant('guest', 'read,write,execute', 'universe')
end)

-- Each change is written down in the same transaction.
box.space.articles:on_replace(function(old, new)
    local name = (new or old).name
    local change = (new and new.amount or 0) - (old and old.amount or 0)
    box.space.movements:insert{box.NULL, name, change}
end)

local stock = {}

function stock.add(name, amount)
    box.space.articles:upsert({name, amount}, {{'+', 'amount', amount}})
    return box.space.articles:get{name}
end

function stock.take(name, amount)
    local article = box.space.articles:get{name}
    if article == nil or article.amount < amount then
        error(('there are only %d of %s'):format(article and article.amount or 0, name), 0)
    end
    return box.space.articles:update({name}, {{'-', 'amount', amount}})
end

-- Take some of one article and add them to another: both, or none.
function stock.exchange(from, to, amount)
    return box.atomic(function()
        stock.take(from, amount)
        return stock.add(to, amount)
    end)
end

-- Wait until there are enough of an article, at most for some seconds.
function stock.wait(name, amount, timeout)
    local end_at = fiber.clock() + timeout
    while fiber.clock() < end_at do
        local article = box.space.articles:get{name}
        if article ~= nil and article.amount >= amount then return article end
        fiber.sleep(0.01)
    end
end

rawset(_G, 'stock', stock)

log.info('%d articles in stock', box.space.articles:count())
