"""The calls and the ownership of each queue."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from iproto_server import Application, Box, ManualClock
from iproto_server.box.access.session import Session
from iproto_server.box.api.generation import CodeGeneration
from queue_lua_compat.legacy import LegacyQueue
from queue_lua_compat.tutorial import TutorialQueue
from tests.queue_lua_compat.conftest import QueueServer
from tests.queue_lua_compat.legacy.conftest import LegacyServer
from tests.queue_lua_compat.slow_journal import SlowJournal
from tests.queue_lua_compat.tubes.tubes_server import TubesServer

Call = tuple[Any, ...]
"""A procedure's name, and the arguments."""


class Dialect(ABC):
    """A queue of one kind, and its calls.

    Attributes:
        operations: operations on a task besides put, take, ack and release.
        has_delays, has_times: whether tasks may be delayed; whether they have a time to live and to run.
        statuses: the model's statuses by the queue's.
        no_task: the id of no task.
    """

    operations: ClassVar[tuple[str, ...]] = ()
    has_delays: ClassVar[bool] = True
    has_times: ClassVar[bool] = True
    statuses: ClassVar[dict[str, str]]
    no_task: ClassVar[Any] = 10**6
    application: Application
    box: Box

    @abstractmethod
    def put(self, data: str, delay: float, ttl: float, ttr: float) -> Call:
        """Build a put; 0 stands for no such time."""

    @abstractmethod
    def take(self, timeout: float) -> Call:
        """Build a take."""

    @abstractmethod
    def take_many(self, count: int) -> Call:
        """Build a take of many, without waiting."""

    @abstractmethod
    def ack_many(self, ids: list[Any]) -> Call:
        """Build an acknowledgement."""

    @abstractmethod
    def change(self, operation: str, task_id: Any, delay: float) -> Call:
        """Build an operation on a task: `ack`, `release`, `delete`, or one of `operations`."""

    @abstractmethod
    def task(self, answer: Any) -> tuple[Any, str]:
        """Return a task's id and data."""

    @abstractmethod
    def rows(self) -> dict[Any, tuple[str, str]]:
        """Return the status and data of all tasks, by id, outside of transactions."""

    @abstractmethod
    def owners(self) -> dict[Any, int]:
        """Return the owning session of each taken task."""

    @abstractmethod
    def reload(self) -> None:
        """Reload the code."""

    def function(self, name: str) -> Callable[..., Any]:
        """Return a procedure."""
        return self.application.procedures[name].function

    def function_of_applications(self, name: str) -> Callable[..., Any]:
        """Return the function that procedures of other applications call instead."""
        return self.function(name)

    def connected(self, session: Session) -> None:
        """Connect a client."""
        for trigger in self.box.session.connect_triggers.functions:
            self.box.run(session, trigger)

    def as_server(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Call a function in a transaction of the server's own session."""
        return self.box.run(self.box.session.background, function, *arguments)


class Tutorial(Dialect):
    """The tutorial's queue."""

    has_times = False
    statuses: ClassVar = {"R": "r", "W": "d", "T": "t"}

    def __init__(self, clock: ManualClock, journal: SlowJournal) -> None:
        self._server = QueueServer(clock)
        self.box = self._server.box
        self.box.transactions.journal = journal
        self.application = self._server.application

    def put(self, data: str, delay: float, ttl: float, ttr: float) -> Call:
        return "queue.put", data, {"delay": delay} if delay else {}

    def take(self, timeout: float) -> Call:
        return "queue.take", timeout

    def take_many(self, count: int) -> Call:
        return "queue.take_many", count, 0

    def ack_many(self, ids: list[Any]) -> Call:
        return "queue.ack_many", ids

    def change(self, operation: str, task_id: Any, delay: float) -> Call:
        if operation == "release" and delay:
            return "queue.release", task_id, {"delay": delay}
        return f"queue.{operation}", task_id

    def function(self, name: str) -> Callable[..., Any]:
        if name == "queue.delete":  # there is no such procedure: clients delete from the space
            return lambda box, task_id: box.space["queue"].delete(task_id)
        return super().function(name)

    def task(self, answer: Any) -> tuple[Any, str]:
        return answer["id"], answer["data"]

    def rows(self) -> dict[Any, tuple[str, str]]:
        found: dict[Any, tuple[str, str]] = self.as_server(
            lambda: {row[0]: (self.statuses[row[1]], row[3]) for row in self.box.space["queue"].pairs()}
        )
        counters = self.as_server(self.function("queue.stats"), self.box)
        of = [status for status, _ in found.values()]
        names = {"ready": "r", "waiting": "d", "taken": "t"}
        assert counters == {"total": len(of), **{name: of.count(status) for name, status in names.items()}}
        return found

    def owners(self) -> dict[Any, int]:
        owners = self._server.queue._owners
        assert {session: set(tasks) for session, tasks in owners.tasks.items()} == grouped(owners.sessions)
        return self.as_server(lambda: dict(owners.sessions))  # type: ignore[no-any-return]

    def reload(self) -> None:
        before = self.application
        self.application = self._server.application = Application("queue")
        self._server.queue = TutorialQueue(self.application)
        reload_code(self.box, before, self.application)


class Legacy(Dialect):
    """The legacy queue."""

    operations = ("bury", "dig", "touch", "delete")
    no_task = "0" * 32
    statuses: ClassVar = {"r": "r", "d": "d", "t": "t", "b": "b"}

    def __init__(self, clock: ManualClock, journal: SlowJournal) -> None:
        self._server = LegacyServer(clock)
        self.box = self._server.box
        self.box.transactions.journal = journal
        self.application = self._server.application
        # The first call creates the space, which would end all streams.
        self.as_server(self.function("queue.take"), self.box, 0, "tube", 0)

    def put(self, data: str, delay: float, ttl: float, ttr: float) -> Call:
        return "queue.put", 0, "tube", delay, ttl, ttr, 0, data

    def take(self, timeout: float) -> Call:
        return "queue.take", 0, "tube", timeout

    def take_many(self, count: int) -> Call:
        return "queue.take_many", 0, "tube", count, 0

    def ack_many(self, ids: list[Any]) -> Call:
        return "queue.ack_many", 0, ids

    def change(self, operation: str, task_id: Any, delay: float) -> Call:
        return (f"queue.{operation}", 0, task_id, *((delay,) if operation == "release" and delay else ()))

    def task(self, answer: Any) -> tuple[Any, str]:
        return answer[0], answer[3]

    def rows(self) -> dict[Any, tuple[str, str]]:
        return self.as_server(  # type: ignore[no-any-return]
            lambda: {row[0]: (self.statuses[row[2]], row[12]) for row in self.box.space["queue_0"].pairs()}
        )

    def owners(self) -> dict[Any, int]:
        [queue_space] = self._server.queue.registry.spaces.values()
        owners = queue_space.owners
        assert {session: set(tasks) for session, tasks in owners.tasks.items()} == grouped(owners.sessions)
        space = self.box.space["queue_0"]
        stored = self.as_server(lambda: {row[0]: row[6] for row in space.pairs() if row[2] == "t"})
        # A task that could not be released yet still names its former owner.
        for task_id, session_id in owners.sessions.items():
            assert stored[task_id] == session_id
        return dict(owners.sessions)

    def reload(self) -> None:
        before = self.application
        self.application = self._server.application = Application("legacy queue")
        self._server.queue = LegacyQueue(self.application)
        reload_code(self.box, before, self.application)


class Tubes(Dialect):
    """A tube of one type. In tubes with sub-queues each task has its own."""

    operations = ("bury", "delete")
    statuses: ClassVar = {"r": "r", "~": "d", "t": "t", "!": "b"}

    def __init__(self, kind: str, clock: ManualClock, journal: SlowJournal, **options: object) -> None:
        self._server = TubesServer(clock)
        self.box = self._server.box
        self.box.transactions.journal = journal
        self._server.journal = journal
        self.has_delays = self.has_times = kind not in ("fifo", "utube")  # type: ignore[misc]  # of this tube
        self._has_sub_queues = kind.startswith("utube")
        self._server.connect().call("queue.create_tube", "jobs", kind, options)
        self.application = self._server.application

    def put(self, data: str, delay: float, ttl: float, ttr: float) -> Call:
        times = (("delay", delay), ("ttl", ttl), ("ttr", ttr))
        options: dict[str, object] = {name: value for name, value in times if value}
        if self._has_sub_queues:
            options["utube"] = data
        return "queue.tube.jobs:put", data, options

    def take(self, timeout: float) -> Call:
        return "queue.tube.jobs:take", timeout

    def take_many(self, count: int) -> Call:
        return "queue.tube.jobs:take_many", count, 0

    def ack_many(self, ids: list[Any]) -> Call:
        return "queue.tube.jobs:ack_many", ids

    def change(self, operation: str, task_id: Any, delay: float) -> Call:
        given = ({"delay": delay},) if operation == "release" and delay else ()
        return (f"queue.tube.jobs:{operation}", task_id, *given)

    def function(self, name: str) -> Callable[..., Any]:
        procedures = self._server.procedures
        procedure = procedures.by_name.get(name) or procedures.find(name)
        assert procedure is not None
        return procedure.function

    def function_of_applications(self, name: str) -> Callable[..., Any]:
        method = getattr(self._server.tube("jobs"), name.partition(":")[2])
        return lambda box, *arguments: method(*arguments)

    def task(self, answer: Any) -> tuple[Any, str]:
        return answer[0], answer[-1]

    def rows(self) -> dict[Any, tuple[str, str]]:
        return self.as_server(  # type: ignore[no-any-return]
            lambda: {row[0]: (self.statuses[row[1]], row[-1]) for row in self.box.space["jobs"].pairs()}
        )

    def owners(self) -> dict[Any, int]:
        rows: list[Any] = self.as_server(self._server.rows, "_queue_taken_2")
        connections = {row[1]: row[0] for row in self.as_server(self._server.rows, "_queue_session_ids")}
        owners = {row[1]: connections[row[3]] for row in rows if row[3] in connections}
        # Lost changes of a disconnect are repeated soon.
        return {task_id: owner for task_id, owner in owners.items() if self.box.session.exists(owner)}

    def reload(self) -> None:
        self._server.reload()
        self.application = self._server.application


def grouped(sessions: Mapping[Any, int]) -> dict[int, set[Any]]:
    """Return the tasks of each session."""
    tasks: dict[int, set[Any]] = {}
    for task_id, session_id in sessions.items():
        tasks.setdefault(session_id, set()).add(task_id)
    return tasks


def reload_code(box: Box, before: Application, after: Application) -> None:
    """Reload the code as the server does, in one transaction."""
    generation: CodeGeneration | None = None

    def set_up() -> None:
        nonlocal generation
        generation = CodeGeneration(box)
        for setup in after.setups:
            setup(box)

    box.run(box.session.background, set_up)
    assert generation is not None
    generation.complete()
    for replaced in before.reloads:
        box.run(box.session.background, replaced, box)


DIALECTS: dict[str, Callable[[ManualClock, SlowJournal], Dialect]] = {
    "tutorial": Tutorial,
    "legacy": Legacy,
    "fifo": lambda clock, journal: Tubes("fifo", clock, journal),
    "fifottl": lambda clock, journal: Tubes("fifottl", clock, journal),
    "limfifottl": lambda clock, journal: Tubes("limfifottl", clock, journal),
}
"""All kinds of queues that are compared with the model, by name."""

SUB_QUEUES: dict[str, Callable[[ManualClock, SlowJournal], Dialect]] = {
    "utube": lambda clock, journal: Tubes("utube", clock, journal),
    "utubettl": lambda clock, journal: Tubes("utubettl", clock, journal),
    "utube with a ready buffer": lambda clock, journal: Tubes(
        "utube", clock, journal, storage_mode="ready_buffer"
    ),
}
"""Tubes with sub-queues, by name. Unlike in the model, a take that finds nothing conflicts with no put, and
a taken task may outlive its life."""
