"""`tuple:update` and `tuple:upsert`."""

from __future__ import annotations

import logging

import pytest

from tests.lua.snippets import OurLua, TarantoolLua
from tests.lua.values.alike import PREFIX, assert_alike

TUPLE = "local t = box.tuple.new{1, 'abc', 10, {1, 2, {a = 5}}, 1.5} "

OPERATIONS = [
    "",
    "5",
    "nil",
    "'x'",
    "box.NULL",
    "{}",
    "{a = 1}",
    "{'=', 1, 5}",
    "{{'=', 1, 5}}",
    "{{'=', 1, 5}}, 6",
    "{{'+', 3, 5}, {'-', 1, 1}}",
    "{{'!', 1, 'x'}}",
    "{{'#', 1, 2}}",
    "{{':', 2, 2, 1, 'ZZ'}}",
    "{{'=', -1, 'last'}}",
    "{{'=', 0, 1}}",
    "{{'=', 10, 1}}",
    "{{'=', 6, 1}}",
    "{{'?', 1, 1}}",
    "{{'+', 2, 1}}",
    "{{'=', 'name', 1}}",
    "{{'=', '[4][1]', 100}}",
    "{{'+', '[4][3].a', 1}}",
    "{{'#', '[4][2]', 1}, {'!', '[4][1]', 7}}",
    "{{'=', 1}}",
    "{{}}",
    "{5}",
    "{{'+', 1, 'x'}}",
    "{{'&', 3, 3}, {'|', 1, 6}}",
    "{{'^', 3, 1}}",
    "{{'+', 1, 18446744073709551615ULL}}",
    "{{'=', 1, print}}",
    "{{'=', 1, coroutine.create(print)}}",
    "{{'=', 1, box.NULL}}",
    "{{'=', 2, nil}}",
    "box.tuple.new{{'=', 1, 5}}",
    "{box.tuple.new{'=', 1, 5}}",
    "{{'=', 1.5, 3}}",
    "{{5, 1, 1}}",
    "{{'=', 1, 5}, {'=', 1, 6}}",
    "{{'#', 1, 100}}",
    "{{'#', 1, 0}}",
    "{{'#', 1, -1}}",
    "{{'-', 5, 0.5}}",
    "{{'+', 5, require('decimal').new('1.1')}}",
    "{{'=', 4, box.tuple.new{1}}}",
    "{{'!', 7, 1}}",
    "{{'=', {1}, 1}}",
    "{[1] = {'=', 1, 5}, [3] = {'=', 1, 5}}",
    "{{'=', 1, {[1] = 1, [20] = 2}}}",
    "{{'=', 1, setmetatable({1}, {__serialize = 'map'})}}",
    "{{'=', 1, setmetatable({1}, {__serialize = function() return 'ser' end})}}",
    "{{'=', 1, require('ffi').new('int8_t', 3)}}",
    "many(4000)",
    "many(4001)",
]
MANY = (
    "local function many(count) local all = {} for n = 1, count do all[n] = {'=', 1, n} end return all end "
)


@pytest.mark.real_tarantool
@pytest.mark.parametrize("method", ["update", "upsert"])
@pytest.mark.parametrize("operations", OPERATIONS)
def test_operations_are_alike(ours: OurLua, real: TarantoolLua, operations: str, method: str) -> None:
    raised = "return t, type(t) == 'cdata' and not box.tuple.is(t) and t:unpack()"
    assert_alike(
        ours,
        real,
        f"{TUPLE}{MANY}local _, t = pcall(t.{method}, t, {operations}) {raised}".replace(", )", ")"),
    )


@pytest.mark.real_tarantool
@pytest.mark.parametrize("call", ["update()", "update({}, {})", "upsert()", "upsert({}, {})", "update(5)"])
def test_wrong_calls_are_alike(ours: OurLua, real: TarantoolLua, call: str) -> None:
    assert_alike(ours, real, f"return box.tuple.{call}")


def test_skipped_operations_are_logged(ours: OurLua, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "iproto_server.lua"):
        assert "[2, 'abc'" in ours.run(f"{PREFIX}{TUPLE}return t:upsert{{{{'+', 1, 1}}, {{'+', 2, 1}}}}")
    assert caplog.messages == [
        "UPSERT operation failed: Argument type in operation '+' on field 2 does not match field type: "
        "expected a number"
    ]
