"""How long tasks wait until they are taken, and how long consumers have them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from math import fsum
from typing import Any, Final

from iproto_server import Box, Histogram

_SECOND: Final = 1e-9
"""A nanosecond in seconds."""

EARLIEST: Final = 10**18
"""Smaller numbers are no times, but ids that a client has chosen."""

_KNOWN_MAX: Final = 100_000
"""The maximum number of tasks whose time of becoming ready again is known, some 15 MB."""

_BATCH: Final = 1000
"""The number of durations that are sorted into the histograms at once, which costs a tenth of one by one."""


class TaskTimes:
    """The durations of a queue, and the times that its rows do not have. All times are those of
    `Box.clock.time_ns`.

    A rollback does not take durations back.

    Parameters:
        box: the box.
        kept: state that survives reloads, from `Box.keep`.

    Attributes:
        waited, served: durations in nanoseconds that are not in the histograms yet. A queue may append to
            them itself, and call `count` when there are many.
        ready_since: when tasks became ready that were not ready when they were put, by their keys. If there
            are too many, some are missing.
    """

    def __init__(self, box: Box, kept: dict[str, Any]) -> None:
        self.now = box.clock.time_ns
        self._waits: Histogram = kept.setdefault("waits", Histogram())
        self._services: Histogram = kept.setdefault("services", Histogram())
        self.waited: list[Any] = kept.setdefault("waited", [])
        self.served: list[Any] = kept.setdefault("served", [])
        self.ready_since: dict[Any, int] = kept.setdefault("ready since", {})
        self._numbers: dict[str, int] = kept.setdefault("numbers", {"take": 0, "ack": 0})
        self._bounds = [round(bound / _SECOND) for bound in self._waits.bounds]

    @property
    def waits(self) -> Histogram:
        """The durations from ready to taken."""
        self.count()
        return self._waits

    @property
    def services(self) -> Histogram:
        """The durations from taken to acknowledged."""
        self.count()
        return self._services

    @property
    def numbers(self) -> dict[str, int]:
        """The numbers of all durations, by the call that ends them: `take` and `ack`."""
        self.count()
        return self._numbers

    def became_ready(self, key: Any) -> None:
        """Note that a stored task has become ready."""
        if len(self.ready_since) < _KNOWN_MAX or key in self.ready_since:
            self.ready_since[key] = self.now()

    def removed(self, key: Any) -> None:
        """Forget a task that is ready no longer."""
        self.ready_since.pop(key, None)

    def taken(self, key: Any, created: int | None, now: int) -> None:
        """Count how long a task was ready.

        Parameters:
            key: the task's key.
            created: when it was put; None if that is unknown.
            now: when it is taken.
        """
        since = self.ready_since.pop(key, created) if self.ready_since else created
        if since is not None:
            self.waited.append(now - since)
            if len(self.waited) >= _BATCH:
                self.count()

    def acknowledged(self, taken_at: int | None) -> None:
        """Count how long a task was taken, which is acknowledged now; None if that is unknown."""
        if taken_at is not None:
            self.served.append(self.now() - taken_at)
            if len(self.served) >= _BATCH:
                self.count()

    def count(self) -> None:
        """Sort the durations into the histograms."""
        self._numbers["take"] += len(self.waited)
        self._numbers["ack"] += len(self.served)
        self._sort_into(self._waits, self.waited)
        self._sort_into(self._services, self.served)

    def _sort_into(self, histogram: Histogram, durations: list[Any]) -> None:
        if not durations:
            return
        found = sorted(durations)
        durations.clear()
        # A longer one began with an id that is no time.
        del found[bisect_left(found, self.now() - EARLIEST) :]
        counted = 0
        for place, bound in enumerate(self._bounds):
            reached = bisect_right(found, bound)
            histogram.counts[place] += reached - counted
            counted = reached
        histogram.counts[-1] += len(found) - counted
        # The clock may have stepped back.
        histogram.sum += fsum(found[bisect_left(found, 0) :]) * _SECOND
