"""Those who wait for tasks, as rows of `_queue_consumers`."""

from __future__ import annotations

from functools import partial
from typing import Any

from iproto_server import Box, Waiter, WaitQueue
from queue_lua_compat.tubes import timestamps
from queue_lua_compat.tubes.system_spaces import CONSUMERS


class Consumers:
    """Who waits in which tube. There is a row for as long as somebody waits, for all to see.

    Parameters:
        box: the box.
        kept: lives on while the code is loaded anew: under "last" the number of the last wait (Lua's queue
            has the number of the fiber there), under "waiting" who waits, by the key of the row.
    """

    def __init__(self, box: Box, kept: dict[str, Any]) -> None:
        self._box = box
        self._kept = kept
        self._waiting: dict[tuple[int, int], Waiter] = kept.setdefault("waiting", {})
        for key, waiter in self._waiting.items():
            before, waiter.on_finish = waiter.on_finish, partial(self._leave, key)
            box.on_rollback(partial(setattr, waiter, "on_finish", before))

    def park(
        self, line: WaitQueue, tube_id: int, seconds: float, arguments: tuple[object, ...] = ()
    ) -> Waiter:
        """Let the current session wait in a tube's line.

        Parameters:
            line: the line.
            tube_id: the tube's number.
            seconds: how long.
            arguments: what the line's function is called with when it is this one's turn.
        """
        box = self._box
        number = self._kept["last"] = self._kept.get("last", 0) + 1
        key = (box.session.id(), number)
        box.space[CONSUMERS].insert(
            [*key, tube_id, timestamps.moment_after(box, seconds), timestamps.now(box)]
        )
        waiter = line.park(seconds, arguments=arguments)
        if waiter.is_done:
            self._leave(key)
        else:
            self._waiting[key] = waiter
            waiter.on_finish = partial(self._leave, key)
        return waiter

    def is_anybody_in(self, tube_id: int) -> bool:
        """Whether somebody waits in a tube."""
        return self._box.space[CONSUMERS].index["consumer"].first([tube_id]) is not None

    def _leave(self, key: tuple[int, int]) -> None:
        """The wait is over, whatever its user may do."""
        box = self._box
        self._waiting.pop(key, None)
        if CONSUMERS in box.space:
            box.session.su("admin", box.atomic, self._delete, key)

    def _delete(self, key: tuple[int, int]) -> None:
        # The row comes back when the log cannot be written, but nobody waits any more.
        self._box.on_rollback(lambda: self._box.clock.call_later(0.0, partial(self._leave, key)))
        self._box.space[CONSUMERS].delete(key)
