"""How long tasks wait until they are taken, and how long consumers have them."""

from __future__ import annotations

from typing import Any, Final

from iproto_server import Box, Durations, Histogram, IncrementalDict

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
        waited, served: the durations from ready to taken and from taken to acknowledged.
        ready_since: when tasks became ready that were not ready when they were put, by their keys. If there
            are too many, some are missing.
    """

    def __init__(self, box: Box, kept: dict[str, Any]) -> None:
        self.now = box.clock.time_ns
        self.ready_since: IncrementalDict[Any, int] = kept.setdefault("ready since", IncrementalDict())
        if "waited" not in kept:
            kept["waited"] = self._durations(self.ready_since)
            kept["served"] = self._durations(IncrementalDict())
        self.waited: Durations = kept["waited"]
        self.served: Durations = kept["served"]

    @property
    def waits(self) -> Histogram:
        """The durations from ready to taken."""
        return _histogram(self.waited)

    @property
    def services(self) -> Histogram:
        """The durations from taken to acknowledged."""
        return _histogram(self.served)

    @property
    def numbers(self) -> dict[str, int]:
        """The numbers of takes and acknowledgements, by these calls' names."""
        return {"take": self.waited.calls, "ack": self.served.calls}

    def became_ready(self, key: Any) -> None:
        """Note that a stored task has become ready."""
        if len(self.ready_since) < _KNOWN_MAX or key in self.ready_since:
            self.ready_since[key] = self.now()

    def removed(self, key: Any) -> None:
        """Forget a task that is ready no longer."""
        self.ready_since.pop(key, None)

    def taken(self, key: Any, created: int | None) -> int:
        """Count how long a task was ready that is taken now, and return now.

        Parameters:
            key: the task's key.
            created: when it was put; None if that is unknown.
        """
        return self.waited.since(created, key)

    def acknowledged(self, taken_at: int | None) -> None:
        """Count how long a task was taken, which is acknowledged now; None if that is unknown."""
        self.served.since(taken_at, None)

    def _durations(self, noted: IncrementalDict[Any, int]) -> Durations:
        bounds = tuple(round(bound / _SECOND) for bound in Histogram().bounds)
        return Durations(self.now, bounds, EARLIEST, noted)


def _histogram(durations: Durations) -> Histogram:
    histogram = Histogram()
    histogram.counts = list(durations.counts)
    histogram.sum = durations.sum * _SECOND
    return histogram
