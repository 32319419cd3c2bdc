"""A box and its dispatcher, which answers on the fast path or beside it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import msgpack

from iproto_server import Application, Box, BoxError, ErrorCode, ManualClock, Waiter, WaitQueue
from iproto_server.app import Procedures
from iproto_server.protocol.constants import PROTOCOL_VERSION, Key, RequestType
from iproto_server.server.limits.rate_limited_log import RateLimitedLog
from iproto_server.server.requests.dispatcher import Dispatcher
from iproto_server.storage.vclock import VClock
from iproto_server.storage.wal import WalMode, WriteAheadLog
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
            self.box, Procedures([app]), (), PROTOCOL_VERSION, no_coroutines, self.limited
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


def no_coroutines(session: object, coroutine: Any) -> Waiter:
    coroutine.close()
    raise BoxError(ErrorCode.UNSUPPORTED, "This test", "coroutines")


def request(kind: int, body: object, header: dict[int, object] | None = None) -> bytes:
    packed: bytes = msgpack.packb({int(Key.REQUEST_TYPE): kind, int(Key.SYNC): 7, **(header or {})})
    return packed if body is None else packed + bytes(msgpack.packb(body))


def call(name: object, *arguments: object, header: dict[int, object] | None = None) -> bytes:
    return request(RequestType.CALL, {int(Key.FUNCTION_NAME): name, int(Key.TUPLE): list(arguments)}, header)
