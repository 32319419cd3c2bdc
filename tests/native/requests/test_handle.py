"""Requests get the same answers from the fast path and from Python's handlers, refusals included."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server import Application, Box, BoxError, ErrorCode, ManualClock, Waiter, WaitQueue
from iproto_server.app import Procedures
from iproto_server.box.txn.journal import MemoryJournal
from iproto_server.protocol.constants import PROTOCOL_VERSION, Key, RequestType
from iproto_server.server.limits.rate_limited_log import RateLimitedLog
from iproto_server.server.requests.dispatcher import Dispatcher
from iproto_server.storage.vclock import VClock
from iproto_server.storage.wal import WalMode, WriteAheadLog
from tests.plugins.profiles import examples
from tests.server.faults.faulty_disk import FaultyDisk

SPACE = 600

SIMILAR = [
    *("ab", "ba", "éa", "aé"),
    *(head + "a" * size for head in "xyz" for size in (1, 30, 31, 60, 61, 62, 80, 300)),
]
"""Names of procedures."""


def application() -> Application:
    """Procedures that end in all ways in which a procedure may end."""
    app = Application("ends")

    @app.setup
    def setup(box: Box) -> None:
        space = box.schema.create_space("rows", id=SPACE)
        space.create_index("primary", parts=[(0, "unsigned")])
        other = box.schema.create_space("scratch", temporary=True)
        other.create_index("primary", parts=[(0, "unsigned")])
        twofold = box.schema.create_space("twofold")
        twofold.create_index("primary", parts=[(1, "string"), (0, "unsigned")])
        box.line = WaitQueue(box)  # type: ignore[attr-defined]
        box.told = []  # type: ignore[attr-defined]

    def procedure(function: Callable[..., Any]) -> None:
        app.procedure(function.__name__)(function)

    @procedure
    def echo(box: Box, *values: object) -> object:
        return values

    @procedure
    def one(box: Box, value: object = None) -> object:
        return value

    @procedure
    def put(box: Box, key: int, text: str = "") -> object:
        return box.space.rows.replace([key, text])

    @procedure
    def put_everywhere(box: Box, key: int) -> None:
        box.space.rows.replace([key])
        box.space.scratch.replace([key])
        box.space.twofold.replace([key, "x"])

    @procedure
    def put_beside(box: Box, key: int) -> None:
        box.space.scratch.replace([key])
        box.space.rows.replace([key])
        box.space.scratch.delete([key])

    @procedure
    def drop_beside(box: Box, key: int) -> None:
        box.space.scratch.replace([key])
        box.space.rows.delete([key])
        box.space.scratch.replace([key + 1])

    @procedure
    def put_aside(box: Box, key: int) -> None:
        box.space.scratch.replace([key])

    @procedure
    def put_twofold(box: Box, key: int) -> None:
        box.space.twofold.replace([key, "x"])

    @procedure
    def drop(box: Box, key: int) -> object:
        return box.space.rows.delete(key)

    @procedure
    def drop_twofold(box: Box, key: int) -> object:
        return box.space.twofold.delete(["x", key])

    @procedure
    def put_and_tell(box: Box, key: int) -> None:
        box.on_commit(lambda: box.told.append(("kept", key)))  # type: ignore[attr-defined]
        box.on_rollback(lambda: box.told.append(("lost", key)))  # type: ignore[attr-defined]
        box.space.rows.replace([key])

    @procedure
    def put_and_fail(box: Box, key: int, kind: str) -> None:
        box.on_rollback(lambda: box.told.append(("undone", key)))  # type: ignore[attr-defined]
        box.space.rows.replace([key])
        if kind == "box":
            raise BoxError(ErrorCode.TUPLE_FOUND, "a", "b")
        if kind == "type":
            raise TypeError("no argument of ours")
        raise ValueError(kind)

    @procedure
    def put_and_wait(box: Box, key: int) -> Waiter:
        box.space.rows.replace([key])
        return box.line.park(10, lambda: key)  # type: ignore[attr-defined,no-any-return]

    @procedure
    def wake(box: Box) -> None:
        box.line.wake()  # type: ignore[attr-defined]

    @procedure
    def unpackable(box: Box) -> object:
        box.space.rows.replace([99])
        return object()

    @procedure
    def asynchronous(box: Box) -> object:
        return None

    @procedure
    def who(box: Box) -> object:
        return box.session.id(), box.session.user(), box.session.sync()

    def named(name: str) -> None:
        app.procedure(name)(lambda box, *values: [name, *values])

    for name in SIMILAR:
        named(name)

    @procedure
    def wrap(box: Box, key: int) -> object:
        """Ends its transaction, as a call of the server's own within it does not."""
        return box.run(box.session.background, lambda: key)

    return app


class Client:
    """What a dispatcher uses of a connection."""

    def __init__(self, box: Box, user: str) -> None:
        self.session = box.session.open("binary", "a test", user=user)
        self.salt = b""
        self.streams = None
        self.received: list[object] = []

    def reply(self, response: bytes) -> None:
        self.received.append(response)

    def wait_for(self, waiter: Waiter, respond: Callable[[Waiter], bytes]) -> None:
        waiter.on_done(lambda waiter: self.received.append(("later", respond(waiter))))


class Side:
    """A box and its dispatcher, which answers on the fast path or by Python's handlers."""

    def __init__(
        self, is_compiled: bool, directory: Path | None = None, mode: WalMode = WalMode.WRITE
    ) -> None:
        self.box = Box(clock=ManualClock())
        app = application()
        for setup in app.setups:
            self.box.run(self.box.session.background, setup, self.box)
        self.disk = FaultyDisk()
        self.log: Any = None
        self.writes = 0
        if directory is not None:
            self.log = self.box.transactions.journal = WriteAheadLog(
                directory,
                mode,
                UUID(int=1),
                1,
                VClock({1: 126}),
                clock=lambda: 1700000000.25,
                open_file=self.disk.open,
                sync_file=self.disk.sync,
            )
            self.box.transactions.write_soon = self._write_soon
        self.limited = RateLimitedLog(logging.getLogger(__name__), self.box.clock)
        self.dispatcher = Dispatcher(
            self.box, Procedures([app]), (), PROTOCOL_VERSION, _no_coroutines, self.limited
        )
        if not is_compiled:
            self.dispatcher.handle = self.dispatcher._answer
        self.clients = {user: Client(self.box, user) for user in ("admin", "guest")}

    def _write_soon(self) -> None:
        self.writes += 1

    def handle(self, frame: bytes, user: str = "admin") -> object:
        """What comes at once, and what the request leaves behind."""
        client = self.clients[user]
        before = len(client.received)
        self.dispatcher.handle(client, frame)  # type: ignore[arg-type]
        transactions = self.box.transactions
        assert transactions.statements is None
        assert self.box.session.current is self.box.session.background
        return (
            client.received[before:],
            transactions.has_logged,
            transactions.is_write_due,
            [len(committed) for committed in transactions.unwritten],
            [len(committed.on_rollback) for committed in transactions.unwritten],
            None if self.log is None else self._waiting(),
            self.writes,
            list(self.box.told),  # type: ignore[attr-defined]
        )

    def _waiting(self) -> tuple[int, int, float]:
        rows = self.log.waiting
        return len(rows), rows.lsn, rows.timestamp

    def write(self) -> object:
        """Write the log, as a batch does."""
        transactions = self.box.transactions
        transactions.is_write_due = False
        taken = transactions.take_unwritten()
        try:
            self.log.write()
        except BoxError as error:
            transactions.undo(taken)
            return error.code
        return None

    def state(self) -> object:
        """What all requests together have left behind."""
        spaces = [
            [list(row) for row in self.box.space[name].select()] for name in ("rows", "scratch", "twofold")
        ]
        return (
            spaces,
            dict(self.dispatcher.requests),
            self.dispatcher.errors,
            self.box.transactions.journal.position(),
            [client.session.sync for client in self.clients.values()],
        )


def _no_coroutines(session: object, coroutine: Any) -> Waiter:
    coroutine.close()
    raise BoxError(ErrorCode.UNSUPPORTED, "This test", "coroutines")


def request(kind: int, body: object, header: dict[int, object] | None = None) -> bytes:
    packed: bytes = msgpack.packb({int(Key.REQUEST_TYPE): kind, int(Key.SYNC): 7, **(header or {})})
    return packed if body is None else packed + bytes(msgpack.packb(body))


def call(name: object, *arguments: object, header: dict[int, object] | None = None) -> bytes:
    return request(RequestType.CALL, {int(Key.FUNCTION_NAME): name, int(Key.TUPLE): list(arguments)}, header)


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
        side.box, Procedures([application()]), (), PROTOCOL_VERSION, _no_coroutines, side.limited
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
