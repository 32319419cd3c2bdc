-- Calls of clients: functions by name, and texts of EVAL, each in a fiber.
--
-- Source: Tarantool reference, "Functions for IPROTO: CALL, EVAL".
local scheduler = require('internal.fibers.scheduler')
local functions = require('internal.box.functions')
local stored = require('internal.box.schema.stored')
local failure = require('internal.box.failure')
local msgpack = require('msgpack')

local WAITS, RETURNED, FAILED = 0, 1, 2
local NO_SUCH_PROC, TRANSACTION_LEFT_OPEN = 33, 30
local NAMES_MAX = 1000 -- whose parts are kept

local calls = {}
local names, name_count = {}, 0

-- The parts of "a.b:c": a list, and whether the last one is a method.
local function parts_of(name)
    local parts = names[name]
    if parts then return parts end
    local path, method = name:match('^(.-):([^:.]*)$')
    parts = {is_method = method ~= nil}
    for part in ((path or name) .. '.'):gmatch('([^.]*)%.') do parts[#parts + 1] = part end
    parts[#parts + 1] = method
    if name_count == NAMES_MAX then names, name_count = {}, 0 end
    names[name], name_count = parts, name_count + 1
    return parts
end

-- The function of that name, and the object whose method it is.
local function find(name)
    local body = stored.body(name)
    if body then return body end
    local parts = parts_of(name)
    local value, object = _G, nil
    for place = 1, #parts do
        local kind = type(value)
        if kind ~= 'table' and kind ~= 'userdata' and kind ~= 'cdata' then return nil end
        object, value = value, value[parts[place]]
    end
    if type(value) == 'function' or (type(value) == 'table' and (getmetatable(value) or {}).__call) then
        return value, parts.is_method and object or nil
    end
end

local function described(fiber, ok, ...)
    if fiber.has_left_transaction and ok then
        return FAILED, TRANSACTION_LEFT_OPEN, 'Transaction is active at return from function', 'ClientError'
    end
    if ok then return RETURNED, ... end
    return FAILED, failure.describe((...))
end

local function ended(fiber, ...)
    functions.finished(fiber.id, described(fiber, ...))
end

local function outcome(fiber, has_ended, ...)
    scheduler.is_in_session = false
    if has_ended then return described(fiber, ...) end
    return WAITS, fiber.id
end

local function run(call, ...)
    scheduler.is_in_session = true
    return outcome(scheduler.call(ended, call, ...))
end

local function evaluate(text, ...)
    local chunk, why = loadstring(text, '=eval')
    if not chunk then return FAILED, failure.describe(why) end
    return run(chunk, ...)
end

-- Call a function by name, or evaluate a text if there is no name. Returns 1 and results; 2, and a code, a message and a
-- type of an error; or 0 and the number of a fiber that waits.
function calls.enter(name, ...)
    if name == nil then return evaluate(...) end
    local call, object = find(name)
    if not call then
        return FAILED, NO_SUCH_PROC, ("Procedure '%s' is not defined"):format(name), 'ClientError'
    end
    if type(call) == 'table' then return run(getmetatable(call).__call, call, ...) end
    if object ~= nil then return run(call, object, ...) end
    return run(call, ...)
end

-- Call a function by name in the running fiber.
function calls.invoke(name, ...)
    local call, object = find(name)
    if not call then failure.raise(NO_SUCH_PROC, ("Procedure '%s' is not defined"):format(name)) end
    if object ~= nil then return call(object, ...) end
    return call(...)
end

local compiled, compiled_count = {}, 0

local function compile(text)
    local chunk = compiled[text]
    if chunk then return chunk end
    local why
    chunk, why = loadstring(text, '=eval')
    if not chunk then error(why, 0) end
    if compiled_count == NAMES_MAX then compiled, compiled_count = {}, 0 end
    compiled[text], compiled_count = chunk, compiled_count + 1
    return chunk
end

local function pack(...)
    local list = {...}
    for place = 1, select('#', ...) do
        if list[place] == nil then list[place] = msgpack.NULL end
    end
    return msgpack.encode(setmetatable(list, {__serialize = 'seq'}))
end

local function described_at_once(ok, ...)
    if ok then return ... end
    local code, message = failure.describe((...))
    return code, message
end

-- Run a text for Python, which waits for it. Returns packed results, or the code and the message of an error.
function calls.evaluate_at_once(text, arguments)
    local before = scheduler.is_in_session
    scheduler.is_in_session = true
    local function finish(...)
        scheduler.is_in_session = before
        return described_at_once(...)
    end
    return finish(pcall(function() return pack(compile(text)(unpack((msgpack.decode(arguments))))) end))
end

-- Whether there is a function of that name.
function calls.exists(name)
    return find(name) ~= nil
end

return calls
