"""When tasks were put, for drivers that do not store it: one time for all tasks of a second."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, Final

from iproto_server import Box

_SECOND: Final = 10**9
_ENTRIES_MAX: Final = 10_000


class PutTimes:
    """The times at which ids were given to tasks since the start; ids rise until the tube is empty.

    Times are nanoseconds since 1970, less than a second early. Those of the older tasks are less exact if
    there are very many.

    Parameters:
        box: the box.
        kept: state that survives reloads, from `Box.keep`.

    Attributes:
        since: when this began.
    """

    def __init__(self, box: Box, kept: dict[str, Any]) -> None:
        self._now = box.clock.time_ns
        self._ids: list[int] = kept.setdefault("ids", [])
        self._moments: list[int] = kept.setdefault("moments", [])
        self.since: int = kept.setdefault("since", self._now())

    def note(self, task_id: int) -> None:
        """Note that a task is put now."""
        now, ids, moments = self._now(), self._ids, self._moments
        if ids and task_id <= ids[-1]:
            # The tube has been empty, and its ids began again.
            place = bisect_right(ids, task_id - 1)
            del ids[place:], moments[place:]
        if not moments or now - moments[-1] >= _SECOND or now < moments[-1]:
            ids.append(task_id)
            moments.append(now)
            if len(ids) > _ENTRIES_MAX:
                del ids[1::2], moments[1::2]

    def of(self, task_id: int) -> int | None:
        """Return when a task was put; None if that was before the start."""
        place = bisect_right(self._ids, task_id)
        return self._moments[place - 1] if place else None
