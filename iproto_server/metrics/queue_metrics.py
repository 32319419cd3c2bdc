"""The queues of applications, for Prometheus."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sized
from dataclasses import dataclass
from itertools import islice
from typing import Final, Protocol, TypeVar

from iproto_server.box.api.box import Box
from iproto_server.managed_queue import Histogram, ManagedQueue, TaskState, oldest_taken, suspicious_tasks
from iproto_server.metrics.exposition import Family, Sample, histogram_samples

Result = TypeVar("Result")

logger = logging.getLogger("iproto_server.server")

READ_AT_ONCE: Final = 10
"""Queues that are read in one iteration of the event loop."""


class Queues(Sized, Iterable[ManagedQueue], Protocol):
    """Queues in the order of their names; each may be made when it is reached."""


@dataclass(frozen=True, slots=True)
class _Figures:
    """The figures of a queue."""

    name: str
    counts: Mapping[TaskState, int]
    calls: Mapping[str, int]
    oldest_ready: float | None
    oldest_taken: float | None
    suspicious: Mapping[int | str, int]
    consumers_waiting: int
    waits: Histogram | None
    services: Histogram | None


class QueueMetrics:
    """Reads the queues of applications.

    Parameters:
        box: the box.
        queues: returns the queues, within the running transaction.
        max_queues: maximum number of queues with series.
    """

    def __init__(self, box: Box, queues: Callable[[], Queues], max_queues: int) -> None:
        self._box = box
        self._queues = queues
        self._max_queues = max_queues
        self._failed: set[str] = set()

    async def families(self) -> AsyncIterator[Family]:
        """Yield the metrics of all queues. Queues that cannot be read are left out, which is logged once."""
        queues = self._run(self._queues)
        # A name is there once, because two series of the same labels make a page invalid.
        unique = self._run(lambda: {queue.name: queue for queue in islice(queues, self._max_queues)})
        shown = iter(unique.values())
        figures: list[_Figures] = []
        while part := list(islice(shown, READ_AT_ONCE)):
            figures += [read for queue in part if (read := self._read(queue)) is not None]
            await asyncio.sleep(0)
        for family in _families(figures):
            yield family
        left_out = max(len(queues) - self._max_queues, 0)
        yield Family(
            "tnt_queue_left_out", "gauge", "Queues beyond --metrics-max-queues", [Sample(left_out, {})]
        )

    def _run(self, function: Callable[[], Result]) -> Result:
        return self._box.run(self._box.session.background, function)

    def _read(self, queue: ManagedQueue) -> _Figures | None:
        name = queue.name
        try:
            figures = self._run(lambda: _figures(queue))
        except BaseException:  # of an application's code, or the queue was dropped meanwhile
            if name not in self._failed:
                logger.exception("the queue %s cannot be read for the metrics", name)
            self._failed.add(name)
            return None
        self._failed.discard(name)
        return figures


def _figures(queue: ManagedQueue) -> _Figures:
    return _Figures(
        queue.name,
        dict(queue.counts()),
        dict(queue.calls()),
        queue.oldest_ready(),
        oldest_taken(queue),
        suspicious_tasks(queue),
        queue.consumers_waiting(),
        queue.waits(),
        queue.services(),
    )


def _families(queues: list[_Figures]) -> Iterable[Family]:
    yield Family(
        "tnt_queue_tasks",
        "gauge",
        "Tasks by state",
        (
            Sample(count, {"name": queue.name, "state": TaskState(state).value})
            for queue in queues
            for state, count in queue.counts.items()
        ),
    )
    yield Family(
        "tnt_queue_calls",
        "counter",
        "Calls by name, since the start",
        (
            Sample(count, {"name": queue.name, "call": call})
            for queue in queues
            for call, count in queue.calls.items()
        ),
    )
    yield Family(
        "tnt_queue_oldest_ready_seconds",
        "gauge",
        "Time for which the oldest ready task has been ready; 0 without ready tasks",
        (Sample(queue.oldest_ready or 0.0, {"name": queue.name}) for queue in queues),
    )
    yield Family(
        "tnt_queue_oldest_taken_seconds",
        "gauge",
        "Time for which the first of the taken tasks has been taken; 0 without taken tasks",
        (Sample(queue.oldest_taken or 0.0, {"name": queue.name}) for queue in queues),
    )
    yield Family(
        "tnt_queue_task_ended_connections",
        "gauge",
        "Connections of consumers that a task has ended; of tasks with five or more, by task",
        (
            Sample(count, {"name": queue.name, "task": str(task_id)})
            for queue in queues
            for task_id, count in queue.suspicious.items()
        ),
    )
    yield Family(
        "tnt_queue_consumers_waiting",
        "gauge",
        "Calls that wait for a task",
        (Sample(queue.consumers_waiting, {"name": queue.name}) for queue in queues),
    )
    yield Family(
        "tnt_queue_wait_seconds",
        "histogram",
        "Time for which tasks were ready until they were taken",
        (
            sample
            for queue in queues
            if queue.waits is not None
            for sample in histogram_samples(queue.waits, {"name": queue.name})
        ),
    )
    yield Family(
        "tnt_queue_service_seconds",
        "histogram",
        "Time for which tasks were taken until they were acknowledged",
        (
            sample
            for queue in queues
            if queue.services is not None
            for sample in histogram_samples(queue.services, {"name": queue.name})
        ),
    )
