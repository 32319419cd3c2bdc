"""A box with one queue and schedules, on a clock that a test moves, which can be restarted with its rows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from iproto_server import Application, Box, BoxError, ManagedQueue, ManualClock, TaskState, Tuple
from iproto_server.box.txn.journal import MemoryJournal
from iproto_server.box.txn.statement import Statement
from iproto_server.native._native import Transaction
from iproto_server.server.applications.application_queues import ApplicationQueues
from iproto_server.server.schedules.schedule_calls import ScheduleCalls
from iproto_server.server.schedules.scheduler import Scheduler
from queue_lua_compat.legacy import LegacyQueue
from queue_lua_compat.tubes.procedures import Procedures
from queue_lua_compat.tubes.queue import Queue
from queue_lua_compat.tutorial import TutorialQueue
from tests.queue_lua_compat.tubes.tubes_server import core_drivers

DIALECTS: Final = ("tutorial", "fifo", "fifottl", "legacy")
SECOND: Final = 10**9
_SYSTEM: Final = ("_schema", "_space", "_index", "_func", "_priv")
_FIRST_SPACE: Final = 512


def seconds(text: str, zone: str = "UTC") -> int:
    """Return a local time such as "2026-03-29 01:59" in seconds since 1970."""
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp())


class SlowJournal(MemoryJournal):
    """A log whose writes are pending while it is slow, so that they may fail."""

    is_slow = False

    def __init__(self) -> None:
        super().__init__()
        self.transactions: list[list[Statement]] = []

    def append(self, transaction: Transaction, /) -> bool:
        """Keep the statements. Returns: whether their write is pending."""
        super().append(transaction)
        self.transactions.append(list(transaction))
        return self.is_slow


class World:
    """A server of one dialect without sockets.

    Parameters:
        dialect: one of `DIALECTS`, or another type of tubes.
        start: the time in UTC.

    Attributes:
        moved: the number of tasks that a test has removed from the queue.
    """

    def __init__(self, dialect: str = "tutorial", start: str = "2026-01-26 12:00:30") -> None:
        self.dialect = dialect
        self.moved = 0
        self.clock = ManualClock(seconds(start) * SECOND)
        self.journal = SlowJournal()
        self.box = Box(clock=self.clock, journal=self.journal)
        self._start()
        self._create()

    # -- the server --

    def _start(self) -> None:
        self.application = Application("queues")
        match self.dialect:
            case "tutorial":
                TutorialQueue(self.application)
            case "legacy":
                self._legacy = LegacyQueue(self.application)
            case _:
                self._tubes = Queue(self.application, core_drivers())
                Procedures(self.application, self._tubes)
        for setup in self.application.setups:
            self.as_server(setup, self.box)
        self.applications = [self.application]
        queues = ApplicationQueues(self.box, lambda: self.applications)
        self.scheduler = Scheduler(self.box, queues)
        self.calls = ScheduleCalls(self.box, queues, self.scheduler)
        self.queues = queues
        self.scheduler.start()

    def _create(self) -> None:
        if self.dialect == "legacy":
            self.as_server(self._legacy.registry.find, 0)
        elif self.dialect != "tutorial":
            self.create_tube("jobs", self.dialect)

    def create_tube(self, name: str, kind: str, **options: object) -> None:
        """Create a tube."""
        self.as_server(self._tubes.create_tube, name, kind, options)

    def drop_tube(self, name: str) -> None:
        """Drop a tube."""
        self.as_server(self._tubes.tube[name].drop)

    def crash(self) -> None:
        """Stop as by a power failure."""
        self.scheduler.stop()
        for timer in list(self.clock._timers):
            timer.cancel()

    def start_again(self) -> None:
        """Start with the stored rows."""
        stored = [
            (space.name, [] if space.temporary else [row.raw for row in space.pairs()])
            for space in self.box.space
            if space.name in _SYSTEM or space.id >= _FIRST_SPACE
        ]
        self.journal = SlowJournal()
        self.box = Box(clock=self.clock, journal=self.journal)
        for name, rows in stored:
            present = {row.raw for row in self.box.space[name].pairs()}
            for raw in rows:
                if raw not in present:
                    self.as_server(self.box.space[name].replace, Tuple(raw))
        self._start()

    def lose_log(self) -> None:
        """Fail the writes of everything committed since the log became slow."""
        self.journal.is_slow = False
        self.box.transactions.undo(self.box.transactions.take_unwritten())

    def as_server(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Call a function in a transaction of the server's own session."""
        return self.box.run(self.box.session.background, function, *arguments)

    # -- time --

    def until(self, text: str, zone: str = "UTC") -> None:
        """Let time pass until a local time."""
        self.clock.advance(seconds(text, zone) - self.clock.time_ns() / SECOND)

    def step_to(self, text: str) -> None:
        """Set the wall clock to a time in UTC."""
        self.clock.set_wall_clock(seconds(text) * SECOND)
        self.clock.advance(0)

    # -- schedules and tasks --

    @property
    def queue_name(self) -> str:
        """The name of the queue for operators."""
        return {"tutorial": "queue", "legacy": "queue_0/jobs"}.get(self.dialect, "jobs")

    def schedule(self, cron: str, name: str = "nightly", **more: object) -> dict[str, Any]:
        """Create or replace a schedule as an operator."""
        definition = {"queue": self.queue_name, "cron": cron, "data": "x", **more}
        record: dict[str, Any] = self.as_operator(self.calls.schedule, name, definition)
        return record

    def as_operator(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Call a function in a transaction of a client's session."""
        session = self.box.session.open("binary", "127.0.0.1:50001", user="admin")
        result = self.box.run(session, function, *arguments)
        self.clock.advance(0)
        return result

    def refused(self, function: Callable[..., Any], *arguments: object) -> str:
        """Return the text of an operator's error."""
        try:
            self.as_operator(function, *arguments)
        except BoxError as error:
            return error.message
        raise AssertionError("it was not refused")

    def shown(self, name: str = "nightly") -> dict[str, Any]:
        """Return a schedule as operators see it."""
        [found] = [each for each in self.as_server(self.calls.schedules) if each["name"] == name]
        shown: dict[str, Any] = found
        return shown

    def queue(self, name: str | None = None) -> ManagedQueue:
        """Return the queue."""
        return self.queues.find_or_begin(name or self.queue_name)

    @property
    def count(self) -> int:
        """The number of tasks in the queue."""
        return sum(self.queue().counts().values())

    def data(self) -> list[object]:
        """Return the payloads of all tasks, in the order of their ids."""
        tasks = self.queue().tasks(None, limit=1000)
        return [task.data[0] if self.dialect == "legacy" else task.data for task in tasks]  # type: ignore[index]

    def delete_all(self) -> None:
        """Delete all tasks."""
        for task in self.queue().tasks(None, limit=1000):
            self.as_server(self.queue().delete, task.id)

    def delayed(self) -> int:
        """Return the number of delayed tasks."""
        return self.queue().counts().get(TaskState.DELAYED, 0)
