"""Requests are answered the same on the fast path and beside it, whatever becomes of them."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server import Application, Box
from iproto_server.app import Procedures
from iproto_server.box.txn.journal import MemoryJournal
from iproto_server.protocol.constants import PROTOCOL_VERSION, Key, RequestType
from iproto_server.server.requests.dispatcher import Dispatcher
from iproto_server.storage.wal import WalMode
from tests.native.requests.sides import (
    SIMILAR,
    SPACE,
    Side,
    application,
    call,
    no_coroutines,
    request,
)
from tests.plugins.profiles import examples

keys = st.integers(0, 3)
calls = (
    st.builds(call, st.sampled_from(["echo", "one"]), keys | st.text(max_size=3) | st.none())
    | st.builds(call, st.sampled_from(["put", "drop", "drop_twofold", "put_everywhere", "put_aside"]), keys)
    | st.builds(call, st.sampled_from(["put_beside", "drop_beside"]), keys)
    | st.builds(call, st.sampled_from(["put_twofold", "put_and_tell", "put_and_wait", "wrap"]), keys)
    | st.builds(call, st.just("put_and_fail"), keys, st.sampled_from(["box", "type", "value"]))
    | st.builds(
        call, st.sampled_from(["wake", "unpackable", "who", "echo", "one", "put", "box.nothing", "nothing"])
    )
    | st.just(request(RequestType.PING, {}))
    | st.just(request(RequestType.PING, None))
)


@examples(40)
@given(st.lists(calls | st.none(), max_size=12), st.sampled_from(["admin", "guest"]))
def test_random_requests(frames: list[bytes | None], user: str) -> None:
    compiled, python = Side(is_compiled=True), Side(is_compiled=False)
    for frame in frames:
        if frame is not None:
            assert compiled.handle(frame, user) == python.handle(frame, user)
    assert compiled.state() == python.state()


@pytest.mark.parametrize("mode", WalMode)
def test_requests_and_the_log(tmp_path: Path, mode: WalMode) -> None:
    """The rows that wait, those who are to be told, and what a failed write undoes."""
    sides = []
    for is_compiled in (True, False):
        directory = tmp_path / str(is_compiled)
        directory.mkdir()
        sides.append(Side(is_compiled, directory, mode))
    steps: list[bytes | str] = [
        call("put", 1, "a"),
        call("put", 1, "b"),
        call("put", 2**33, "é" * 300),
        call("drop", 1),
        call("drop", 1),
        call("put_twofold", 5),
        call("drop_twofold", 5),
        call("put_aside", 6),
        "write",
        call("put_aside", 7),
        call("one", 1),
        "break",
        call("put_and_tell", 8),
        call("put_everywhere", 9),
        "write",
        call("put", 10),
        "mend",
        call("put", 11),
        call("put", 12),
        "write",
        call("put_and_fail", 13, "box"),
        "close",
        call("put", 14),
        call("put_and_tell", 15),
    ]
    for step in steps:
        if isinstance(step, bytes):
            told = [side.handle(step) for side in sides]
        elif step == "write":
            told = [side.write() for side in sides]
        elif step == "close":
            told = [side.log.close() for side in sides]
        else:
            for side in sides:
                side.disk.fault = errno.ENOSPC if step == "break" else None
            told = [None, None]
        assert told[0] == told[1], step
    assert sides[0].state() == sides[1].state()
    logs = [
        {path.name: path.read_bytes() for path in (tmp_path / str(is_compiled)).iterdir()}
        for is_compiled in (True, False)
    ]
    assert logs[0] == logs[1]


ODD = {
    "many arguments": call("echo", *range(40)),
    "arguments of extension types": call("echo", msgpack.ExtType(1, b"\x00\x1c"), msgpack.Timestamp(1)),
    "bytes and floats": call("echo", b"\x00", 1.5, -1, 2**63, True, {"a": [1, {2: None}]}),
    "too many arguments": call("one", 1, 2, 3),
    "a wrong key": call("put", -1),
    "a name that is no text": call(b"echo", 1),
    "an empty name": call(""),
    "a function of the server's": call("box.space.rows:select", [1]),
    "a setuid function": call("box.schema.user.info"),
    "a function that is not there": call("box.nothing"),
    "no name": request(RequestType.CALL, {int(Key.TUPLE): []}),
    "no arguments": request(RequestType.CALL, {int(Key.FUNCTION_NAME): "one"}),
    "arguments that are no array": request(
        RequestType.CALL, {int(Key.FUNCTION_NAME): "one", int(Key.TUPLE): 1}
    ),
    "one key twice": request(RequestType.CALL, None) + b"\x82\x21\x90\x21\x90",
    "more keys": request(
        RequestType.CALL, {int(Key.FUNCTION_NAME): "one", int(Key.TUPLE): [1], int(Key.SPACE_ID): 1}
    ),
    "bytes behind the body": call("one", 1) + b"\x80",
    "half a body": call("one", 1)[:-1],
    "no body": request(RequestType.CALL, None),
    "a schema version": call("one", 1, header={int(Key.SCHEMA_VERSION): 1}),
    "a ping with a body": request(RequestType.PING, {1: [2, {3: 4}]}),
    "a ping with half a body": request(RequestType.PING, {1: 2})[:-1],
    "a ping with no map": request(RequestType.PING, 5),
    "a ping with a schema version": request(RequestType.PING, {}, {int(Key.SCHEMA_VERSION): 1}),
    "an unknown type": request(99, {}),
    "another request": request(RequestType.SELECT, {int(Key.SPACE_ID): SPACE}),
    "nothing": b"",
    "a header that ends": b"\x82\x00",
    "a call of another generation": request(
        RequestType.CALL_16, {int(Key.FUNCTION_NAME): "one", int(Key.TUPLE): [1]}
    ),
    "a large sync": msgpack.packb({0: 10, 1: 2**64 - 1}) + msgpack.packb({0x22: "who", 0x21: []}),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("user", ["admin", "guest"])
def test_odd_requests(name: str, user: str) -> None:
    compiled, python = Side(is_compiled=True), Side(is_compiled=False)
    assert compiled.handle(ODD[name], user) == python.handle(ODD[name], user)
    assert compiled.state() == python.state()


def test_procedures_with_similar_names() -> None:
    sides = [Side(is_compiled) for is_compiled in (True, False)]
    names = [*SIMILAR, *reversed(SIMILAR), "xb", "xa", *(name[:-1] for name in SIMILAR), *SIMILAR]
    for name in names:
        frame = call(name, name)
        assert sides[0].handle(frame) == sides[1].handle(frame)


def test_a_read_only_box() -> None:
    answers = []
    for is_compiled in (True, False):
        side = Side(is_compiled)
        side.box.set_read_only(True)
        answers.append((side.handle(call("put", 1)), side.handle(call("one", 1)), side.state()))
    assert answers[0] == answers[1]


def test_whoever_wants_to_know_of_changes() -> None:
    answers = []
    for is_compiled in (True, False):
        side = Side(is_compiled)
        seen: list[object] = []

        def on_change(statements: Any, is_undone: bool, seen: list[object] = seen) -> list[Any]:
            seen.append((len(statements), is_undone))
            return [lambda: seen.append("told")]

        side.box.transactions.on_change = on_change
        answers.append((side.handle(call("put", 1)), side.handle(call("one", 1)), side.state(), seen))
    assert answers[0] == answers[1]


def test_a_journal_that_raises() -> None:
    """A fault of ours: the change is undone, and the request answered."""

    class Broken(MemoryJournal):
        def append(self, statements: Sequence[Any]) -> bool:
            raise RuntimeError("no journal")

    answers = []
    for is_compiled in (True, False):
        side = Side(is_compiled)
        side.box.transactions.journal = Broken()
        answers.append((side.handle(call("put_and_tell", 1)), side.state()))
    assert answers[0] == answers[1]


def test_what_is_no_exception_is_answered_too() -> None:
    class Stop(BaseException):
        pass

    def stop(box: Box) -> None:
        box.space.rows.replace([1])
        raise Stop

    for is_compiled in (True, False):
        side = Side(is_compiled)
        app = Application("stops")
        app.procedure("stop")(stop)
        side.dispatcher.calls.serve(Procedures([app]))
        client = side.clients["admin"]
        side.dispatcher.handle(client, call("stop"))  # type: ignore[arg-type]
        assert b"Stop: " in str(client.received[-1]).encode()
        assert side.box.transactions.statements is None
        assert side.box.session.current is side.box.session.background
        assert side.box.space.rows.len() == 0


class Watched(Dispatcher):
    """Notes what is left to Python."""

    def _answer(self, connection: Any, frame: bytes) -> None:
        self.left.append(frame)
        super()._answer(connection, frame)

    left: list[bytes]


def test_what_is_usual_is_not_left_to_python() -> None:
    side = Side(is_compiled=True)
    watched = Watched(
        side.box, Procedures([application()]), (), PROTOCOL_VERSION, no_coroutines, side.limited
    )
    watched.left = []
    usual = [request(RequestType.PING, {}), call("put", 1), call("echo", 1, None), call("put_and_wait", 2)]
    for frame in [*usual, ODD["an empty name"]]:
        watched.handle(side.clients["admin"], frame)  # type: ignore[arg-type]
    assert watched.left == [ODD["an empty name"]]
    watched.handle(side.clients["guest"], usual[1])  # type: ignore[arg-type]
    assert watched.left[1:] == usual[1:2]


def test_procedures_are_found_by_names_of_all_lengths_until_there_are_others() -> None:
    app = Application("names")
    names = ["n" * size for size in (1, 2, 31, 32, 48, 49, 300)] + [f"x{number}y" for number in range(10, 20)]
    names += ["é", "né" * 20, "x\0y"]
    for name in names:
        app.procedure(name)(lambda box, name=name: name)
    frames = [call(name) for name in [*names, "", "x20y", "n" * 47, b"n", b"\xff"]]
    frames += [
        request(RequestType.CALL, None) + b"\x82\x22\xd9\x02nn\x21\x90",
        *(frame[:size] for frame in frames[:4] for size in range(len(frame) - 4, len(frame))),
    ]
    told = []
    for is_compiled in (True, False):
        side = Side(is_compiled)
        answers: list[object] = []
        for procedures in ([app], [], [app]):
            side.dispatcher.calls.serve(Procedures(procedures))
            answers += [side.handle(frame) for frame in frames + frames[::-1]]
        told.append((answers, side.state()))
    assert told[0] == told[1]


def test_requests_are_counted_once_whoever_asks() -> None:
    side = Side(True)
    for frame in (call("one"), request(RequestType.PING, {}), call("no such procedure"), call("one")):
        side.handle(frame)
        assert sum(side.dispatcher.requests.values()) == sum(side.dispatcher.requests.values())
    assert side.dispatcher.requests == {RequestType.CALL: 3, RequestType.PING: 1}
