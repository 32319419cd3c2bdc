-- Requests of IPROTO as bytes.
local msgpack = require('msgpack')
local native = require('internal.native')
local tuples = require('internal.box.values.tuple')
local codes = require('internal.netbox.codes')
local failures = require('internal.netbox.failures')

local encode = msgpack.encode
local char = string.char

local SIZE_HEAD = '\206' -- an unsigned integer of 4 bytes
local EMPTY_ARRAY = '\144'
local NOT_ARRAY = 'Tuple/Key must be MsgPack array'

local function big_endian(number)
    return char(
        bit.band(bit.rshift(number, 24), 255), bit.band(bit.rshift(number, 16), 255),
        bit.band(bit.rshift(number, 8), 255), bit.band(number, 255)
    )
end

-- A packed array of a table or a tuple.
local function row(value)
    if tuples.is(value) then return native.tuple_row(value) end
    if type(value) ~= 'table' then failures.raise(failures.new(failures.codes.TUPLE_NOT_ARRAY, NOT_ARRAY)) end
    return native.tuple_row(native.tuple_new(value))
end

-- A packed key: an array, where a value stands for one with it alone.
local function key_of(value)
    if value == nil then return EMPTY_ARRAY end
    if type(value) == 'table' or tuples.is(value) then return row(value) end
    return '\145' .. encode(value)
end

local function part(key, packed)
    return char(key) .. packed
end

local requests = {}

-- The bytes of a request: a type, a number that its response has, and a packed body.
function requests.frame(request_type, sync, body)
    local header = '\130' .. part(codes.REQUEST_TYPE, encode(request_type)) .. part(codes.SYNC, encode(sync))
    return SIZE_HEAD .. big_endian(#header + #body) .. header .. body
end

-- Functions that return the type and the body of a request, by the name of a method. The first arguments of those about
-- rows are numbers of a space and an index.
local bodies = {}
requests.bodies = bodies

function bodies.ping()
    return codes.PING, '\128'
end

function bodies.auth(user, scramble)
    local tuple = scramble and '\146' .. encode('chap-sha1') .. encode(scramble) or EMPTY_ARRAY
    return codes.AUTH, '\130' .. part(codes.USER_NAME, encode(user)) .. part(codes.TUPLE, tuple)
end

local function call(request_type)
    return function(name, arguments)
        local packed = part(codes.FUNCTION_NAME, encode(tostring(name))) .. part(codes.TUPLE, row(arguments))
        return request_type, '\130' .. packed
    end
end
bodies.call = call(codes.CALL)
bodies.call_16 = call(codes.CALL_16)

function bodies.eval(text, arguments)
    text = text == nil and '' or tostring(text)
    return codes.EVAL, '\130' .. part(codes.EXPR, encode(text)) .. part(codes.TUPLE, row(arguments))
end

function bodies.insert(space, _, tuple)
    return codes.INSERT, '\130' .. part(codes.SPACE_ID, encode(space)) .. part(codes.TUPLE, row(tuple))
end

function bodies.replace(space, _, tuple)
    return codes.REPLACE, '\130' .. part(codes.SPACE_ID, encode(space)) .. part(codes.TUPLE, row(tuple))
end

local function place(space, index)
    return part(codes.SPACE_ID, encode(space)) .. part(codes.INDEX_ID, encode(index))
end

function bodies.delete(space, index, key)
    return codes.DELETE, '\131' .. place(space, index) .. part(codes.KEY, key_of(key))
end

function bodies.update(space, index, key, operations)
    local base = part(codes.INDEX_BASE, '\1')
    return codes.UPDATE,
        '\133' .. place(space, index) .. base .. part(codes.KEY, key_of(key)) .. part(codes.TUPLE, row(operations))
end

function bodies.upsert(space, _, tuple, operations)
    return codes.UPSERT,
        '\132' .. part(codes.SPACE_ID, encode(space)) .. part(codes.INDEX_BASE, '\1')
        .. part(codes.TUPLE, row(tuple)) .. part(codes.OPS, row(operations))
end

function bodies.select(space, index, iterator, offset, limit, key)
    return codes.SELECT,
        '\134' .. place(space, index) .. part(codes.ITERATOR, encode(iterator)) .. part(codes.OFFSET, encode(offset))
        .. part(codes.LIMIT, encode(limit)) .. part(codes.KEY, key_of(key))
end

-- `get`, `min` and `max` are selects whose answers are read in another way.
bodies.get, bodies.min, bodies.max = bodies.select, bodies.select, bodies.select
bodies.count = bodies.call

local function statement(request_type)
    return function(query, parameters, options)
        local kind = type(query) == 'number' and codes.STMT_ID or codes.SQL_TEXT
        local packed = part(kind, encode(query))
        if request_type == codes.PREPARE then return request_type, '\129' .. packed end
        return request_type,
            '\131' .. packed .. part(codes.SQL_BIND, row(parameters or {})) .. part(codes.OPTIONS, row(options or {}))
    end
end
bodies.execute = statement(codes.EXECUTE)
bodies.prepare = statement(codes.PREPARE)
bodies.unprepare = bodies.prepare

return requests
