"""The module uuid: examples that a real Tarantool agrees with."""

from __future__ import annotations

import pytest

from tests.lua.modules.alike import described
from tests.lua.snippets import OurLua, TarantoolLua

PREAMBLE = "local uuid = require('uuid') local one = uuid.fromstr('c8f0fa1f-da29-438c-a040-393f1126ad39') "


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        (
            "one:str(), tostring(one)",
            'ok "c8f0fa1f-da29-438c-a040-393f1126ad39" "c8f0fa1f-da29-438c-a040-393f1126ad39"',
        ),
        ("one:bin():hex()", 'ok "1ffaf0c829da8c43a040393f1126ad39"'),
        ("one:bin('l'):hex()", 'ok "1ffaf0c829da8c43a040393f1126ad39"'),
        ("one:bin('b'):hex()", 'ok "c8f0fa1fda29438ca040393f1126ad39"'),
        ("one:bin('n'):hex()", 'ok "c8f0fa1fda29438ca040393f1126ad39"'),
        ("one:bin('h'):hex()", 'ok "1ffaf0c829da8c43a040393f1126ad39"'),
        ("type(one), one.time_low, one.time_mid, one.node[5]", 'ok "cdata" 3371235871 55849 57'),
    ],
)
def test_a_uuid_has_a_text_and_bytes(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        (
            "uuid.fromstr('C8F0FA1F-DA29-438C-A040-393F1126AD39')",
            "ok cdata:ctype<struct tt_uuid>:c8f0fa1f-da29-438c-a040-393f1126ad39",
        ),
        ("uuid.frombin(one:bin()) == one", "ok true"),
        ("uuid.frombin(one:bin('b'), 'b') == one", "ok true"),
        ("uuid.fromstr('')", "ok nil"),
        ("uuid.fromstr('c8f0fa1f-da29-438c-a040-393f1126ad3')", "ok nil"),
        ("uuid.fromstr('c8f0fa1f+da29-438c-a040-393f1126ad39')", "ok nil"),
        ("uuid.fromstr('x8f0fa1f-da29-438c-a040-393f1126ad39')", "ok nil"),
        ("uuid.fromstr('c8f0fa1f-da29-438c-f040-393f1126ad39')", "ok nil"),
    ],
)
def test_a_uuid_of_a_text_or_bytes(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("uuid.NULL", "ok cdata:ctype<const struct tt_uuid>:00000000-0000-0000-0000-000000000000"),
        ("uuid.NULL:isnil(), one:isnil()", "ok true false"),
        ("uuid.fromstr('00000000-0000-0000-0000-000000000000') == uuid.NULL", "ok true"),
        ("uuid.frombin(('\\0'):rep(16)):isnil()", "ok true"),
    ],
)
def test_the_nil_uuid(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("one == uuid.fromstr(one:str()), one ~= uuid.NULL", "ok true true"),
        ("one == 'c8f0fa1f-da29-438c-a040-393f1126ad39', one == nil, one == 1", "ok false false false"),
        ("one < uuid.NULL", "error \"snippet:1: attempt to compare 'struct tt_uuid' with 'struct tt_uuid'\""),
    ],
)
def test_uuids_are_compared(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("uuid.new() ~= uuid.new(), #uuid.str(), #uuid.bin(), uuid():isnil()", "ok true 36 16 false"),
        ("uuid.str():match('^%x+%-%x+%-4%x+%-[89ab]%x+%-%x+$') ~= nil", "ok true"),
    ],
)
def test_new_uuids_are_different(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("require('json').encode({one})", 'ok "[\\034c8f0fa1f-da29-438c-a040-393f1126ad39\\034]"'),
        ("require('yaml').encode({one})", 'ok "---\\010- c8f0fa1f-da29-438c-a040-393f1126ad39\\010...\\010"'),
    ],
)
def test_uuids_are_serialized(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("uuid.fromstr()", 'error "builtin: fromstr(str)"'),
        ("uuid.fromstr(5)", 'error "builtin: fromstr(str)"'),
        ("uuid.frombin('x')", 'error "builtin: frombin(bin, [byteorder])"'),
        ("uuid.frombin()", 'error "builtin: frombin(bin, [byteorder])"'),
        ("uuid.frombin(one:bin(), 'x')", 'error "builtin: invalid byteorder, valid is l, b, h, n"'),
        ("one:bin('x')", 'error "builtin: invalid byteorder, valid is l, b, h, n"'),
        ("uuid.bin('x')", 'error "builtin: invalid byteorder, valid is l, b, h, n"'),
        ("one.str()", 'error "Usage: uuid:str()"'),
        ("one.bin()", 'error "Usage: uuid:bin([byteorder])"'),
        ("one.isnil(5)", 'error "Usage: uuid:isnil()"'),
        ("one.other", "error \"snippet:1: 'struct tt_uuid' has no member named 'other'\""),
    ],
)
def test_wrong_arguments_are_errors(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result
