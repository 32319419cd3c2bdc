"""A box with the legacy queue, clients without sockets, and a manual clock."""

from __future__ import annotations

from typing import Any

import pytest

from iproto_server import Application, Box, BoxError, ManualClock
from queue_lua_compat.legacy import LegacyQueue
from tests.queue_lua_compat.conftest import Client
from tests.queue_lua_compat.restart import restore, stored_rows
from tests.queue_lua_compat.slow_journal import SlowJournal

META = (
    *("id", "tube", "status", "event", "ipri", "pri", "cid", "created", "ttl", "ttr", "cbury", "ctaken"),
    "now",
)


class LegacyServer:
    """A box that serves the legacy queue, and can be restarted with the same rows."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.journal = SlowJournal()
        self.box = Box(clock=clock, journal=self.journal)
        self._start()

    def _start(self) -> None:
        self.application = Application("legacy queue")
        self.queue = LegacyQueue(self.application)
        for setup in self.application.setups:
            self.box.run(self.box.session.background, setup, self.box)

    def restart(self) -> None:
        """Stop as by a power failure, and start with the stored rows."""
        stored = stored_rows(self.box)
        for queue_space in self.queue.registry.spaces.values():
            queue_space.due_timer.stop()
        self.journal = SlowJournal()
        self.box = Box(clock=self.clock, journal=self.journal)
        restore(self.box, stored)
        self._start()

    def lose_log(self) -> None:
        """Fail the writes of everything committed since the log became slow."""
        self.journal.lose(self.box)

    def connect(self, user: str = "admin") -> Client:
        """Connect a client."""
        client = Client(self.box, self.application)
        client.session.become(self.box.access.by_name(user))
        return client

    def tasks(self, space: str = "queue_0") -> list[Any]:
        """Return the rows of a space."""
        return [list(row) for row in self.box.space[space].pairs()]


def meta(client: Client, task: list[Any], space: object = 0) -> dict[str, Any]:
    """Return the answer of `queue.meta` for a task, by name."""
    return dict(zip(META, client.call("meta", space, task[0]), strict=True))


def status(client: Client, task: list[Any], space: object = 0) -> str:
    """Return a task's status."""
    found: str = client.call("peek", space, task[0])[2]
    return found


def put(client: Client, *data: object, tube: str = "tube", pri: object = 0, **times: object) -> list[Any]:
    """Put a task into the space 0."""
    delay, ttl, ttr = (times.pop(name, 0) for name in ("delay", "ttl", "ttr"))
    assert not times
    task: list[Any] = client.call("put", 0, tube, delay, ttl, ttr, pri, *data)
    return task


def take(client: Client, tube: str = "tube") -> list[Any] | None:
    """Take a task from the space 0 without waiting."""
    task: list[Any] | None = client.call("take", 0, tube, 0)
    return task


def data_of(client: Client, tube: str = "tube") -> list[Any]:
    """Take all ready tasks of a tube, and return the first fields of their data in order."""
    found = []
    while (task := take(client, tube)) is not None:
        found.append(task[3])
    return found


def error_of(client: Client, name: str, *arguments: object) -> str:
    """Return the text of the error of a failed call."""
    with pytest.raises(BoxError) as raised:
        client.call(name, *arguments)
    return raised.value.message


@pytest.fixture
def server(clock: ManualClock) -> LegacyServer:
    return LegacyServer(clock)


@pytest.fixture
def client(server: LegacyServer) -> Client:
    return server.connect()


@pytest.fixture
def other(server: LegacyServer) -> Client:
    return server.connect()
