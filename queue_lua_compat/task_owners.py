"""Who has which task: what a queue remembers of sessions, beside what its space says of tasks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from iproto_server import ABSENT, Box, TransactionalDict
from queue_lua_compat.retries import Retries

logger = logging.getLogger("queue_lua_compat.owners")


class Owners(TransactionalDict[Any, int]):
    """The sessions that have taken tasks: the session's number by the task's key.

    A change of an owner belongs to the transaction that changes the task's row, and only there it is made:
    the queue calls `lose` from a trigger, whoever changes the row. So an owner goes wherever the row goes,
    and where two transactions take the same task, the one that loses the row loses the task.

    Parameters:
        box: the box.
        give_back: makes a task ready again that nobody has any more, given its key; it is called in a
            transaction of the server itself, and must bear that the task is gone or not taken.
        kept: where to remember it all: what `Box.keep` has kept for the queue over reloads; None: nowhere
            that anybody else knows.

    Attributes:
        sessions: the session's number for every task that is somebody's, by the task's key.
        tasks: the keys of the tasks that a session has, by the session's number.
    """

    _box: Box

    def __init__(
        self, box: Box, give_back: Callable[[Any], object], kept: dict[str, Any] | None = None
    ) -> None:
        kept = {} if kept is None else kept
        super().__init__(box, kept.setdefault("owners", {}))
        self._give_back = give_back
        self._released = Retries(box, self._release, logger, "release tasks")
        self.sessions: dict[Any, int] = self.values
        self.tasks: dict[int, set[Any]] = kept.setdefault("owned", {})

    def add(self, key: Any, session_id: int) -> None:
        """The session has taken the task."""
        if self._transactions.interactive is not None or key in self.sessions:
            self._change(key, session_id)
            return
        # The commonest of all, without detours: every task is taken once.
        self.sessions[key] = session_id
        owned = self.tasks.get(session_id)
        if owned is None:
            self.tasks[session_id] = {key}
        else:
            owned.add(key)
        self._box.on_rollback(partial(self._restore, key, ABSENT))

    def lose(self, key: Any) -> None:
        """The task is its owner's no more."""
        if self._transactions.interactive is not None:
            self._change(key, ABSENT)
            return
        session_id = self.sessions.pop(key)
        owned = self.tasks[session_id]
        owned.remove(key)
        if not owned:
            del self.tasks[session_id]
        self._box.on_rollback(partial(self._restore, key, session_id))

    def lose_all(self) -> None:
        """There are no tasks any more."""
        for key in list(self.sessions):
            self._change(key, ABSENT)

    def leave(self, session_id: int) -> list[Any]:
        """The session is closed: its tasks are given back, after the running transaction, until that works.

        Returns: their keys, in order.
        """
        keys = sorted(self.tasks.get(session_id, ()))
        for key in keys:
            self._store(key, ABSENT)
        if keys:
            self._box.on_commit(partial(self._released.run, keys))
        return keys

    def _release(self, key: Any) -> None:
        """Give a task back that nobody has; as the server itself, whose rights nobody can take."""
        if key not in self.sessions:
            self._give_back(key)

    def _store(self, key: Any, value: int) -> None:
        """Let a task have an owner, or none."""
        before = self.sessions.pop(key, None)
        if before is not None:
            tasks = self.tasks[before]
            tasks.remove(key)
            if not tasks:
                del self.tasks[before]
        if value is not ABSENT:
            self.sessions[key] = value
            owned = self.tasks.get(value)
            if owned is None:
                owned = self.tasks[value] = set()
            owned.add(key)

    def _restore(self, key: Any, value: int) -> None:
        """What was done with a task is undone; should its owner be gone by now, nobody has it."""
        if value is ABSENT or self._box.session.exists(value):
            self._store(key, value)
        else:
            self._store(key, ABSENT)
            self._released.later([key])
