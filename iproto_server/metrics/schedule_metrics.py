"""The schedules of queues, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from iproto_server.metrics.exposition import Family, Sample

Schedules = Sequence[Mapping[str, Any]]


def schedule_families(schedules: Schedules, max_schedules: int) -> Iterator[Family]:
    """Yield the metrics of schedules.

    Parameters:
        schedules: the schedules, as `operator.schedules` returns them.
        max_schedules: the maximum number of schedules with series of their own.
    """
    yield Family("tnt_queue_schedules", "gauge", "Schedules", [Sample(len(schedules), {})])
    shown = schedules[:max_schedules]
    for name, field, text in (
        ("tnt_queue_schedule_due_timestamp_seconds", "next_due", "Next due time of a schedule"),
        ("tnt_queue_schedule_put_timestamp_seconds", "last_put", "Time of a schedule's last put"),
    ):
        samples = [
            Sample(schedule[field], _labels(schedule)) for schedule in shown if schedule[field] is not None
        ]
        yield Family(name, "gauge", text, samples)
    yield Family(
        "tnt_queue_schedule_failing",
        "gauge",
        "Whether the puts of a schedule fail",
        [Sample(int(schedule["last_error"] is not None), _labels(schedule)) for schedule in shown],
    )


def _labels(schedule: Mapping[str, Any]) -> dict[str, str]:
    return {"name": schedule["queue"], "schedule": schedule["name"]}
