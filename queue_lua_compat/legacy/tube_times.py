"""The durations of the tasks of each tube of a space."""

from __future__ import annotations

from typing import Any, Final

from iproto_server import Box
from queue_lua_compat.task_times import TaskTimes

_TIMES_MAX: Final = 1000
"""Tubes whose durations are kept apart: clients choose the names of tubes."""


class TubeTimes:
    """Durations by tube.

    Parameters:
        box: the box.
        kept: state that survives reloads.
    """

    def __init__(self, box: Box, kept: dict[str, Any]) -> None:
        self._box = box
        self._kept: dict[str, dict[str, Any]] = kept.setdefault("times", {})
        self._times = {tube: TaskTimes(box, times) for tube, times in self._kept.items()}
        self._others = TaskTimes(box, {})

    def __contains__(self, tube: str) -> bool:
        return tube in self._times

    def of(self, tube: str) -> TaskTimes:
        """Return the durations of a tube's tasks; beyond a limited number of tubes, those of all others."""
        times = self._times.get(tube)
        if times is None:
            if len(self._times) >= _TIMES_MAX:
                return self._others
            times = self._times[tube] = TaskTimes(self._box, self._kept.setdefault(tube, {}))
        return times
