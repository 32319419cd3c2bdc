"""The sessions that own taken tasks."""

from __future__ import annotations

import logging
from collections.abc import Callable, MutableMapping
from functools import partial
from itertools import islice
from typing import Any, Final

from iproto_server import ABSENT, Box, IncrementalDict, TransactionalDict, TransactionalTwoWayDict
from queue_lua_compat.retries import Retries

logger = logging.getLogger("queue_lua_compat.task_owners")

RELEASES: Final = 50
"""The number of tasks of a closed session that are released at once."""


class TaskOwners(TransactionalTwoWayDict[Any, int]):
    """Maps the key of each taken task to the id of the session that owns it.

    An owner changes only in the transaction that changes the task's row: the queue calls `remove` from a
    trigger, whichever client changes the row. When two transactions take the same task, the one whose row
    change fails loses the ownership, too.

    Parameters:
        box: the box.
        release: makes the task with a key ready again when its owner is gone. It runs in a transaction of the
            server's own session, and must accept that the task is deleted or not taken.
        kept: a dict that survives reloads, from `Box.keep`; None for a new one.

    Attributes:
        sessions: the id of the owning session, by the key of the task.
        tasks: the keys of the tasks a session owns, and when it took them, in nanoseconds since 1970, or None
            if `put` was not told; by the id of the session.
        touched: when touched tasks were touched last, in nanoseconds since 1970, by their keys.
    """

    _box: Box

    def __init__(
        self, box: Box, release: Callable[[Any], object], kept: dict[str, Any] | None = None
    ) -> None:
        kept = {} if kept is None else kept
        super().__init__(box, kept.setdefault("owners", IncrementalDict()), kept.setdefault("owned", {}))
        self._release = release
        self._releases = Retries(box, self._release_unowned, logger, "release tasks")
        self.sessions: MutableMapping[Any, int] = self.values
        self.tasks: dict[int, IncrementalDict[Any, int | None]] = self.keys
        touched: IncrementalDict[Any, int] = kept.setdefault("touched", IncrementalDict())
        self.touched: TransactionalDict[Any, int] = TransactionalDict(box, touched)

    def touch(self, key: Any) -> None:
        """Note that the owner of a task asks for more time."""
        self.touched.put(key, self._box.clock.time_ns())

    def forget_touch(self, key: Any) -> None:
        """Forget that. The queue calls it beside `remove` where `touched` has values."""
        if key in self.touched.values:
            self.touched.remove(key)

    def touched_at(self, key: Any) -> float | None:
        """Return when a task was touched last, in seconds since 1970; None if it never was."""
        moment = self.touched.values.get(key)
        return None if moment is None else moment / 1e9

    def remove_all(self) -> None:
        """Remove the owners of all tasks."""
        for key in list(self.sessions):
            self.remove(key)
        for key in list(self.touched.values):
            self.forget_touch(key)

    def drop_session(self, session_id: int) -> int:
        """Release the tasks of a closed session after the running transaction commits; failures are retried.

        The first `RELEASES` tasks are released at once, the others in later iterations of the event loop,
        until when they belong to the closed session.

        Returns: the number of tasks.
        """
        count = len(self.tasks.get(session_id, ()))
        if count:
            self._box.on_commit(partial(self._release_some, session_id))
        return count

    def _release_some(self, session_id: int) -> None:
        keys = sorted(islice(self.tasks.get(session_id, ()), RELEASES))
        for key in keys:
            self._store(key, ABSENT)
        self._releases.run(keys)
        if session_id in self.tasks:
            self._box.clock.call_later(0.0, partial(self._release_some, session_id))

    def _release_unowned(self, key: Any) -> None:
        """Release a task without an owner, as the server's own session, whose rights cannot be revoked."""
        if key not in self.sessions:
            self._release(key)

    def _restore(self, key: Any, state: Any) -> None:
        """Restore the owner on rollback; if that session has closed meanwhile, release the task."""
        if state is ABSENT or self._box.session.exists(state[0]):
            self._store(key, state)
        else:
            self._store(key, ABSENT)
            self._releases.later([key])
