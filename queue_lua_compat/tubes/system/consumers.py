"""Waiting consumers, as rows of `_queue_consumers`."""

from __future__ import annotations

from functools import partial
from typing import Any

from iproto_server import Box, Waiter, WaitQueue
from queue_lua_compat.tubes import timestamps
from queue_lua_compat.tubes.system.system_spaces import CONSUMERS, CurrentSpace


class Consumers:
    """The waiting takes of all tubes, each with a row in `_queue_consumers`.

    Parameters:
        box: the box.
        kept: survives reloads: under "last" the number of the last wait (the module stores the number of the
            fiber), under "waiting" the waiting calls, by the key of the row.
    """

    def __init__(self, box: Box, kept: dict[str, Any]) -> None:
        self._box = box
        self._rows = CurrentSpace(box, CONSUMERS)
        self._kept = kept
        self._waiting: dict[tuple[int, int], Waiter] = kept.setdefault("waiting", {})
        for key, waiter in self._waiting.items():
            before, waiter.on_finish = waiter.on_finish, partial(self._leave, key)
            box.on_rollback(partial(setattr, waiter, "on_finish", before))

    def park(
        self, line: WaitQueue, tube_id: int, seconds: float, arguments: tuple[object, ...] = ()
    ) -> Waiter:
        """Let the current session wait in a tube's wait queue.

        Parameters:
            line: the wait queue.
            tube_id: the id of the tube.
            seconds: the timeout.
            arguments: the arguments of the wait queue's function when the session is served.
        """
        box = self._box
        number = self._kept["last"] = self._kept.get("last", 0) + 1
        key = (box.session.id(), number)
        self._rows.current().insert(
            [*key, tube_id, timestamps.moment_after(box, seconds), timestamps.now(box)]
        )
        waiter = line.park(seconds, arguments=arguments)
        if waiter.is_done:
            self._leave(key)
        else:
            self._waiting[key] = waiter
            waiter.on_finish = partial(self._leave, key)
        return waiter

    def is_waited_for(self, tube_id: int) -> bool:
        """Whether any session waits in a tube."""
        return self._box.space[CONSUMERS].index["consumer"].first([tube_id]) is not None

    def _leave(self, key: tuple[int, int]) -> None:
        """Remove the row at the end of a wait, whatever rights the user has."""
        box = self._box
        self._waiting.pop(key, None)
        if CONSUMERS in box.space:
            box.session.su("admin", box.atomic, self._delete, key)

    def _delete(self, key: tuple[int, int]) -> None:
        # If the log cannot be written the row returns, although the session waits no longer.
        self._box.on_rollback(lambda: self._box.clock.call_later(0.0, partial(self._leave, key)))
        self._box.space[CONSUMERS].delete(key)
