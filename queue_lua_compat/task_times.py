"""How long tasks wait until they are taken, and how long consumers have them."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, Final

from iproto_server import Box, Histogram

_SECOND: Final = 1e-9
"""A nanosecond in seconds."""

EARLIEST: Final = 10**18
"""Smaller numbers are no times, but ids that a client has chosen."""

_KNOWN_MAX: Final = 100_000
"""The maximum number of tasks whose time of becoming ready again is known, some 15 MB."""


class TaskTimes:
    """The durations of a queue, and the times that its rows do not have. All times are those of
    `Box.clock.time_ns`.

    A rollback does not take durations back.

    Parameters:
        box: the box.
        kept: state that survives reloads, from `Box.keep`.

    Attributes:
        waits: from ready to taken.
        services: from taken to acknowledged.
        ready_since: when tasks became ready that were not ready when they were put, by their keys. If there
            are too many, some are missing.
    """

    def __init__(self, box: Box, kept: dict[str, Any]) -> None:
        self.now = box.clock.time_ns
        self.waits: Histogram = kept.setdefault("waits", Histogram())
        self.services: Histogram = kept.setdefault("services", Histogram())
        self.ready_since: dict[Any, int] = kept.setdefault("ready since", {})
        self._bounds = [round(bound / _SECOND) for bound in self.waits.bounds]

    def became_ready(self, key: Any) -> None:
        """Note that a stored task has become ready."""
        if len(self.ready_since) < _KNOWN_MAX or key in self.ready_since:
            self.ready_since[key] = self.now()

    def removed(self, key: Any) -> None:
        """Forget a task that is ready no longer."""
        self.ready_since.pop(key, None)

    # The next two run for each task, so that they count integers without the help of `Histogram.observe`.

    def taken(self, key: Any, created: object, now: int) -> None:
        """Count how long a task was ready.

        Parameters:
            key: the task's key.
            created: when it was put, or what the dialect has in its place.
            now: when it is taken.
        """
        since = self.ready_since.pop(key, created) if self.ready_since else created
        if type(since) is int and since > EARLIEST:
            spent = now - since if now > since else 0
            waits = self.waits
            waits.counts[bisect_left(self._bounds, spent)] += 1
            waits.sum += spent * _SECOND

    def acknowledged(self, taken_at: int | None) -> None:
        """Count how long a task was taken, which is acknowledged now; None if that is unknown."""
        if taken_at is not None:
            now = self.now()
            spent = now - taken_at if now > taken_at else 0
            services = self.services
            services.counts[bisect_left(self._bounds, spent)] += 1
            services.sum += spent * _SECOND
