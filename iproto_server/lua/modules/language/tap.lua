-- Tarantool's module tap: a producer of the Test Anything Protocol on the standard output.
-- On purpose different: keys of a diagnosis come in the order of their names.
local ffi = require('ffi')

local test_methods = {}
local test_mt = {__index = test_methods}

local function write(test, ...) io.write((' '):rep(4 * test.level), ...) end

-- The functions on the stack from the caller of an assertion on.
local function stack()
    local frames, level = {}, 4
    local info = debug.getinfo(level, 'nSl')
    while info do
        frames[#frames + 1] = {
            source = info.source,
            src = info.short_src,
            line = info.linedefined or 0,
            what = info.what,
            name = info.name,
            namewhat = info.namewhat,
            filename = info.source:sub(1, 1) == '@' and info.source:sub(2) or 'eval',
        }
        level = level + 1
        info = debug.getinfo(level, 'nSl')
    end
    return frames
end

local yaml -- loaded when it is needed

local function write_diagnosis(test, extra)
    if not yaml then
        yaml = require('yaml').new()
        yaml.cfg{encode_invalid_numbers = true, encode_load_metatables = true, encode_use_tostring = true}
    end
    for line in yaml.encode(extra):gmatch('[^\n]+') do write(test, '  ', line, '\n') end
end

local function fail(test, message, extra)
    test.failed = test.failed + 1
    write(test, 'not ok - ', message, '\n')
    extra = extra or {}
    if test.trace then
        local frames = stack()
        local last = frames[#frames]
        extra.trace, extra.filename, extra.line = frames, last.filename, last.line
    end
    if next(extra) ~= nil then write_diagnosis(test, extra) end
end

-- All assertions end in a call of this one. They call it in place of themselves, so that `stack` finds their caller.
local function ok(test, condition, message, extra)
    test.total = test.total + 1
    message = tostring(message)
    if condition then
        write(test, 'ok - ', message, '\n')
        return true
    end
    fail(test, message, extra)
    return false
end

test_methods.ok = ok

function test_methods.fail(test, message, extra) return ok(test, false, message, extra) end

function test_methods.skip(test, message, extra) ok(test, true, message .. ' # skip', extra) end

function test_methods.diag(test, fmt, ...) write(test, '# ', string.format(fmt, ...), '\n') end

function test_methods.plan(test, planned)
    test.planned = planned
    write(test, string.format('1..%d\n', planned))
end

-- Equality, in strict mode of the types as well.
local function is_same(test, got, expected)
    return got == expected and (not test.strict or type(got) == type(expected))
end

function test_methods.is(test, got, expected, message, extra)
    extra = extra or {}
    extra.got, extra.expected = got, expected
    return ok(test, is_same(test, got, expected), message, extra)
end

function test_methods.isnt(test, got, unexpected, message, extra)
    extra = extra or {}
    extra.got, extra.unexpected = got, unexpected
    return ok(test, not is_same(test, got, unexpected), message, extra)
end

-- Compare values with their parts. `extra` gets the path of the last part and what differs there.
local function is_equal(got, expected, extra)
    if type(got) == 'number' or type(expected) == 'number' then
        extra.got, extra.expected = got, expected
        return got == expected or (got ~= got and expected ~= expected)
    end
    if extra.strict and type(got) ~= type(expected) then
        extra.got, extra.expected = type(got), type(expected)
        return false
    end
    if type(got) ~= 'table' or type(expected) ~= 'table' then
        extra.got, extra.expected = got, expected
        return got == expected
    end
    if got == expected then return true end
    local path = extra.path or '/'
    for i, value in pairs(got) do
        extra.path = path .. '/' .. i
        if not is_equal(value, expected[i], extra) then return false end
    end
    for i, value in pairs(expected) do
        if type(got[i]) == 'nil' and (extra.strict or value ~= nil) then
            extra.expected, extra.got = 'key ' .. tostring(i), 'nil'
            return false
        end
    end
    return true
end

function test_methods.is_deeply(test, got, expected, message, extra)
    extra = extra or {}
    extra.strict = test.strict
    return ok(test, is_equal(got, expected, extra), message, extra)
end

function test_methods.like(test, got, expected, message, extra)
    extra = extra or {}
    extra.got, extra.expected = got, expected
    return ok(test, string.match(tostring(got), expected) ~= nil, message, extra)
end

function test_methods.unlike(test, got, expected, message, extra)
    extra = extra or {}
    extra.got, extra.expected = got, expected
    return ok(test, string.match(tostring(got), expected) == nil, message, extra)
end

function test_methods.isnil(test, value, message, extra)
    extra = extra or {}
    extra.got, extra.expected = value, 'nil'
    return ok(test, type(value) == 'nil', message, extra)
end

-- Define an assertion of a type.
local function define_type(name, expected)
    test_methods[name] = function(test, value, message, extra)
        extra = extra or {}
        extra.got, extra.expected = type(value), expected
        return ok(test, type(value) == expected, message, extra)
    end
end

define_type('isstring', 'string')
define_type('isnumber', 'number')
define_type('istable', 'table')
define_type('isboolean', 'boolean')
define_type('isfunction', 'function')

function test_methods.isudata(test, value, utype, message, extra)
    extra = extra or {}
    extra.expected = 'userdata<' .. utype .. '>'
    if type(value) ~= 'userdata' then
        extra.got = type(value)
        return ok(test, false, message, extra)
    end
    extra.got = 'userdata<' .. getmetatable(value) .. '>'
    return ok(test, getmetatable(value) == utype, message, extra)
end

function test_methods.iscdata(test, value, ctype, message, extra)
    extra = extra or {}
    extra.expected = ffi.typeof(ctype)
    if type(value) ~= 'cdata' then
        extra.got = type(value)
        return ok(test, false, message, extra)
    end
    extra.got = ffi.typeof(value)
    return ok(test, ffi.istype(ctype, value), message, extra)
end

local function new_test(parent, name, fun, ...)
    local test = setmetatable({
        parent = parent,
        name = name,
        level = parent and parent.level + 1 or 0,
        total = 0,
        failed = 0,
        planned = 0,
        trace = parent == nil and true or parent ~= nil and parent.trace,
        strict = false,
    }, test_mt)
    if fun == nil then return test end
    test:diag('%s', test.name)
    fun(test, ...)
    test:diag('%s: end', test.name)
    return test:check()
end

test_methods.test = new_test

-- Report a test: to its parent as an assertion, otherwise in a comment.
function test_methods.check(test)
    local complete = test.planned == test.total
    if not complete then
        if test.parent then
            ok(test.parent, false, 'bad plan', {planned = test.planned, run = test.total})
        else
            test:diag('bad plan: planned %d run %d', test.planned, test.total)
        end
    elseif test.failed > 0 then
        if test.parent then
            ok(test.parent, false, 'failed subtests', {planned = test.planned, failed = test.failed})
        else
            test:diag('failed subtest: %d', test.failed)
        end
    elseif test.parent then
        ok(test.parent, true, test.name)
    end
    return complete and test.failed == 0
end

local function root_test(...)
    io.write('TAP version 13', '\n')
    return new_test(nil, ...)
end

return {test = root_test}
