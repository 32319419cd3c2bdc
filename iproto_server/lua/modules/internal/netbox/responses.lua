-- Responses of IPROTO as values.
local msgpack = require('msgpack')
local native = require('internal.native')
local tuples = require('internal.box.values.tuple')
local codes = require('internal.netbox.codes')
local failures = require('internal.netbox.failures')

local decode = msgpack.decode

local FORMAT_FIRST = 0x40000000 -- numbers of remote spaces' formats; those of local ones are lower
local NO_FORMAT = 0
local MORE_THAN_ONE = "Get() doesn't support partial keys and non-unique indexes"

local responses = {}
local formats, format_count = {}, 0

-- The number of the format of tuples whose fields have some names. Formats with the same names are one.
function responses.format(names)
    if #names == 0 then return NO_FORMAT end
    local id = msgpack.encode(names)
    if not formats[id] then
        formats[id] = FORMAT_FIRST + format_count
        format_count = format_count + 1
        tuples.define_format(formats[id], names)
    end
    return formats[id]
end

-- The place of a key's value in a packed map; nil if it is not there.
local function place_of(packed, place, key)
    local head = packed:byte(place)
    local count
    if head and head >= 0x80 and head <= 0x8f then
        count, place = head - 0x80, place + 1
    elseif head == 0xde then
        count, place = packed:byte(place + 1) * 256 + packed:byte(place + 2), place + 3
    elseif head == 0xdf then
        count, place = packed:byte(place + 3) * 256 + packed:byte(place + 4), place + 5
    end
    for _ = 1, count or 0 do
        local found
        found, place = decode(packed, place)
        if found == key then return place end
        _, place = decode(packed, place)
    end
    return nil
end

local function rows(packed, place, format)
    local data = place_of(packed, place, codes.DATA)
    if not data then return {} end
    return native.tuples_of(packed, data, format) or failures.usage('The response has no rows')
end

local function values(packed, place)
    local data = place_of(packed, place, codes.DATA)
    return data and (decode(packed, data)) or {}
end
responses.values = values

local function one(packed, place, format)
    return rows(packed, place, format)[1]
end

-- Readers of a packed body at a place, by the name of a method.
local readers = {
    ping = function() return nil end,
    call = values, eval = values, call_16 = rows,
    select = rows,
    insert = one, replace = one, update = one, delete = one, min = one, max = one,
    upsert = function() return nil end,
    count = function(packed, place) return values(packed, place)[1] end,
}

function readers.get(packed, place, format)
    local found = rows(packed, place, format)
    if found[2] then
        failures.raise(failures.new(failures.codes.MORE_THAN_ONE_TUPLE, MORE_THAN_ONE))
    end
    return found[1]
end

-- -- SQL --

local METADATA_NAMES = {[0] = 'name', 'type', 'collation', 'is_nullable', 'is_autoincrement', 'span'}

local function metadata(described)
    local list = {}
    for place, column in ipairs(described or {}) do
        local named = {}
        for key, value in pairs(column) do named[METADATA_NAMES[key] or key] = value end
        list[place] = named
    end
    return list
end

function readers.execute(packed, place)
    local body = decode(packed, place)
    local info = body[codes.SQL_INFO]
    if info then return {row_count = info[codes.ROW_COUNT], autoincrement_ids = info[codes.AUTOINCREMENT_IDS]} end
    return {metadata = metadata(body[codes.METADATA]), rows = rows(packed, place, NO_FORMAT)}
end

function readers.prepare(packed, place)
    local body = decode(packed, place)
    return {
        stmt_id = body[codes.STMT_ID], param_count = body[codes.BIND_COUNT],
        metadata = body[codes.METADATA] and metadata(body[codes.METADATA]),
        params = metadata(body[codes.BIND_METADATA]),
    }
end

readers.unprepare = function() return nil end

-- Read the packed body at a place, for a method whose tuples have a format.
function responses.read(method, packed, place, format)
    local read = readers[method]
    return read(packed, place, format or NO_FORMAT)
end

-- The error of a packed body. `code` is the response's type.
function responses.failure(code, packed, place)
    local body = decode(packed, place)
    return failures.of_response(bit.band(code, codes.ERROR_FLAG - 1), body[codes.ERROR_24] or '', body[codes.ERROR])
end

return responses
