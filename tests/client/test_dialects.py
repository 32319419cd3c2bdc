"""What each queue is asked, what it lacks, and wrong input."""

from __future__ import annotations

import pytest

from iproto_server.client import Backoff, QueueError, QueueFull, Unsupported
from iproto_server.client import Queue as AsyncQueue
from iproto_server.client.dialects import Outcome, Tube, Tutorial, tube_from_row
from iproto_server.client.retries import REMEMBERED, Failures, identity_of
from iproto_server.client.sync import Queue as SyncQueue

QUEUES = (AsyncQueue, SyncQueue)


def test_the_tutorials_calls() -> None:
    dialect = Tutorial()
    assert dialect.put("a", {}) == ("queue.put", ["a"])
    assert dialect.put("a", {"delay": 2}) == ("queue.put", ["a", {"delay": 2}])
    assert dialect.put("a", {"unique_key": "k"}) == ("queue.put", ["a", {"unique_key": "k"}])
    assert dialect.touch(1, 60) == ("queue.touch", [1])
    assert dialect.release(1, 0) == ("queue.release", [1])
    assert dialect.release(1, 2.5) == ("queue.release", [1, {"delay": 2.5}])
    assert dialect.taken([{"id": 1, "status": "T", "data": "a"}]) == (1, "a")
    assert dialect.taken([]) is dialect.taken([None]) is None


@pytest.mark.parametrize(
    ("kind", "option"),
    [
        ("fifo", None),
        ("utube", "utube"),
        ("fifottl", "pri"),
        ("limfifottl", "timeout"),
        ("utubettl", "delay"),
    ],
)
def test_a_tubes_put_options(kind: str, option: str | None) -> None:
    tube = Tube("jobs", kind, None)
    if option is not None:
        assert tube.put("a", {option: 1}) == ("queue.tube.jobs:put", ["a", {option: 1}])
    with pytest.raises(ValueError, match=rf"put: tube jobs \({kind}\) has no option 'wrong'; its options: "):
        tube.put("a", {"wrong": 1})


def test_an_unknown_driver_checks_its_options_itself() -> None:
    tube = Tube("jobs", "lifo", 5.0)
    assert tube.put("a", {"any": 1}).arguments == ["a", {"any": 1}]
    assert (tube.delayed_release, tube.can_touch, tube.ttr) == (False, False, None)


def test_what_is_lacking_is_said_and_refused() -> None:
    fifo, ttl = Tube("jobs", "fifo", None), Tube("jobs", "fifottl", 60.0)
    assert [line.partition(",")[0] for line in fifo.lacks(3)] == [
        "it cannot delay released tasks",
        "it has no ttr",
    ]
    assert ttl.lacks(3) == []
    assert any("max_failures has no effect" in line for line in Tutorial().lacks(3))
    with pytest.raises(Unsupported, match="cannot delay"):
        fifo.release(1, 2)
    with pytest.raises(Unsupported, match="has no ttr"):
        fifo.touch(1, 2)
    with pytest.raises(Unsupported, match="cannot bury"):
        Tutorial().bury(1)


def test_strange_results_are_errors() -> None:
    with pytest.raises(QueueError, match="returned no task but 'x'"):
        Tutorial().taken(["x"])
    with pytest.raises(QueueError, match="returned no task but 5"):
        Tube("jobs", "fifo", None).taken([5])
    with pytest.raises(QueueFull, match="is full"):
        Tube("jobs", "limfifottl", None).added([None])


def test_a_tubes_row_tells_its_ttr() -> None:
    assert tube_from_row("jobs", ["jobs", 0, "jobs", "fifottl", {"ttr": 60}]).ttr == 60.0
    assert tube_from_row("jobs", ["jobs", 0, "jobs", "fifottl", {"ttr": 3_153_600_000}]).ttr is None
    assert tube_from_row("jobs", ["jobs", 0, "jobs", "utube", []]).ttr is None
    with pytest.raises(QueueError, match="there is no tube 'jobs'"):
        tube_from_row("jobs", None)


@pytest.mark.parametrize("queue", QUEUES)
def test_wrong_arguments_are_refused(queue: type[AsyncQueue] | type[SyncQueue]) -> None:
    with pytest.raises(ValueError, match="one of the two"):
        queue("127.0.0.1:3301")
    with pytest.raises(ValueError, match="one of the two"):
        queue("127.0.0.1:3301", "tutorial", tube="jobs")
    with pytest.raises(ValueError, match="unknown dialect 'redis'"):
        queue("127.0.0.1:3301", "redis")
    with pytest.raises(ValueError, match="name is not empty"):
        queue("127.0.0.1:3301", tube="")
    with pytest.raises(ValueError, match="is not an address"):
        queue("127.0.0.1", "tutorial")
    with pytest.raises(ValueError, match="more than 0 seconds"):
        queue("127.0.0.1:3301", "tutorial", connect_timeout=0)


def test_a_backoff_grows_up_to_its_limit() -> None:
    backoff = Backoff(first=1, factor=3, longest=20, jitter=0.5, chance=lambda: 0.0)
    assert [backoff.delay(failures) for failures in (1, 2, 3, 4, 10_000)] == [1, 3, 9, 20, 20]
    assert Backoff(first=8, jitter=0.5, chance=lambda: 1.0).delay(1) == 4.0


@pytest.mark.parametrize("wrong", [{"first": -1}, {"longest": -1}, {"factor": 0.5}, {"jitter": 2}])
def test_a_wrong_backoff_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="of a backoff"):
        Backoff(**wrong)  # type: ignore[arg-type]


def test_failures_are_counted_for_a_limited_number_of_tasks() -> None:
    failures = Failures()
    assert [failures.add(1, b""), failures.add(2, b""), failures.add(1, b"")] == [1, 1, 2]
    failures.forget(1)
    assert failures.add(1, b"") == 1
    for task_id in range(10, 10 + REMEMBERED):
        failures.add(task_id, b"")
    assert failures.add(2, b"") == 1


def test_a_new_task_with_a_used_id_has_not_failed() -> None:
    failures = Failures()
    first, second = identity_of({"to": "ann"}), identity_of({"to": "bob"})
    assert [failures.add(0, first), failures.add(0, first), failures.add(0, second)] == [1, 2, 1]
    failures.set(0, second, 7)  # as the server has counted
    assert failures.add(0, second) == 8


def test_the_outcome_of_a_failure_is_told_by_this_server_only() -> None:
    tube, tutorial = Tube("jobs", "fifottl", None), Tutorial()
    told = {"attempts": 2, "delay": 0, "ended": "DLQ"}
    assert tube.outcome([[0, "-", "x", told]]) == Outcome(2, 0.0, "is a dead letter")
    assert tutorial.outcome([{"id": 1, "failure": {"attempts": None, "delay": 2.5, "ended": None}}]) == (
        Outcome(None, 2.5, None)
    )
    for values in ([], [[0, "r", "x"]], [[0, "r", "x", None]], [None]):
        assert tube.outcome(values) is None
    assert tutorial.outcome([{"id": 1, "status": "R"}]) is None


def test_a_failure_is_reported_with_what_the_queue_has() -> None:
    assert Tube("jobs", "fifottl", None).fail(0, 2.5, 3) == (
        "queue.tube.jobs:release",
        [0, {"failed": True, "delay": 2.5, "max_failures": 3}],
    )
    assert Tube("jobs", "fifo", None).fail(0, 2.5, None) == ("queue.tube.jobs:release", [0, {"failed": True}])
    assert Tutorial().fail(5, 1, 3) == ("queue.release", [5, {"failed": True, "delay": 1}])
