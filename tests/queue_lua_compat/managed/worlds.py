"""Queues of tubes and of the legacy queue behind the same interface, for what operators do with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from iproto_server import Application, Box, ManagedQueue, ManualClock, TaskInfo
from tests.queue_lua_compat.legacy.conftest import LegacyServer
from tests.queue_lua_compat.tubes.tubes_server import TubesServer

TUBES = ("fifo", "fifottl", "limfifottl", "utube", "utubettl")
KINDS = (*TUBES, "legacy")


class World:
    """A server with one queue.

    Parameters:
        kind: the type of a tube, or "legacy".
        clock: the clock.
    """

    def __init__(self, kind: str, clock: ManualClock) -> None:
        self.kind = kind
        self.is_legacy = kind == "legacy"
        self.server: Any = LegacyServer(clock) if self.is_legacy else TubesServer(clock)
        self.clock = clock
        if not self.is_legacy:
            self.create("jobs", kind)

    def create(self, name: str, kind: str) -> None:
        """Create another tube."""
        self.server.connect().call("queue.create_tube", name, kind, {})

    @property
    def box(self) -> Box:
        """The box, another one after a restart."""
        box: Box = self.server.box
        return box

    @property
    def name(self) -> str:
        """The name that operators see."""
        return "queue_0/jobs" if self.is_legacy else "jobs"

    @property
    def is_timed(self) -> bool:
        """Whether tasks have times."""
        return self.kind not in ("fifo", "utube")

    def queue(self, name: str | None = None) -> ManagedQueue:
        """Return a queue as operators see it."""
        application: Application = self.server.application
        [source] = application.queue_sources
        [found] = [queue for queue in source(self.box) if queue.name == (name or self.name)]
        return found

    def connect(self) -> Any:
        """Connect a client."""
        return self.server.connect()

    def call(self, client: Any, name: str, *arguments: object) -> Any:
        """Call a procedure of the queue as a client."""
        if self.is_legacy:
            where = (0, "jobs") if name in ("put", "take", "kick") else (0,)
            return client.call(name, *where, *arguments)
        return client.call(f"queue.tube.jobs:{name}", *arguments)

    def put(self, client: Any, data: object, **options: object) -> Any:
        """Put a task, and return its id."""
        if self.is_legacy:
            times = (options.get(name) for name in ("delay", "ttl", "ttr", "pri"))
            return self.call(client, "put", *times, data)[0]
        # Each task is in a sub-queue of its own, so that all of them can be taken.
        given = options | ({"utube": f"{data}"} if self.kind.startswith("utube") else {})
        return self.call(client, "put", data, given)[0]

    def take(self, client: Any, timeout: float = 0) -> Any:
        """Take a task, and return its id, a waiter, or None."""
        task = self.call(client, "take", timeout)
        return task[0] if isinstance(task, list) or hasattr(task, "raw") else task

    def data(self, task: TaskInfo | None) -> object:
        """Return a task's payload as it was put."""
        assert task is not None
        if self.is_legacy:
            assert isinstance(task.data, list)
            [data] = task.data
            return data
        return task.data

    def repair(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Run a repair in a transaction of another session."""
        session = self.box.session.open("binary", "127.0.0.1:50001", user="admin")
        return self.box.run(session, function, *arguments)
