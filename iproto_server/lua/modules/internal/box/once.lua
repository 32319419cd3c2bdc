-- box.once: a function that runs once in the life of a database.
--
-- Source: Tarantool reference, "box.once()".
return function(key, call, ...)
    if type(key) ~= 'string' or type(call) ~= 'function' then
        require('internal.box.failure').illegal('Usage: box.once(key, func, ...)')
    end
    local name = 'once' .. key
    if box.space._schema:get{name} ~= nil then return end
    box.space._schema:put{name}
    return call(...)
end
