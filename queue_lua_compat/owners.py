"""Who has which task: what a queue remembers of sessions, beside what its space says of tasks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from iproto_server import Box

logger = logging.getLogger("queue_lua_compat.owners")

RETRY_AFTER: Final = 1.0
"""Seconds after which what failed is tried again."""


class Owners:
    """The sessions that have taken tasks. What a transaction changes here is undone with it.

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

    def __init__(
        self, box: Box, give_back: Callable[[Any], object], kept: dict[str, Any] | None = None
    ) -> None:
        self._box = box
        self._give_back = give_back
        kept = {} if kept is None else kept
        self.sessions: dict[Any, int] = kept.setdefault("owners", {})
        self.tasks: dict[int, set[Any]] = kept.setdefault("owned", {})
        self._losses: dict[Any, _Loss] = kept.setdefault("losses", {})

    def add(self, key: Any, session_id: int) -> None:
        """The session has taken the task."""
        if self._losses:
            # Given away before its former owner was told that he has lost it.
            self._losses.pop(key, None)
        self._own(key, session_id)
        self._box.on_rollback(partial(self._disown, key))

    def give_up(self, key: Any) -> None:
        """The owner's task is about to be changed; should that fail, it stays with the owner."""
        self._box.on_rollback(partial(self._own_again, key, self.sessions[key]))
        self._disown(key)

    def lose(self, key: Any) -> None:
        """Somebody else has changed the task, so that it is its owner's no more, once that has committed."""
        loss = self._losses[key] = _Loss(self.sessions[key])
        self._box.on_commit(partial(self._lost, key, loss))
        self._box.on_rollback(partial(self._not_lost, key, loss))

    def lose_all(self) -> None:
        """There are no tasks any more, once that has committed."""
        for key, session_id in self.sessions.items():
            self._box.on_rollback(partial(self._own_again, key, session_id))
        self._box.on_commit(self._forget)

    def leave(self, session_id: int) -> list[Any]:
        """The session is closed: its tasks are given back, after the running transaction, until that works.

        Returns: their keys, in order.
        """
        keys = self.tasks.pop(session_id, None)
        if keys is None:
            return []
        for key in keys:
            del self.sessions[key]
        in_order = sorted(keys)
        self._box.on_commit(partial(self.release, in_order))
        return in_order

    def release(self, keys: Iterable[Any]) -> None:
        """Give tasks without an owner back; as the server itself, whose rights nobody can take."""
        keys = list(keys)
        try:
            self._box.run(self._box.session.background, self._release, keys)
        except BaseException:
            # A trigger that another application set may raise anything; the tasks must not be lost by that.
            logger.exception("cannot release %d tasks, trying again", len(keys))

    def _release(self, keys: list[Any]) -> None:
        self._box.on_rollback(partial(self._release_later, keys))
        for key in keys:
            if key not in self.sessions:
                self._give_back(key)

    def _release_later(self, keys: list[Any]) -> None:
        self._box.clock.call_later(RETRY_AFTER, partial(self.release, keys))

    def _lost(self, key: Any, loss: _Loss) -> None:
        if self._losses.get(key) is loss:
            del self._losses[key]
            self._disown(key)
            loss.has_happened = True

    def _not_lost(self, key: Any, loss: _Loss) -> None:
        if loss.has_happened:
            self._own_again(key, loss.session_id)
        elif self._losses.get(key) is loss:
            del self._losses[key]

    def _own(self, key: Any, session_id: int) -> None:
        self.sessions[key] = session_id
        tasks = self.tasks.get(session_id)
        if tasks is None:
            tasks = self.tasks[session_id] = set()
        tasks.add(key)

    def _own_again(self, key: Any, session_id: int) -> None:
        """What the session did with its task is undone; should the session be gone by now, nobody has it."""
        if self._box.session.exists(session_id):
            self._own(key, session_id)
        else:
            self._release_later([key])

    def _disown(self, key: Any) -> None:
        session_id = self.sessions.pop(key, None)
        if session_id is None:
            return
        tasks = self.tasks[session_id]
        tasks.remove(key)
        if not tasks:
            del self.tasks[session_id]

    def _forget(self) -> None:
        self.sessions.clear()
        self.tasks.clear()


class _Loss:
    """A task that is its owner's until a transaction commits."""

    __slots__ = ("has_happened", "session_id")

    def __init__(self, session_id: int) -> None:
        self.session_id = session_id
        self.has_happened = False
