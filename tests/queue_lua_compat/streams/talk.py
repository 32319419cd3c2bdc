"""Clients of a queue of any kind, for readable tests."""

from __future__ import annotations

from typing import Any

from iproto_server import ManualClock, Tuple, Waiter
from tests.queue_lua_compat.slow_journal import SlowJournal
from tests.queue_lua_compat.streams.dialects import DIALECTS, SUB_QUEUES
from tests.queue_lua_compat.streams.world import SPACES


class Talk:
    """A queue, its clock and its log."""

    def __init__(self, kind: str) -> None:
        self.clock = ManualClock()
        self.journal = SlowJournal()
        self.dialect = (DIALECTS | SUB_QUEUES)[kind](self.clock, self.journal)
        self.box = self.dialect.box
        self.space = self.box.space[SPACES.get(kind, "jobs")]

    def connect(self) -> Person:
        return Person(self)

    def lose_log(self) -> None:
        """Fail the writes of everything committed since the log became slow."""
        self.journal.is_slow = False
        self.box.transactions.undo(self.box.transactions.take_unwritten())

    @property
    def statuses(self) -> dict[str, str]:
        """Return the status of each task, by its data."""
        return {data: status for status, data in self.dialect.rows().values()}

    @property
    def owned(self) -> dict[str, int]:
        """Return the owning session of each taken task, by its data."""
        rows = self.dialect.rows()
        return {rows[task_id][1]: session for task_id, session in self.dialect.owners().items()}


class Person:
    """A client with a stream; its transaction is open between `begin` and `commit` or `roll_back`."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        self.session = talk.box.session.open("binary", "127.0.0.1:50000", user="admin")
        talk.dialect.connected(self.session)
        self._stream: Any = None
        self._is_open = False

    # -- transactions --

    def begin(self, timeout: float = 0) -> None:
        self._stream = self.talk.box.interactive.begin(timeout)
        self._is_open = True

    def commit(self) -> None:
        self._is_open = False
        self.talk.box.interactive.commit(self._stream)

    def roll_back(self) -> None:
        self._is_open = False
        if self._stream is not None:
            self.talk.box.interactive.roll_back(self._stream)

    def leave(self) -> None:
        """Close the connection as the server does."""
        box = self.talk.box
        if self._is_open:
            self.roll_back()
        self.session.is_closed = True
        self.session.end()
        for trigger in box.session.disconnect_triggers.functions:
            box.run(self.session, trigger)
        box.session.close(self.session)

    # -- calls; in the stream while its transaction is open --

    def put(self, data: str, delay: float = 0, ttr: float = 0) -> Any:
        return self.talk.dialect.task(self._call(self.talk.dialect.put(data, delay, 0, ttr)))[0]

    def take(self) -> Any:
        """Take a task. Returns: its id; None if there is none."""
        answer = self._call(self.talk.dialect.take(0))
        return None if answer is None else self.talk.dialect.task(answer)[0]

    def wait(self) -> Waiter:
        waiter = self._call(self.talk.dialect.take(1000))
        assert isinstance(waiter, Waiter)
        return waiter

    def change(self, operation: str, task_id: Any) -> Any:
        return self._call(self.talk.dialect.change(operation, task_id, 0))

    def ack(self, task_id: Any) -> Any:
        return self.change("ack", task_id)

    def release(self, task_id: Any) -> Any:
        return self.change("release", task_id)

    def call(self, name: str, *arguments: Any) -> Any:
        return self._call((name, *arguments))

    def _call(self, call: tuple[Any, ...]) -> Any:
        name, *arguments = call
        box = self.talk.box
        function = self.talk.dialect.function(name)
        if not self._is_open:
            return box.run(self.session, function, box, *arguments)
        box.interactive.resume(self._stream)
        try:
            return box.run_inside(self.session, function, box, *arguments)
        finally:
            self._stream = box.interactive.suspend()


class Saboteur:
    """A trigger of another application that refuses changes of some tasks, before or after the
    queue's own."""

    def __init__(self, talk: Talk, *, is_first: bool = True) -> None:
        self.refused: set[Any] = set()
        triggers = talk.space.core().on_replace
        mine, others = (self._refuse,), triggers.functions
        triggers.functions = (*mine, *others) if is_first else (*others, *mine)

    def _refuse(self, old: Tuple | None, new: Tuple | None) -> None:
        for row in (old, new):
            if row is not None and row[0] in self.refused:
                raise ZeroDivisionError
