"""What Lua code no longer needs is freed: the memory in use is the same after each round."""

from __future__ import annotations

import sys

import pytest

from tests.lua.snippets import OurLua

USED = """
local function used()
    collectgarbage()
    collectgarbage()
    return collectgarbage('count')
end
"""

SLACK = 300
"""Kilobytes that the sizes of tables differ by, which grow and shrink in steps."""

STEPS = {
    "json": "local json = require('json') step = function() json.decode(json.encode{a = {1, {b = 2}}}) end",
    "json errors": "local json = require('json') step = function() pcall(json.decode, '{') end",
    "yaml": (
        "local yaml, t = require('yaml'), {1} t[2] = t "
        "step = function() yaml.decode(yaml.encode{a = {1, 'x', t}}) end"
    ),
    "yaml errors": "local yaml = require('yaml') step = function() pcall(yaml.decode, '{') end",
    "decimal": "local decimal = require('decimal') step = function() tostring(decimal.new('1.5') * 3) end",
    "uuid": "local uuid = require('uuid') step = function() uuid.fromstr(uuid.new():str()) end",
    "files": "local fio = require('fio') step = function() fio.open('/dev/null') fio.stat('/') end",
    "file errors": "local fio = require('fio') step = function() fio.open('/no/such/file') end",
    "ciphers": (
        "local aes, key = require('crypto').cipher.aes128.cbc, ('k'):rep(16) "
        "step = function() aes.encrypt('text', key, key) pcall(aes.decrypt, 'x', key, key) end"
    ),
    "digests": "local digest = require('digest') step = function() digest.sha256_hex('x') end",
    "channels and conditions": (
        "local fiber = require('fiber') "
        "step = function() local c = fiber.channel(1) c:put(c) c:get() fiber.cond():signal() end"
    ),
    "coroutines": "step = function() coroutine.wrap(function() coroutine.yield(1) end)() end",
    "errors of fibers": (
        "local fiber = require('fiber') step = function() "
        "local f = fiber.new(error, 'x') f:set_joinable(true) f:join() end"
    ),
    "timers": (
        "local fiber = require('fiber') step = function() "
        "local f = fiber.create(fiber.sleep, 1000) f:cancel() fiber.sleep(0) end"
    ),
}


def number_in(described: str) -> float:
    """The number that a snippet has returned."""
    assert described.startswith("ok "), described
    return float(described.removeprefix("ok "))


def growth(ours: OurLua, setup: str, count: int) -> float:
    """Kilobytes by which the memory in use grows from one round of `step` to the next."""
    described = ours.run(
        f"local step {setup} {USED} for _ = 1, {count} do step() end local before = used() "
        f"for _ = 1, {count} do step() end return used() - before"
    )
    assert described.startswith("ok "), described
    return float(described.removeprefix("ok "))


@pytest.mark.parametrize("name", STEPS)
def test_loops_leave_nothing_behind(ours: OurLua, name: str) -> None:
    blocks = sys.getallocatedblocks()
    assert growth(ours, STEPS[name], 3000) < SLACK
    assert sys.getallocatedblocks() - blocks < 10000


COLLECTIONS = """
local collections = 0
getmetatable(newproxy(true)).__gc = function(object)
    collections = collections + 1
    newproxy(object)
end
local function collections_for(megabytes)
    collectgarbage()
    local before, last = collections, {}
    for number = 1, megabytes * 1024 do last[1] = ('x'):rep(1024) .. number end
    return collections - before
end
"""


def test_few_objects_are_not_collected_all_the_time(ours: OurLua) -> None:
    count = number_in(ours.run(COLLECTIONS + "return collections_for(128)"))
    assert 128 / 64 < count <= 128 / 16 + 1


def test_code_may_set_the_pause_of_the_collector(ours: OurLua) -> None:
    ours.run("collectgarbage('setpause', 150)")
    used = number_in(ours.run(USED + "return used()")) / 1024
    count = number_in(ours.run(COLLECTIONS + "return collections_for(64)"))
    ours.run("collectgarbage('setpause', 200)")
    assert count > 64 / used


@pytest.mark.slow
def test_a_million_fibers_leave_nothing_behind(ours: OurLua) -> None:
    created = (
        "local fiber, made = require('fiber'), 0 step = function() "
        "fiber.create(function() end) made = made + 1 if made % 1000 == 0 then fiber.sleep(0) end end"
    )
    assert growth(ours, created, 500_000) < SLACK
    assert ours.run("local n = 0 for _ in pairs(require('fiber').info()) do n = n + 1 end return n") == "ok 1"


def test_fibers_that_wait_are_freed_when_they_end(ours: OurLua) -> None:
    waiting = (
        "local fiber, made = require('fiber'), 0 step = function() "
        "fiber.create(fiber.sleep, 0) made = made + 1 if made % 500 == 0 then fiber.sleep(0.001) end end"
    )
    assert growth(ours, waiting, 20_000) < SLACK
