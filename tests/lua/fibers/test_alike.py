"""Fibers, conditions and channels behave as those of a real Tarantool."""

from __future__ import annotations

import pytest

from tests.lua.snippets import OurLua, TarantoolLua

PREAMBLE = (
    "local fiber = require('fiber') local function text(value) return select(2, pcall(tostring, value)) end "
)

SNIPPETS = {
    # arguments
    "sleep without a delay": "fiber.sleep()",
    "sleep with a text": "fiber.sleep('a')",
    "sleep for no time": "return fiber.sleep(0), fiber.sleep(-1)",
    "create without a function": "fiber.create()",
    "create with a number": "fiber.create(1)",
    "new with a number": "fiber.new(1)",
    "find without a number": "fiber.find()",
    "find none": "return fiber.find(1), fiber.find(123456)",
    "status of a number": "return fiber.status(99999)",
    "wake up nothing": "return fiber.wakeup()",
    "wake up a dead one": "return fiber.wakeup(999999)",
    "cancel a dead one": "return fiber.cancel(999999)",
    "cancel nothing": "return fiber.cancel()",
    "join nothing": "return fiber.join()",
    "join a dead one": "return fiber.join(1)",
    "join one that is not joinable": "local f = fiber.create(fiber.sleep, 0.01) return f:join()",
    "joinable without a flag": "return fiber.self():set_joinable()",
    "an unknown attribute": "return fiber.self().foo",
    "an attribute cannot be set": "fiber.self().foo = 1",
    # the fiber itself
    "itself": "return type(fiber.self()), fiber.self() == fiber.self(), fiber.self():status()",
    "status": "return fiber.status(), fiber.status(fiber.self())",
    "its id": "return fiber.id() == fiber.self():id(), type(fiber.id())",
    "found by its id": "return fiber.find(fiber.id()) == fiber.self()",
    "its name": "fiber.name('abc') return fiber.name(), fiber.self():name()",
    "a number as a name": "fiber.name(1) return fiber.name()",
    "a long name": "fiber.name(('x'):rep(300))",
    "a name that is cut": "fiber.name(('x'):rep(300), {truncate = true}) return #fiber.name()",
    "storage": "fiber.self().storage.x = 1 return fiber.self().storage.x, fiber.self().storage.y",
    "times": "return type(fiber.time()), type(fiber.time64()), type(fiber.clock()), type(fiber.clock64())",
    "kill": "return type(fiber.kill), fiber.kill == fiber.cancel",
    "text": "return text(fiber.self()):match('^fiber: %d+$') ~= nil",
    "info": "return type(fiber.info()[fiber.id()].name), fiber.info()[fiber.id()].fid == fiber.id()",
    # lives
    "a fiber that has ended": "local f = fiber.create(function() end) return f:status(), text(f)",
    "the name of one that has ended": "local f = fiber.create(function() end) return f:name()",
    "waking one that has ended": "local f = fiber.create(function() end) return f:wakeup()",
    "cancelling one that has ended": "local f = fiber.create(function() end) return f:cancel()",
    "a joinable one that has ended": (
        "local f = fiber.new(function() return 1 end) f:set_joinable(true) fiber.sleep(0.01) "
        "f:wakeup() f:cancel() f.storage.x = 1 f:name('n') fiber.sleep(0) "
        "local before = {f:status(), f:name(), f.storage.x, fiber.find(f:id()) == f, "
        "fiber.info()[f:id()] ~= nil} "
        "return before, {f:join()}, f:status(), pcall(f.join, f), fiber.find(f:id())"
    ),
    "one that has ended is no longer joinable": (
        "local f = fiber.new(function() end) f:set_joinable(true) fiber.sleep(0.01) f:set_joinable(false) "
        "local ok, why = pcall(f.join, f) f:set_joinable(true) return f:status(), ok, tostring(why), f:join()"
    ),
    "a joinable one that has failed": (
        "local f = fiber.new(error, 'x') f:set_joinable(true) fiber.sleep(0.01) "
        "return f:status(), fiber.find(f:id()) == f, f:join()"
    ),
    "joining one that has ended": "local f = fiber.create(function() end) return f:join()",
    "a sleeping fiber": (
        "local f = fiber.create(function() fiber.sleep(0.01) end)"
        " return fiber.find(f:id()) == f, f:name(), f:status()"
    ),
    "arguments": "local t fiber.create(function(...) t = {select('#', ...), ...} end, 1, nil, 3) return t",
    "created ones run at once": (
        "local s = '' fiber.create(function() s = s .. 'a' fiber.yield() s = s .. 'b' end)"
        " s = s .. 'c' fiber.yield() return s .. 'd'"
    ),
    "new ones run later, in order": (
        "local s = '' for i = 1, 3 do fiber.new(function() s = s .. i end) end"
        " local before = s fiber.yield() return before, s"
    ),
    "deep nesting": (
        "local d = 0 local function go(n) d = d + 1 if n > 1 then fiber.create(go, n - 1) end end"
        " go(1000) return d"
    ),
    "join": (
        "local f = fiber.new(function() return 1, nil, 2 end) f:set_joinable(true)"
        " return select('#', f:join())"
    ),
    "join an error": (
        "local f = fiber.new(function() error('x', 0) end) f:set_joinable(true)"
        " local ok, why = f:join() return ok, text(why)"
    ),
    "join twice": (
        "local f = fiber.new(function() return 1 end) f:set_joinable(true) f:join() return f:join()"
    ),
    "cancel one that sleeps": (
        "local f = fiber.new(function() return pcall(fiber.sleep, 10) end) f:set_joinable(true) fiber.yield()"
        " f:cancel() local ok, slept, why = f:join() return ok, slept, text(why)"
    ),
    "cancel one that has not begun": (
        "local f = fiber.new(function() return pcall(fiber.testcancel) end) f:set_joinable(true) f:cancel()"
        " local ok, went_on, why = f:join() return ok, went_on, text(why)"
    ),
    "cancel by number": (
        "local f = fiber.new(function() fiber.sleep(10) end) f:set_joinable(true) fiber.yield()"
        " fiber.cancel(f:id()) local ok, why = f:join() return ok, text(why)"
    ),
    "wake one that sleeps": (
        "local woken = false local f = fiber.create(function() fiber.sleep(100) woken = true end)"
        " f:wakeup() fiber.yield() return woken"
    ),
    # yields through Lua's own functions
    "pcall": "return pcall(function() fiber.yield() return 1 end)",
    "xpcall": "return xpcall(function() fiber.yield() error('x', 0) end, function(e) return e .. '!' end)",
    "a metamethod": "return setmetatable({}, {__index = function(_, k) fiber.yield() return k end}).abc",
    "an iterator": (
        "local s = '' for i in function(_, i) fiber.yield() i = (i or 0) + 1 return i < 4 and i or nil end do"
        " s = s .. i end return s"
    ),
    "a coroutine": (
        "local co = coroutine.create(function() fiber.sleep(0.001) return 5 end) return coroutine.resume(co)"
    ),
    "a wrapped coroutine": (
        "local co = coroutine.wrap(function() fiber.yield() coroutine.yield(1) fiber.yield() return 2 end)"
        " return co(), co()"
    ),
    "a coroutine within one": (
        "local outer = coroutine.wrap(function() local inner = coroutine.wrap(function() fiber.yield()"
        " coroutine.yield(1) end) coroutine.yield(inner()) end) return outer()"
    ),
    "an error in a coroutine": ("return pcall(coroutine.wrap(function() fiber.yield() error({1}) end))"),
    "a text as an error in a wrapped coroutine": (
        "local f = coroutine.wrap(function() fiber.yield() error('x') end) local r = f() return r"
    ),
    "a coroutine that waits in another fiber": (
        "local co = coroutine.create(function() fiber.sleep(0.01) return 1 end) local r "
        "fiber.create(function() r = {coroutine.resume(co)} end) local s = coroutine.status(co) "
        "local t = {coroutine.resume(co)} fiber.sleep(0.02) return s, t, r"
    ),
    "a yield outside of coroutines": (
        "local r fiber.create(function() r = {pcall(coroutine.yield, 1)} end) return r"
    ),
    "resume no coroutine": "local r = coroutine.resume(5) return r",
    "a coroutine without results": (
        "local co = coroutine.create(function(...) return ... end) return select('#', coroutine.resume(co)), "
        "select('#', coroutine.wrap(function() end)())"
    ),
    "wrap no function": "local r = coroutine.wrap(5) return r",
    "the status of no coroutine": "local r = coroutine.status(5) return r",
    "a deep nesting of coroutines": (
        "local function f(n) return n == 0 and 'end' or coroutine.wrap(f)(n - 1) .. '' end return f(1000)"
    ),
    # errors
    "the error of a cancelled fiber": (
        "local e local f = fiber.create(function() e = select(2, pcall(fiber.sleep, 10)) end) f:cancel() "
        "fiber.sleep(0) return type(e), e.type, e.code, e.message"
    ),
    "a text as an error that is joined": (
        "local f = fiber.new(function() error('x') end) f:set_joinable(true) local ok, e = f:join() "
        "return ok, type(e), e.type, e.message"
    ),
    "a table as an error that is joined": (
        "local f = fiber.new(function() error({1}) end) f:set_joinable(true) local ok, e = f:join() "
        "return ok, type(e), e.message:match('^table: ')"
    ),
    # times
    "times that are not measured": "return fiber.top()",
    "times of fibers": (
        "fiber.top_enable() local t = fiber.top() fiber.top_disable() local _, times = next(t.cpu) "
        "return type(times.instant), type(times.average), type(times.time), t.cpu_misses"
    ),
    # conditions
    "a condition": "local c = fiber.cond() return type(c), text(c), c:signal(), c:broadcast()",
    "a condition nobody signals": "return fiber.cond():wait(0.01)",
    "a condition's wrong timeouts": "return fiber.cond():wait('a')",
    "a condition's negative timeout": "return fiber.cond():wait(-1)",
    "wait without a condition": "return fiber.cond().wait()",
    "signal without a condition": "return fiber.cond().signal()",
    "one signal wakes one": (
        "local c, s = fiber.cond(), '' for i = 1, 3 do fiber.create(function() c:wait() s = s .. i end) end"
        " c:signal() fiber.yield() local one = s c:broadcast() fiber.yield() return one, s"
    ),
    "waiting on a condition is cancelled": (
        "local c = fiber.cond() local f = fiber.create(function() return pcall(c.wait, c) end)"
        " f:set_joinable(true) f:cancel() local ok, went_on, why = f:join() return ok, went_on, text(why)"
    ),
    # channels
    "a channel": (
        "local c = fiber.channel(2) return type(c), text(c), c:size(), c:count(), c:is_full(), c:is_empty(),"
        " c:has_readers(), c:has_writers(), c:is_closed()"
    ),
    "a channel without room": (
        "local c = fiber.channel() return c:size(), c:is_full(), c:is_empty(), c:put(1, 0), c:get(0)"
    ),
    "a negative size": "return fiber.channel(-1)",
    "a size that is no number": "return fiber.channel('a')",
    "put nothing": "return fiber.channel(1):put()",
    "put nil": "local c = fiber.channel(1) return c:put(nil), c:count(), c:get(), c:count()",
    "messages in order": (
        "local c = fiber.channel(3) for i = 1, 3 do c:put(i) end"
        " return c:put(4, 0), c:get(), c:get(), c:get(), c:get(0)"
    ),
    "a channel that is full": "local c = fiber.channel(1) return c:put(1), c:put(2, 0.01), c:get(), c:get(0)",
    "a channel that is closed": (
        "local c = fiber.channel(1) c:put(5) c:close() return c:get(), c:is_closed(), c:put(1), c:count()"
    ),
    "a channel that is closed twice": "local c = fiber.channel(1) c:close() return c:close()",
    "get with a text": "return fiber.channel(1):get('a')",
    "get with a negative time": "return fiber.channel(1):get(-1)",
    "get without a channel": "return fiber.channel(1).get()",
    "a reader waits": (
        "local c, got = fiber.channel(), nil fiber.create(function() got = c:get() end)"
        " local waited = c:has_readers() c:put('x') fiber.yield() return waited, got"
    ),
    "a writer waits": (
        "local c, put = fiber.channel(), nil fiber.create(function() put = c:put('x') end)"
        " local waited = c:has_writers() local got = c:get() fiber.yield() return waited, got, put"
    ),
    "a reader hears of the end": (
        "local c, got = fiber.channel(), 1 fiber.create(function() got = c:get() end) c:close() fiber.yield()"
        " return got"
    ),
    "a writer hears of the end": (
        "local c, put = fiber.channel(), 1 fiber.create(function() put = c:put(1) end)"
        " c:close() fiber.yield() return put"
    ),
}


@pytest.mark.real_tarantool
@pytest.mark.parametrize("name", SNIPPETS)
def test_alike(ours: OurLua, real: TarantoolLua, name: str) -> None:
    snippet = PREAMBLE + SNIPPETS[name]
    assert ours.run(snippet) == real.run(snippet)
