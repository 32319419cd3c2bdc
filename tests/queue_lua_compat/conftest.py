"""A box with a queue, clients without sockets, and a manual clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from iproto_server import Application, Box, ManualClock, Waiter
from queue_lua_compat.tutorial import TutorialQueue
from tests.queue_lua_compat.restart import restore, stored_rows
from tests.queue_lua_compat.slow_journal import SlowJournal


class Client:
    """A connection's session, which calls procedures as the server's dispatcher does."""

    def __init__(self, box: Box, application: Application) -> None:
        self.box = box
        self._application = application
        self.session = box.session.open("binary", "127.0.0.1:50000", user="admin")
        for trigger in box.session.connect_triggers.functions:
            box.run(self.session, trigger)

    def call(self, name: str, *arguments: object) -> Any:
        """Return a procedure's answer, which may be a `Waiter`."""
        procedure = self._application.procedures[f"queue.{name}"]
        return self.box.run(self.session, procedure.function, self.box, *arguments)

    def close(self) -> None:
        """Close the connection."""
        self.session.is_closed = True
        self.session.end()
        for trigger in self.box.session.disconnect_triggers.functions:
            self.box.run(self.session, trigger)
        self.box.session.close(self.session)


class QueueServer:
    """A box that serves the tutorial's queue, and can be restarted with the same rows."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.journal = SlowJournal()
        self.box = Box(clock=clock, journal=self.journal)
        self._start()

    def _start(self) -> None:
        self.application = Application("queue")
        self.queue = TutorialQueue(self.application)
        for setup in self.application.setups:
            self.box.run(self.box.session.background, setup, self.box)

    def restart(self) -> None:
        """Stop as by a power failure, and start with the stored rows."""
        stored = stored_rows(self.box)
        self.journal = SlowJournal()
        self.box = Box(clock=self.clock, journal=self.journal)
        restore(self.box, stored)
        self._start()

    def lose_log(self) -> None:
        """Fail the writes of everything committed since the log became slow."""
        self.journal.lose(self.box)

    def connect(self) -> Client:
        """Connect a client."""
        return Client(self.box, self.application)

    def direct(self, change: Callable[[Any], object]) -> object:
        """Change the space directly, without the procedures: `direct(lambda space: space.…)`."""
        space = self.box.space["queue"]
        return self.box.run(self.box.session.background, change, space)

    @property
    def stats(self) -> dict[str, int]:
        """Return the counters, after comparing them with the rows."""
        counters: dict[str, int] = self.connect().call("stats")
        statuses = [task["status"] for task in self.box.space["queue"].pairs()]
        counted = {
            "total": len(statuses),
            "ready": statuses.count("R"),
            "waiting": statuses.count("W"),
            "taken": statuses.count("T"),
        }
        assert counters == counted
        return counters


def answered(waiter: object) -> Any:
    """Return the answer to a call that has waited."""
    assert isinstance(waiter, Waiter)
    assert waiter.is_done
    if waiter.error is not None:
        raise waiter.error
    return waiter.result


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def server(clock: ManualClock) -> QueueServer:
    return QueueServer(clock)


@pytest.fixture
def client(server: QueueServer) -> Client:
    return server.connect()
