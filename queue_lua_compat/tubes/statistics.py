"""Counters of calls per tube, and numbers of tasks by state."""

from __future__ import annotations

from functools import partial
from typing import Final

from iproto_server import Box, BoxError, IteratorType, Space, Tally
from queue_lua_compat.tubes.driver import STATES

CALLS: Final = (
    "ack",
    "bury",
    "delete",
    "kick",
    "put",
    "release",
    "take",
    "touch",
    "ttl",
    "ttr",
    "delay",
)
_DONE: Final = "done"
_STATUS_INDEX: Final = 1

Additions = tuple[tuple[str, int], ...]
"""Names of a tube's counters, with the amount to add to each."""

_REMOVED: Final[Additions] = (("delete", 1), (_DONE, 1))
_ACKNOWLEDGED: Final[Additions] = (("ack", 1), ("delete", -1))


class Statistics:
    """The counters since the start. A rollback undoes what its transaction counted.

    Parameters:
        box: the box.
        counters: the counters by name, by the name of the tube's space.
    """

    def __init__(self, box: Box, counters: dict[str, dict[str, int]]) -> None:
        self._box = box
        self.counters = counters
        self._tally: Tally[tuple[str, Additions]] = Tally(box, self._add)

    def count(self, space_name: str, call: str) -> None:
        """Count a call."""
        self._tally.count((space_name, ((call, 1),)))

    def count_removed(self, space_name: str) -> None:
        """Count a removed task."""
        self._tally.count((space_name, _REMOVED))

    def count_acknowledged(self, space_name: str) -> None:
        """Count a removed task, counted before, as an acknowledged one."""
        self._tally.count((space_name, _ACKNOWLEDGED))

    def forget(self, space_name: str) -> None:
        """Remove the counters of a dropped tube."""
        before = self.counters.pop(space_name, None)
        if before is not None:
            self._box.on_rollback(partial(self.counters.__setitem__, space_name, before))

    def of(self, space_name: str) -> dict[str, dict[str, int]]:
        """Return a tube's numbers of tasks by state, and its counters.

        Raises:
            BoxError: the space does not exist, or the caller may not read it.
        """
        if space_name not in self._box.space:
            raise BoxError.procedure("attempt to index a nil value")
        counters = self.counters.get(space_name, {})
        tasks = self.tasks(space_name)
        tasks["total"] = sum(tasks.values())
        tasks[_DONE] = counters.get(_DONE, 0)
        calls = dict.fromkeys(CALLS, 0) | {call: times for call, times in counters.items() if call != _DONE}
        return {"tasks": tasks, "calls": calls}

    def tasks(self, space_name: str) -> dict[str, int]:
        """Return the number of tasks in each state, by the state's name."""
        return tasks_by_state(self._box.space[space_name])

    def _add(self, counted: tuple[str, Additions], times: int) -> None:
        space_name, additions = counted
        counters = self.counters.get(space_name)
        if counters is None:
            counters = self.counters[space_name] = {}
        for name, amount in additions:
            counters[name] = counters.get(name, 0) + amount * times


def tasks_by_state(space: Space) -> dict[str, int]:
    """Return the number of tasks in each state, by the state's name, in the space of a tube."""
    space.readable()
    index = space.index[_STATUS_INDEX].tree
    return {name: index.count(IteratorType.EQ, [state]) for name, state in STATES.items()}
