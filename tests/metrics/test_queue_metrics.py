"""The queues of applications, for Prometheus."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import cast

import pytest

from iproto_server import Box, BoxError, Histogram, ManagedQueue, TaskState
from iproto_server.managed_queue import SUSPICIOUS_MAX
from iproto_server.metrics.queue_metrics import READ_AT_ONCE, QueueMetrics


class Queue:
    """What the metrics read of a queue."""

    dialect, kind, actions, options = "test", "fifo", frozenset[str](), frozenset[str]()

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_broken = False
        self.is_measured = True

    def counts(self) -> Mapping[TaskState, int]:
        if self.is_broken:
            raise BoxError.procedure("the queue was dropped")
        return {TaskState.READY: 3, TaskState.BURIED: 1}

    def calls(self) -> Mapping[str, int]:
        return {"put": 4}

    def oldest_ready(self) -> float | None:
        return 1.5 if self.is_measured else None

    def consumers_waiting(self) -> int:
        return 2

    def waits(self) -> Histogram | None:
        if not self.is_measured:
            return None
        waits = Histogram([1])
        waits.observe(0.5)
        return waits

    def services(self) -> Histogram | None:
        return self.waits()


Series = dict[tuple[str, ...], float]


def series(*queues: Queue, max_queues: int = 100) -> dict[str, Series]:
    """The values by name and labels."""
    return asyncio.run(collected(metrics_of(*queues, max_queues=max_queues)))


def metrics_of(*queues: Queue, max_queues: int = 100) -> QueueMetrics:
    box = Box()

    def listed() -> list[ManagedQueue]:
        assert box.is_in_txn()
        assert box.session.user() == "admin"
        return [cast(ManagedQueue, queue) for queue in queues]

    return QueueMetrics(box, listed, max_queues)


async def collected(metrics: QueueMetrics) -> dict[str, Series]:
    return {
        family.name: {(sample.suffix, *sample.labels.values()): sample.value for sample in family.samples}
        for family in [family async for family in metrics.families()]
    }


def test_what_a_queue_tells() -> None:
    durations = {
        ("_bucket", "a", "1.0"): 1,
        ("_bucket", "a", "+Inf"): 1,
        ("_count", "a"): 1,
        ("_sum", "a"): 0.5,
    }
    assert series(Queue("a")) == {
        "tnt_queue_tasks": {("", "a", "ready"): 3, ("", "a", "buried"): 1},
        "tnt_queue_calls": {("", "a", "put"): 4},
        "tnt_queue_oldest_ready_seconds": {("", "a"): 1.5},
        "tnt_queue_oldest_taken_seconds": {("", "a"): 0},
        "tnt_queue_task_ended_connections": {},
        "tnt_queue_consumers_waiting": {("", "a"): 2},
        "tnt_queue_wait_seconds": durations,
        "tnt_queue_service_seconds": durations,
        "tnt_queue_left_out": {("",): 0},
    }


def test_a_held_task_and_tasks_that_end_connections_are_told() -> None:
    class Poisoned(Queue):
        def oldest_taken(self) -> float:
            return 7.5

        def suspicious_tasks(self) -> dict[int | str, int]:
            return {number: 5 + number for number in range(2 * SUSPICIOUS_MAX)}

    told = series(Poisoned("a"))
    assert told["tnt_queue_oldest_taken_seconds"] == {("", "a"): 7.5}
    assert told["tnt_queue_task_ended_connections"] == {
        ("", "a", str(number)): 5 + number for number in range(SUSPICIOUS_MAX)
    }


def test_what_a_dialect_does_not_measure_is_missing() -> None:
    queue = Queue("a")
    queue.is_measured = False
    told = series(queue)
    assert told["tnt_queue_wait_seconds"] == told["tnt_queue_service_seconds"] == {}
    assert told["tnt_queue_oldest_ready_seconds"] == {("", "a"): 0}


@pytest.mark.parametrize(("max_queues", "shown"), [(0, []), (2, ["a", "b"]), (3, ["a", "b", "c"])])
def test_queues_beyond_the_limit_are_counted(max_queues: int, shown: list[str]) -> None:
    told = series(Queue("a"), Queue("b"), Queue("c"), max_queues=max_queues)
    assert [name for _, name in told["tnt_queue_consumers_waiting"]] == shown
    assert told["tnt_queue_left_out"] == {("",): 3 - len(shown)}


def test_many_queues_are_read_in_steps() -> None:
    queues = [Queue(f"{number:03}") for number in range(3 * READ_AT_ONCE + 1)]
    assert len(series(*queues)["tnt_queue_consumers_waiting"]) == len(queues)


def test_two_queues_of_one_name_are_one() -> None:
    assert len(series(Queue("a"), Queue("a"))["tnt_queue_consumers_waiting"]) == 1


def test_a_queue_that_fails_is_left_out_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    good, broken = Queue("a"), Queue("b")
    broken.is_broken = True
    metrics = metrics_of(good, broken)
    logged = []
    with caplog.at_level(logging.ERROR):
        for broken.is_broken in (True, True, False, True):
            told = asyncio.run(collected(metrics))
            assert (("", "b") in told["tnt_queue_consumers_waiting"]) is not broken.is_broken
            assert ("", "a") in told["tnt_queue_consumers_waiting"]
            logged.append(len(caplog.records))
    assert logged == [1, 1, 1, 2]
    assert caplog.records[0].getMessage() == "the queue b cannot be read for the metrics"
