"""Servers of queues without sockets, whose time a test moves and whose logs are written with that time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from iproto_server import Application, Box, ManualClock
from iproto_server.native._native import Transaction
from iproto_server.storage.vclock import VClock
from iproto_server.storage.wal import WalMode, WriteAheadLog
from queue_lua_compat.legacy import LegacyQueue
from queue_lua_compat.tubes.procedures import Procedures
from queue_lua_compat.tubes.queue import Queue
from queue_lua_compat.tutorial import TutorialQueue
from tests.queue_lua_compat.tubes.tubes_server import core_drivers

MICROSECOND = 1_000
START_US = 1_700_000_000_123_456
"""When all scripts begin, in microseconds since 1970."""


class WrittenAtOnce:
    """A journal that writes each transaction at its commit, so each row has the time it was made at.

    Parameters:
        log: Where they are written.
    """

    def __init__(self, log: WriteAheadLog) -> None:
        self._log = log

    def append(self, transaction: Transaction, /) -> bool:
        """Write a transaction. Returns: that nothing is left to be written."""
        self._log.append(transaction)
        self._log.write()
        return False

    def position(self) -> int:
        """The number of the last row."""
        return self._log.position()

    @property
    def vclock(self) -> Mapping[int, int]:
        """The numbers of the last rows."""
        return self._log.vclock


class ScriptedServer:
    """A server of one of the queues.

    Parameters:
        directory: Where its log is.
        queue: Which queue it serves.

    Attributes:
        directory: Where its log is.
        clock: Its time.
        box: Its database.
    """

    def __init__(self, directory: Path, queue: str) -> None:
        self.directory = directory
        self.clock = ManualClock(START_US * MICROSECOND)
        self._log = WriteAheadLog(
            directory, WalMode.WRITE, uuid4(), 1, VClock(), clock=lambda: self.clock.time_ns() / 1e9
        )
        self.box = Box(WrittenAtOnce(self._log), self.clock)
        self._application = Application(queue)
        self._tubes: Procedures | None = None
        if queue == "tutorial":
            TutorialQueue(self._application)
        elif queue == "legacy":
            LegacyQueue(self._application)
        else:
            self._tubes = Procedures(self._application, Queue(self._application, core_drivers()))
        for setup in self._application.setups:
            self.box.run(self.box.session.background, setup, self.box)
        self.connect()

    @property
    def now_us(self) -> int:
        """The time, in microseconds since 1970."""
        return self.clock.time_ns() // MICROSECOND

    def advance(self, microseconds: int) -> None:
        """Let time pass."""
        self.clock.advance(microseconds / 1e6)

    def connect(self) -> None:
        """Calls come from a new client from now on."""
        self.session = self.box.session.open("binary", "127.0.0.1:50000", user="admin")
        for trigger in self.box.session.connect_triggers.functions:
            self.box.run(self.session, trigger)

    def disconnect(self) -> None:
        """The client goes; its tasks are given back."""
        self.session.is_closed = True
        self.session.end()
        for trigger in self.box.session.disconnect_triggers.functions:
            self.box.run(self.session, trigger)
        self.box.session.close(self.session)
        self.connect()

    def call(self, name: str, *arguments: object) -> Any:
        """What a procedure of the queue answers to the client: `put`, or `tube.mails:put`."""
        procedure = self._application.procedures.get(f"queue.{name}")
        function = procedure.function if procedure else None
        if function is None and self._tubes is not None:
            function = self._tubes.find(f"queue.{name}")
        assert function is not None, f"there is no procedure {name}"
        return self.box.run(self.session, function, self.box, *arguments)

    def change(self, space: str, operation: str, *arguments: object) -> Any:
        """Change a space as a client that does not use the procedures."""
        return self.box.run(self.session, lambda: getattr(self.box.space[space], operation)(*arguments))

    def close(self) -> None:
        """End the log."""
        self._log.close()


class Actions(ABC):
    """What people do with the tasks of a queue, in its own words. A task is known by its id, as text.

    Parameters:
        server: The server.
    """

    has_ttr = True
    """Whether tasks are given back after a time to run."""
    has_delay = True
    """Whether tasks may be delayed."""
    has_bury = True
    """Whether tasks can be buried."""
    queue = ""
    """What events call the queue."""

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self._ids: dict[str, Any] = {}

    @abstractmethod
    def put(self, delay: float, ttr: float) -> str:
        """Put a task. Returns: its id."""

    @abstractmethod
    def take(self) -> str | None:
        """Take a task without waiting. Returns: its id; None when none is ready."""

    def ack(self, task: str) -> None:
        """Acknowledge a task."""
        self._do("ack", task)

    @abstractmethod
    def release(self, task: str, delay: float) -> None:
        """Give a task back."""

    def bury(self, task: str) -> None:
        """Set a taken task aside."""
        self._do("bury", task)

    def kick(self) -> None:
        """Make a buried task ready; for queues that bury."""
        raise NotImplementedError

    def delete(self, task: str) -> None:
        """Delete a task."""
        self._do("delete", task)

    @abstractmethod
    def _do(self, name: str, task: str, *arguments: object) -> None:
        """Call a function with a task."""

    def _known(self, answer: Sequence[Any] | Mapping[Any, Any] | None) -> str | None:
        if answer is None:
            return None
        found = answer["id"] if isinstance(answer, Mapping) else answer[0]
        self._ids[str(found)] = found
        return str(found)


class TutorialActions(Actions):
    has_ttr = has_bury = False
    queue = "queue"

    def put(self, delay: float, ttr: float) -> str:
        return str(self._known(self.server.call("put", "data", {"delay": delay} if delay else None)))

    def take(self) -> str | None:
        return self._known(self.server.call("take"))

    def release(self, task: str, delay: float) -> None:
        self._do("release", task, {"delay": delay} if delay else None)

    def delete(self, task: str) -> None:
        self.server.change("queue", "delete", self._ids[task])

    def _do(self, name: str, task: str, *arguments: object) -> None:
        self.server.call(name, self._ids[task], *arguments)


class LegacyActions(Actions):
    queue = "queue_0/mails"

    def put(self, delay: float, ttr: float) -> str:
        return str(self._known(self.server.call("put", 0, "mails", delay, 0, ttr, 0, "data")))

    def take(self) -> str | None:
        return self._known(self.server.call("take", 0, "mails", 0))

    def release(self, task: str, delay: float) -> None:
        self._do("release", task, delay)

    def kick(self) -> None:
        self.server.call("kick", 0, "mails")

    def _do(self, name: str, task: str, *arguments: object) -> None:
        self.server.call(name, 0, task, *arguments)


class TubeActions(Actions):
    queue = "mails"

    def __init__(self, server: ScriptedServer, kind: str = "fifottl") -> None:
        super().__init__(server)
        self.has_ttr = self.has_delay = kind.endswith("ttl")
        server.call("create_tube", "mails", kind)

    def put(self, delay: float, ttr: float) -> str:
        options = {"delay": delay, "ttr": ttr} if self.has_ttr else {}
        return str(self._known(self._call("put", "data", options)))

    def take(self) -> str | None:
        return self._known(self._call("take", 0))

    def release(self, task: str, delay: float) -> None:
        self._do("release", task, {"delay": delay})

    def kick(self) -> None:
        self._call("kick", 1)

    def _do(self, name: str, task: str, *arguments: object) -> None:
        self._call(name, self._ids[task], *arguments)

    def _call(self, name: str, *arguments: object) -> Any:
        return self.server.call(f"tube.mails:{name}", *arguments)
