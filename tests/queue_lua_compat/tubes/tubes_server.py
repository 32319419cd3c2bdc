"""A box that serves tubes without sockets, and can be restarted with the same rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from iproto_server import Application, Box, BoxError, ManualClock, Waiter
from iproto_server.app import Procedures
from iproto_server.box.api.generation import CodeGeneration
from queue_lua_compat.tubes.driver import Drivers
from queue_lua_compat.tubes.drivers.fifo import FifoDriver
from queue_lua_compat.tubes.drivers.fifottl import FifoTtlDriver
from queue_lua_compat.tubes.drivers.limfifottl import LimitedFifoTtlDriver
from queue_lua_compat.tubes.drivers.utube import UtubeDriver
from queue_lua_compat.tubes.drivers.utubettl import UtubeTtlDriver
from queue_lua_compat.tubes.procedures import Procedures as QueueProcedures
from queue_lua_compat.tubes.queue import Queue
from queue_lua_compat.tubes.tube.tube import Tube
from tests.queue_lua_compat.restart import restore, stored_rows
from tests.queue_lua_compat.slow_journal import SlowJournal


class Client:
    """A connection's session, which calls procedures as the server's dispatcher does.

    Parameters:
        server: the server.
        user: its user.
    """

    def __init__(self, server: TubesServer, user: str = "admin") -> None:
        self.box = server.box
        self._server = server
        self.session = self.box.session.open("binary", "127.0.0.1:50000", user=user)

    def call(self, name: str, *arguments: object) -> Any:
        """Call a procedure; return one value plain, several as a tuple, or a `Waiter`."""
        procedures = self._server.procedures
        procedure = procedures.by_name.get(name) or procedures.find(name)
        assert procedure is not None, f"there is no procedure {name}"
        return self.box.run(self.session, procedure.function, self.box, *arguments)

    def refused(self, name: str, *arguments: object) -> str:
        """Return the text of the error of a failed call."""
        with pytest.raises(BoxError) as raised:
            self.call(name, *arguments)
        return raised.value.message

    def close(self) -> None:
        """Close the connection."""
        self.session.is_closed = True
        self.session.end()
        for trigger in self.box.session.disconnect_triggers.functions:
            self.box.run(self.session, trigger)
        self.box.session.close(self.session)


class TubesServer:
    """A box with tubes.

    Parameters:
        clock: the clock.
        settings: settings for `queue.cfg` before the start.
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
        QueueProcedures(self.application, self.queue)
        self.procedures = Procedures([self.application])
        self.when_made()

    def restart(self, settings: dict[str, object] | None = None) -> None:
        """Stop as by a power failure, and start with the stored rows."""
        stored = stored_rows(self.box)
        self.journal = SlowJournal()
        self.box = Box(clock=self.clock, journal=self.journal)
        restore(self.box, stored)
        self._start(settings)

    def reload(self) -> None:
        """Reload the code; if a setup raises, the old code stays in force."""
        before, served = self.application, (self.application, self.queue, self.procedures)
        generation: CodeGeneration | None = None

        def set_up() -> None:
            nonlocal generation
            generation = CodeGeneration(self.box)
            self._make()
            try:
                for setup in self.application.setups:
                    setup(self.box)
            except BaseException:
                generation.revert()
                raise

        try:
            self.as_server(set_up)
        except BaseException:
            self.application, self.queue, self.procedures = served
            raise
        assert generation is not None
        generation.complete()
        for replaced in before.reloads:
            self.as_server(replaced, self.box)

    def as_server(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Call a function in a transaction of the server's own session."""
        return self.box.run(self.box.session.background, function, *arguments)

    def lose_log(self) -> None:
        """Fail the writes of everything committed since the log became slow."""
        self.journal.lose(self.box)

    def connect(self, user: str = "admin") -> Client:
        """Connect a client."""
        return Client(self, user)

    def tube(self, name: str) -> Tube:
        """Return a tube."""
        tube: Tube = self.queue.tube[name]
        return tube

    def rows(self, space: str) -> list[list[Any]]:
        """Return all rows of a space."""
        return [list(row) for row in self.box.space[space].pairs()]

    def states(self, tube: str) -> dict[Any, str]:
        """Return the state of each task of a tube, by its data."""
        return {row[-1]: row[1] for row in self.rows(tube)}


def core_drivers() -> Drivers:
    """Return the drivers under test."""
    drivers = Drivers()
    drivers.register("fifo", FifoDriver)
    drivers.register("fifottl", FifoTtlDriver)
    drivers.register("limfifottl", LimitedFifoTtlDriver)
    drivers.register("utube", UtubeDriver)
    drivers.register("utubettl", UtubeTtlDriver)
    return drivers


def answered(waiter: object) -> Any:
    """Return the answer to a call that has waited."""
    assert isinstance(waiter, Waiter)
    assert waiter.is_done
    if waiter.error is not None:
        raise waiter.error
    return waiter.result
