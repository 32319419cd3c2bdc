"""Zero bytes in the texts of errors of procedures: a real Tarantool and our server answer alike."""

from __future__ import annotations

from pathlib import Path

import pytest
import uvloop

from iproto_server import Application, Box, BoxError
from tests.iproto_client import IprotoClient
from tests.real_tarantool import GUEST_IS_SUPER, RealTarantool
from tests.server.in_process import ServerInProcess

pytestmark = pytest.mark.real_tarantool

LUA = (
    GUEST_IS_SUPER
    + r"""
function in_text() box.error{code = 1000, reason = 'abc\0def'} end
function first() box.error{code = 1000, reason = '\0def'} end
function in_cause()
    local cause = box.error.new{code = 1000, reason = 'one\0x'}
    local effect = box.error.new{code = 1001, reason = 'two\0y'}
    effect:set_prev(cause)
    effect:raise()
end
function raised() error('abc\0def', 0) end
"""
)
app = Application("texts")


@app.procedure("in_text")
def in_text(box: Box) -> None:
    raise BoxError.with_message(1000, "abc\0def")


@app.procedure("first")
def first(box: Box) -> None:
    raise BoxError.with_message(1000, "\0def")


@app.procedure("in_cause")
def in_cause(box: Box) -> None:
    cause = BoxError.with_message(1000, "one\0x")
    raise BoxError.with_message(1001, "two\0y", previous=cause)


@app.procedure("raised")
def raised(box: Box) -> None:
    raise BoxError.procedure("abc\0def")


def test_a_text_ends_at_its_first_zero_byte(tmp_path: Path) -> None:
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
    with (
        RealTarantool(tmp_path / "theirs", LUA) as real,
        ServerInProcess(tmp_path / "ours", [app], loop=uvloop.new_event_loop()) as server,
        IprotoClient.at(real.address) as theirs,
    ):
        ours = server.connect()
        for name in ("in_text", "first", "in_cause", "raised"):
            answers = [client.call(name) for client in (ours, theirs)]
            told = [(answer.failure, answer.error_stack) for answer in answers]
            assert told[0] == told[1], name
            assert "\0" not in str(told[0])
