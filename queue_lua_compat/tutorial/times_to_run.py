"""Ends the time that consumers of the tutorial's queue may have a task, where it is limited."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Any

from iproto_server import Box, DueTimer, IncrementalDict


class TimesToRun:
    """The times to run of taken tasks. They are not stored: after a restart no task is taken.

    Parameters:
        box: the box.
        time_out: takes a task away from its consumer.
        until: survives reloads: when the times of tasks are over, in seconds since 1970, by their keys.

    Attributes:
        until: that dict.
    """

    def __init__(
        self, box: Box, time_out: Callable[[Any], object], until: IncrementalDict[Any, float]
    ) -> None:
        self._time_out = time_out
        self.until = until
        self._ends = [(moment, key) for key, moment in until.items()]
        heapq.heapify(self._ends)
        self._timer = DueTimer(box, self._end_due, "tasks whose time to run is over")

    def begin(self) -> None:
        """Start when the running transaction has committed."""
        self._timer.begin()

    def stop(self) -> None:
        """Stop for good."""
        self._timer.stop()

    def start(self, key: Any, seconds: float) -> None:
        """Start the time of a task, or start it again.

        Parameters:
            key: the task's key.
            seconds: the time to run.
        """
        moment = self._timer.now() + seconds
        self.until[key] = moment
        heapq.heappush(self._ends, (moment, key))
        # A rollback leaves it: a task that is not taken does not time out.
        self._timer.schedule_immediately(moment)

    def end(self, key: Any) -> None:
        """Forget the time of a task that is taken no longer."""
        self.until.pop(key, None)

    def _end_due(self) -> float:
        """Time tasks out, a limited number at once, and return when the next one is due."""
        now = self._timer.now()
        while self._ends:
            moment, key = self._ends[0]
            if moment > now or self._timer.is_full:
                return moment
            heapq.heappop(self._ends)
            if self.until.get(key) != moment:
                continue
            pause = self._timer.attempt(key, self._time_out, key)
            if pause:
                self.until[key] = now + pause
                heapq.heappush(self._ends, (now + pause, key))
            else:
                self.until.pop(key, None)
        return math.inf
