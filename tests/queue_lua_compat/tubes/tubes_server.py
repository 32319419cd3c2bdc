"""A box that serves tubes, without sockets, and can be started again on the same rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from iproto_server import Application, Box, BoxError, ManualClock, Tuple, Waiter
from iproto_server.box.api.generation import CodeGeneration
from iproto_server.box.txn.journal import MemoryJournal
from iproto_server.box.txn.statement import Statement
from queue_lua_compat.tubes.driver import Drivers
from queue_lua_compat.tubes.drivers.fifo import FifoDriver
from queue_lua_compat.tubes.drivers.fifottl import FifoTtlDriver
from queue_lua_compat.tubes.drivers.limfifottl import LimitedFifoTtlDriver
from queue_lua_compat.tubes.drivers.utube import UtubeDriver
from queue_lua_compat.tubes.drivers.utubettl import UtubeTtlDriver
from queue_lua_compat.tubes.procedures import Procedures
from queue_lua_compat.tubes.queue import Queue
from queue_lua_compat.tubes.tube import Tube

_FIRST_SPACE = 512


class Client:
    """One connection's session: calls procedures as the server's dispatcher does.

    Args:
        server: The server.
        user: Who it is.
    """

    def __init__(self, server: TubesServer, user: str = "admin") -> None:
        self.box = server.box
        self._server = server
        self.session = self.box.session.open("binary", "127.0.0.1:50000", user=user)

    def call(self, name: str, *arguments: object) -> Any:
        """What the procedure answers: one value plain, several as a tuple; a `Waiter` when it waits."""
        procedures = self._server.application.procedures
        if name in procedures:
            function = procedures[name].function
        else:
            found = self._server.procedures.find(name)
            assert found is not None, f"there is no procedure {name}"
            function = found
        return self.box.run(self.session, function, self.box, *arguments)

    def refused(self, name: str, *arguments: object) -> str:
        """The text of the error that a call ends with."""
        with pytest.raises(BoxError) as raised:
            self.call(name, *arguments)
        return raised.value.message

    def close(self) -> None:
        """The connection is gone."""
        self.session.is_closed = True
        self.session.end()
        for trigger in self.box.session.disconnect_triggers.functions:
            self.box.run(self.session, trigger)
        self.box.session.close(self.session)


class SlowJournal(MemoryJournal):
    """A log that takes its time while it is told to, so that its writes may yet fail."""

    is_slow = False

    def append(self, statements: list[Statement]) -> bool:
        """Count the rows. Returns: whether they have yet to be written."""
        super().append(statements)
        return self.is_slow


class TubesServer:
    """A box with tubes.

    Args:
        clock: Its time.
        settings: What `queue.cfg` is told before the start.
    """

    def __init__(self, clock: ManualClock, settings: dict[str, object] | None = None) -> None:
        self.clock = clock
        self.journal = SlowJournal()
        self.box = Box(clock=clock, journal=self.journal)
        self.when_made: Callable[[], object] = lambda: None
        self._start(settings)

    def _start(self, settings: dict[str, object] | None) -> None:
        self._make()
        if settings is not None:
            self.queue.cfg(settings)
        for setup in self.application.setups:
            self.as_server(setup, self.box)

    def _make(self) -> None:
        self.application = Application("tubes")
        self.queue = Queue(self.application, core_drivers())
        self.procedures = Procedures(self.application, self.queue)
        self.when_made()

    def restart(self, settings: dict[str, object] | None = None) -> None:
        """Stop as by a power cut, and start on the rows that were stored."""
        stored = [
            (space.name, [] if space.temporary else [row.raw for row in space.pairs()])
            for space in self.box.space
            if space.name in ("_schema", "_space", "_index", "_func", "_priv") or space.id >= _FIRST_SPACE
        ]
        self.journal = SlowJournal()
        self.box = Box(clock=self.clock, journal=self.journal)
        for name, rows in stored:
            present = {row.raw for row in self.box.space[name].pairs()}
            for raw in rows:
                if raw not in present:
                    self.as_server(self.box.space[name].replace, Tuple(raw))
        self._start(settings)

    def reload(self) -> None:
        """Let new code take over, as a reload does."""
        before = self.application
        generation: CodeGeneration | None = None

        def set_up() -> None:
            nonlocal generation
            generation = CodeGeneration(self.box)
            self._make()
            for setup in self.application.setups:
                setup(self.box)

        self.as_server(set_up)
        assert generation is not None
        generation.complete()
        for replaced in before.reloads:
            self.as_server(replaced, self.box)

    def as_server(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Call a function in a transaction of the server itself."""
        return self.box.run(self.box.session.background, function, *arguments)

    def lose_log(self) -> None:
        """What was committed since the log became slow cannot be written."""
        self.journal.is_slow = False
        self.box.transactions.undo(self.box.transactions.take_unwritten())

    def connect(self, user: str = "admin") -> Client:
        """A new client."""
        return Client(self, user)

    def tube(self, name: str) -> Tube:
        """A tube."""
        return self.queue.tube[name]

    def rows(self, space: str) -> list[list[Any]]:
        """All rows of a space."""
        return [list(row) for row in self.box.space[space].pairs()]

    def states(self, tube: str) -> dict[Any, str]:
        """The state of each task of a tube, by its data."""
        return {row[-1]: row[1] for row in self.rows(tube)}


def core_drivers() -> Drivers:
    """The drivers that are tested here."""
    drivers = Drivers()
    drivers.register("fifo", FifoDriver)
    drivers.register("fifottl", FifoTtlDriver)
    drivers.register("limfifottl", LimitedFifoTtlDriver)
    drivers.register("utube", UtubeDriver)
    drivers.register("utubettl", UtubeTtlDriver)
    return drivers


def answered(waiter: object) -> Any:
    """The answer of a call that has waited and is done."""
    assert isinstance(waiter, Waiter)
    assert waiter.is_done
    if waiter.error is not None:
        raise waiter.error
    return waiter.result
