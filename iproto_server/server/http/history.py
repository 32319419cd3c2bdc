"""The last hour of the queues and of the server, in memory, for charts."""

from __future__ import annotations

import logging
import math
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Final

from iproto_server.box import Box
from iproto_server.managed_queue import Histogram, ManagedQueue, TaskState

logger = logging.getLogger("iproto_server.http")

INTERVAL: Final = 10.0
"""Seconds between two samples."""
SAMPLES: Final = 360
"""Maximum number of samples: an hour."""
_QUANTILE: Final = 0.95

_STATES: Final = tuple(TaskState)
_CALLS: Final = ("put", "take", "ack")
QUEUE_SERIES: Final = (
    *(state.value for state in _STATES),
    *(f"{call}_rate" for call in _CALLS),
    "oldest_ready",
    "waiting",
    "wait_mean",
    "wait_p95",
    "service_mean",
    "service_p95",
)
"""Series of each queue: tasks by state, calls per second, ages and durations in seconds."""
SERVER_SERIES: Final = (
    "connections",
    "request_rate",
    "error_rate",
    "loop_latency",
    "memory",
    "wal_bytes",
)
"""Series of the server: rates per second, the latency in seconds, sizes in bytes."""

_Totals = dict[str, float]


@dataclass(frozen=True, slots=True)
class ServerFigures:
    """The server's figures for a sample; totals since the start."""

    connections: int
    requests: int
    errors: int
    loop_latency: float
    memory: int
    wal_bytes: int


@dataclass(frozen=True, slots=True)
class _Sample:
    time: float
    server: array[float]
    queues: dict[str, array[float]]


class History:
    """Takes samples, and keeps those of the last hour.

    Parameters:
        box: the database.
        queues: returns the queues, within the running transaction.
        server: returns the server's figures.
        max_queues: maximum number of queues in a sample: some 170 bytes each.
        steady: returns steady time in seconds.
    """

    def __init__(
        self,
        box: Box,
        queues: Callable[[], Iterable[ManagedQueue]],
        server: Callable[[], ServerFigures],
        max_queues: int,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._box = box
        self._queues = queues
        self._server = server
        self._max_queues = max_queues
        self._steady = steady
        self._samples: deque[_Sample] = deque(maxlen=SAMPLES)
        self._last: float | None = None
        self._totals: _Totals = {}
        self._last_of_queues: dict[str, tuple[Mapping[str, int], _Measured, _Measured]] = {}
        self._failed: set[str] = set()

    def sample(self) -> None:
        """Take a sample."""
        now = self._steady()
        passed = math.nan if self._last is None else max(now - self._last, 1e-3)
        self._last = now
        queues, last = {}, self._last_of_queues
        self._last_of_queues = {}
        for queue in self._box.run(self._box.session.background, self._first):
            found = self._box.run(self._box.session.background, self._read, queue, passed, last)
            if found is not None:
                queues[queue.name] = found
        self._samples.append(_Sample(time.time(), self._of_server(passed), queues))

    def columns(self, queue: str | None) -> dict[str, object]:
        """Return the samples of the server with the sums of all queues, or those of a queue.

        What was unknown is None.

        Parameters:
            queue: the queue's name.
        """
        samples = self._samples
        if queue is None:
            series = {
                name: [_shown(sample.server[place]) for sample in samples]
                for place, name in enumerate(SERVER_SERIES)
            }
            series |= {
                name: [_shown(_sum(sample.queues.values(), place)) for sample in samples]
                for place, name in enumerate(QUEUE_SERIES[: len(_STATES) + len(_CALLS)])
            }
            for name in ("oldest_ready", "waiting"):
                place = QUEUE_SERIES.index(name)
                join = _max if name == "oldest_ready" else _sum
                series[name] = [_shown(join(sample.queues.values(), place)) for sample in samples]
        else:
            rows = [sample.queues.get(queue) for sample in samples]
            series = {
                name: [None if row is None else _shown(row[place]) for row in rows]
                for place, name in enumerate(QUEUE_SERIES)
            }
        return {
            "interval": INTERVAL,
            "queue": queue,
            "times": [round(sample.time, 3) for sample in samples],
            "series": series,
        }

    def _first(self) -> list[ManagedQueue]:
        return list(islice(self._queues(), self._max_queues))

    def _of_server(self, passed: float) -> array[float]:
        figures = self._server()
        totals: _Totals = {"requests": figures.requests, "errors": figures.errors}
        rates = [(total - self._totals.get(name, math.nan)) / passed for name, total in totals.items()]
        self._totals = totals
        return array(
            "d", [figures.connections, *rates, figures.loop_latency, figures.memory, figures.wal_bytes]
        )

    def _read(
        self,
        queue: ManagedQueue,
        passed: float,
        last: Mapping[str, tuple[Mapping[str, int], _Measured, _Measured]],
    ) -> array[float] | None:
        name = queue.name
        try:
            counts, calls = queue.counts(), dict(queue.calls())
            waits, services = _Measured(queue.waits()), _Measured(queue.services())
            oldest, waiting = queue.oldest_ready(), queue.consumers_waiting()
        except BaseException:  # of an application's code, or the queue was dropped meanwhile
            if name not in self._failed:
                logger.exception("the queue %s cannot be read for the history", name)
            self._failed.add(name)
            return None
        self._failed.discard(name)
        self._last_of_queues[name] = calls, waits, services
        before = last.get(name)
        if before is None:
            rates = [math.nan] * len(_CALLS)
            durations = [math.nan] * 4
        else:
            rates = [(calls.get(call, 0) - before[0].get(call, 0)) / passed for call in _CALLS]
            durations = [*waits.since(before[1]), *services.since(before[2])]
        return array(
            "d",
            [
                *(counts.get(state, math.nan) for state in _STATES),
                *rates,
                math.nan if oldest is None else oldest,
                waiting,
                *durations,
            ],
        )


class _Measured:
    """The state of a histogram."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, histogram: Histogram | None) -> None:
        self._bounds: Sequence[float] = () if histogram is None else histogram.bounds
        self._counts = () if histogram is None else tuple(histogram.counts)
        self._sum = 0.0 if histogram is None else histogram.sum

    def since(self, before: _Measured) -> tuple[float, float]:
        """Return the mean and the 95th percentile (an upper bound) of what was measured since then."""
        if len(before._counts) != len(self._counts):
            return math.nan, math.nan
        counts = [new - old for new, old in zip(self._counts, before._counts, strict=True)]
        total = sum(counts)
        if total <= 0:
            return math.nan, math.nan
        place = next(at for at, seen in enumerate(accumulate(counts)) if seen >= total * _QUANTILE)
        return (self._sum - before._sum) / total, self._bounds[min(place, len(self._bounds) - 1)]


def _known(rows: Iterable[array[float]], place: int) -> list[float]:
    return [row[place] for row in rows if not math.isnan(row[place])]


def _sum(rows: Iterable[array[float]], place: int) -> float:
    known = _known(rows, place)
    return sum(known) if known else math.nan


def _max(rows: Iterable[array[float]], place: int) -> float:
    return max(_known(rows, place), default=math.nan)


def _shown(value: float) -> float | None:
    if math.isnan(value):
        return None
    # Numbers of tasks are exact; rates and times need no more than six digits.
    return value if value.is_integer() else float(f"{value:.6g}")
