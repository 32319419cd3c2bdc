"""A server with one queue of any dialect, for the rules that are the same in all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from iproto_server import Box, ManagedQueue, ManualClock, TaskInfo, TaskState
from tests.queue_lua_compat.conftest import QueueServer
from tests.queue_lua_compat.legacy.conftest import LegacyServer
from tests.queue_lua_compat.tubes.tubes_server import TubesServer

TUBES = ("fifo", "fifottl", "limfifottl", "utube", "utubettl")
KINDS = ("tutorial", *TUBES, "legacy")
DELAYING = ("tutorial", "fifottl", "limfifottl", "utubettl", "legacy")
"""Those with delays."""

TTR = 10
"""Seconds that a consumer may have a task, of the kinds with delays."""


class World:
    """A server with a queue.

    Parameters:
        kind: "tutorial", "legacy", or the type of a tube.
        clock: the clock.
        options: the options of the queue's policy.
    """

    def __init__(self, kind: str, clock: ManualClock, options: dict[str, object] | None = None) -> None:
        self.kind = kind
        self.clock = clock
        self.server: Any
        if kind == "tutorial":
            self.server = QueueServer(clock)
            self.name = "queue"
            self.configure(ttr=TTR)
        elif kind == "legacy":
            self.server = LegacyServer(clock)
            self.name = "queue_0/jobs"
            self.server.connect().call("put", 0, "jobs")  # the first use creates the space
            self.server.connect().call("truncate", 0, "jobs")
        else:
            self.server = TubesServer(clock)
            self.name = "jobs"
            times = {"ttr": TTR, "ttl": 86400} if self.has_delays else {}
            self.server.connect().call("queue.create_tube", "jobs", kind, times)
        if options:
            self.configure(**options)

    @property
    def has_delays(self) -> bool:
        """Whether tasks may be delayed, and have a time to run."""
        return self.kind in DELAYING

    @property
    def box(self) -> Box:
        """The box, another one after a restart."""
        box: Box = self.server.box
        return box

    # -- for operators --

    def queue(self, name: str | None = None) -> ManagedQueue:
        """Return the queue, or another one, as operators see it."""
        [source] = self.server.application.queue_sources
        found: list[ManagedQueue] = [queue for queue in source(self.box) if queue.name == (name or self.name)]
        [queue] = found
        return queue

    def names(self) -> list[str]:
        """Return the names of all queues."""
        [source] = self.server.application.queue_sources
        return [queue.name for queue in source(self.box)]

    def operator(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Call a function in a transaction of an operator's session."""
        session = self.box.session.open("binary", "127.0.0.1:50001", user="admin")
        return self.box.run(session, function, *arguments)

    def configure(self, **options: object) -> None:
        """Change options of the queue's policy."""
        self.operator(lambda: self.queue().configure(options))

    @property
    def dead_letters(self) -> list[TaskInfo]:
        """The dead letters, if there can be any."""
        name = f"{self.name}_dlq"
        return self.queue(name).tasks(None, limit=100) if name in self.names() else []

    def tasks(self) -> dict[object, TaskState]:
        """Return the states of all tasks, by their payload."""
        return {self.data(task): task.state for task in self.queue().tasks(None, limit=100)}

    def task(self) -> TaskInfo:
        """Return the only task."""
        [task] = self.queue().tasks(None, limit=100)
        return task

    def data(self, task: TaskInfo) -> object:
        """Return a task's payload as it was put."""
        return task.data[0] if self.kind == "legacy" else task.data  # type: ignore[index]

    # -- for clients --

    def connect(self) -> Any:
        """Connect a client."""
        return self.server.connect()

    def put(self, client: Any, data: object, **options: object) -> Any:
        """Put a task, and return its id."""
        return self.id_of(self.put_task(client, data, **options))

    def put_task(self, client: Any, data: object, **options: object) -> Any:
        """Put a task, and return the answer. Each task of a tube is in a sub-queue of its own."""
        if self.kind == "tutorial":
            return client.call("put", data, options)
        if self.kind == "legacy":
            ttr = {"ttr": TTR}
            return client.call("put_with", 0, "jobs", ttr | options, data)
        utube = {"utube": f"{data}"} if self.kind.startswith("utube") else {}
        return client.call("queue.tube.jobs:put", data, options | utube)

    def take(self, client: Any, timeout: float = 0) -> Any:
        """Take a task, and return its id; None if there is none, or a `Waiter`."""
        task = self._call(client, "take", *((0, "jobs") if self.kind == "legacy" else ()), timeout)
        return task if task is None or hasattr(task, "is_done") else self.id_of(task)

    def ack(self, client: Any, task_id: object) -> Any:
        """Acknowledge a task."""
        return self._call(client, "ack", *self._space, task_id)

    def release(self, client: Any, task_id: object, delay: float | None = None) -> Any:
        """Release a task."""
        if delay is None:
            return self._call(client, "release", *self._space, task_id)
        return self._call(
            client, "release", *self._space, task_id, delay if self.kind == "legacy" else {"delay": delay}
        )

    @contextmanager
    def undone(self) -> Iterator[None]:
        """A block whose changes are rolled back at its end, as their write to the log fails."""
        self.server.journal.is_slow = True
        yield
        self.server.lose_log()
        self.clock.advance(0)

    def id_of(self, answer: Any) -> Any:
        """Return the id of the task in an answer."""
        return answer["id"] if self.kind == "tutorial" else answer[0]

    def is_gone(self, answer: Any) -> bool:
        """Whether an answer says that its task does not exist any more."""
        if self.kind == "tutorial":
            return bool(answer["status"] == "-")
        return bool(answer[2] == "done" if self.kind == "legacy" else answer[1] == "-")

    @property
    def _space(self) -> tuple[int, ...]:
        return (0,) if self.kind == "legacy" else ()

    def _call(self, client: Any, name: str, *arguments: object) -> Any:
        return client.call(f"queue.tube.jobs:{name}" if self.kind in TUBES else name, *arguments)

    # -- failed attempts --

    def fail(self, how: str) -> None:
        """Take the first task, and fail in one of the ways of `FAILURES`."""
        client = self.connect()
        task_id = self.take(client)
        assert task_id is not None
        if how == "releases":
            self.release(client, task_id)
        elif how == "disconnects":
            client.close()
        else:
            self.clock.advance(TTR)


FAILURES = ("releases", "disconnects", "timeouts")
