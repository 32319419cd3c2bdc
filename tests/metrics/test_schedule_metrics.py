"""The schedules of queues, for Prometheus."""

from __future__ import annotations

from typing import Any

from iproto_server.metrics.schedule_metrics import schedule_families


def schedule(name: str, **more: object) -> dict[str, Any]:
    return {"name": name, "queue": "jobs", "next_due": 90, "last_put": 30.5, "last_error": None, **more}


def series(*schedules: dict[str, Any], max_schedules: int = 100) -> dict[str, dict[tuple[str, ...], float]]:
    """Return the values by name and labels."""
    return {
        family.name.removeprefix("tnt_queue_"): {
            tuple(sample.labels.values()): sample.value for sample in family.samples
        }
        for family in schedule_families(schedules, max_schedules)
    }


def test_the_metrics_of_schedules() -> None:
    assert series(schedule("a"), schedule("b", last_put=None, last_error="no queue", next_due=None)) == {
        "schedules": {(): 2},
        "schedule_due_timestamp_seconds": {("jobs", "a"): 90},
        "schedule_put_timestamp_seconds": {("jobs", "a"): 30.5},
        "schedule_failing": {("jobs", "a"): 0, ("jobs", "b"): 1},
    }


def test_without_schedules() -> None:
    assert series()["schedules"] == {(): 0}


def test_all_are_counted_beyond_the_limit() -> None:
    told = series(schedule("a"), schedule("b"), max_schedules=1)
    assert told["schedules"] == {(): 2}
    assert told["schedule_failing"] == {("jobs", "a"): 0}
