"""The sessions that own taken tasks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from iproto_server import ABSENT, Box, TransactionalDict
from queue_lua_compat.retries import Retries

logger = logging.getLogger("queue_lua_compat.task_owners")


class TaskOwners(TransactionalDict[Any, int]):
    """Maps the key of each taken task to the id of the session that owns it.

    An owner changes only in the transaction that changes the task's row: the queue calls `revoke` from a
    trigger, whichever client changes the row. When two transactions take the same task, the one whose row
    change fails loses the ownership, too.

    Parameters:
        box: the box.
        release: makes the task with a key ready again when its owner is gone. It runs in a transaction of the
            server's own session, and must accept that the task is deleted or not taken.
        kept: a dict that survives reloads, from `Box.keep`; None for a new one.

    Attributes:
        sessions: the id of the owning session, by the key of the task.
        tasks: the keys of the tasks a session owns, by the id of the session.
        taken_at: when each task was taken, in nanoseconds since 1970.
    """

    _box: Box

    def __init__(
        self, box: Box, release: Callable[[Any], object], kept: dict[str, Any] | None = None
    ) -> None:
        kept = {} if kept is None else kept
        super().__init__(box, kept.setdefault("owners", {}))
        self._release = release
        self._releases = Retries(box, self._release_unowned, logger, "release tasks")
        self.sessions: dict[Any, int] = self.values
        self.tasks: dict[int, set[Any]] = kept.setdefault("owned", {})
        self.taken_at: dict[Any, int] = kept.setdefault("taken at", {})
        self._now = box.clock.time_ns

    def add(self, key: Any, session_id: int) -> int:
        """Make a session the owner of a task, and return the time."""
        now = self._now()
        if self._transactions.interactive is not None or key in self.sessions:
            self._change(key, session_id)
            return now
        # Fast path of every take outside of a stream.
        self.sessions[key] = session_id
        self.taken_at[key] = now
        owned = self.tasks.get(session_id)
        if owned is None:
            self.tasks[session_id] = {key}
        else:
            owned.add(key)
        self._box.on_rollback(partial(self._restore, key, ABSENT))
        return now

    def revoke(self, key: Any) -> None:
        """Remove the owner of a task."""
        if self._transactions.interactive is not None:
            self._change(key, ABSENT)
            return
        session_id = self.sessions.pop(key)
        owned = self.tasks[session_id]
        owned.remove(key)
        if not owned:
            del self.tasks[session_id]
        taken_at = self.taken_at.pop(key, None)
        self._box.on_rollback(partial(self._restore, key, session_id, taken_at))

    def revoke_all(self) -> None:
        """Remove the owners of all tasks."""
        for key in list(self.sessions):
            self._change(key, ABSENT)

    def drop_session(self, session_id: int) -> list[Any]:
        """Release the tasks of a closed session after the running transaction commits; failures are retried.

        Returns: the keys of the tasks, sorted.
        """
        keys = sorted(self.tasks.get(session_id, ()))
        for key in keys:
            self._store(key, ABSENT)
        if keys:
            self._box.on_commit(partial(self._releases.run, keys))
        return keys

    def _release_unowned(self, key: Any) -> None:
        """Release a task without an owner, as the server's own session, whose rights cannot be revoked."""
        if key not in self.sessions:
            self._release(key)

    def _store(self, key: Any, value: int) -> None:
        """Set the owner of a task; `ABSENT` removes it."""
        before = self.sessions.pop(key, None)
        if before is not None:
            self.taken_at.pop(key, None)
            tasks = self.tasks[before]
            tasks.remove(key)
            if not tasks:
                del self.tasks[before]
        if value is not ABSENT:
            self.sessions[key] = value
            self.taken_at[key] = self._now()
            owned = self.tasks.get(value)
            if owned is None:
                owned = self.tasks[value] = set()
            owned.add(key)

    def _restore(self, key: Any, value: int, taken_at: int | None = None) -> None:
        """Restore the owner on rollback; if that session has closed meanwhile, release the task."""
        if value is ABSENT or self._box.session.exists(value):
            self._store(key, value)
            if taken_at is not None:
                self.taken_at[key] = taken_at
        else:
            self._store(key, ABSENT)
            self._releases.later([key])
