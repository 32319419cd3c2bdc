"""`box.metrics`: counters, gauges and histograms of applications."""

from __future__ import annotations

import math
from typing import Any

import pytest

from iproto_server import Box
from iproto_server.box.api.instance.metrics import MAX_SERIES, Metrics


@pytest.fixture
def metrics() -> Metrics:
    return Box().metrics


def test_a_counter_counts(metrics: Metrics) -> None:
    failed = metrics.counter("jobs.failed", "Jobs that failed.")
    assert dict(metrics.counters()) == {"jobs.failed": 0}
    failed.inc()
    failed.inc(2.5)
    failed.inc(0)
    assert dict(metrics.counters()) == {"jobs.failed": 3.5}


def test_labels_are_parts_of_the_name(metrics: Metrics) -> None:
    failed = metrics.counter("jobs.failed", labels=["reason", "queue"])
    assert dict(metrics.counters()) == {}
    failed.inc(reason="timeout", queue="a.b")
    failed.inc(4, queue=7, reason="")
    assert dict(metrics.counters()) == {"jobs.failed.timeout.a_b": 1, "jobs.failed._.7": 4}
    failed.remove(reason="timeout", queue="a.b")
    failed.remove(reason="never", queue="seen")
    assert dict(metrics.counters()) == {"jobs.failed._.7": 4}


def test_a_gauge_goes_up_and_down(metrics: Metrics) -> None:
    open_jobs = metrics.gauge("jobs.open", labels=["queue"])
    open_jobs.set(10, queue="a")
    open_jobs.inc(queue="a")
    open_jobs.dec(3, queue="a")
    open_jobs.dec(queue="b")
    assert dict(metrics.counters()) == {"jobs.open.a": 8, "jobs.open.b": -1}


def test_a_histogram_counts_by_intervals(metrics: Metrics) -> None:
    duration = metrics.histogram("jobs.duration", labels=["queue"], bounds=[1, 10])
    for value in (0.5, 1, 5, 50):
        duration.observe(value, queue="a")
    assert dict(metrics.counters()) == {"jobs.duration.a.count": 4, "jobs.duration.a.sum": 56.5}
    assert duration.series[("a",)].counts == [2, 1, 1]
    duration.remove(queue="a")
    assert dict(metrics.counters()) == {}


def test_the_same_definition_returns_the_same_metric(metrics: Metrics) -> None:
    failed = metrics.counter("jobs.failed", "Jobs.", ["reason"])
    failed.inc(reason="x")
    assert metrics.counter("jobs.failed", "Other words.", ("reason",)) is failed
    duration = metrics.histogram("jobs.duration", bounds=[1, 2])
    assert metrics.histogram("jobs.duration", bounds=[1.0, 2.0]) is duration
    assert [metric.name for metric in metrics] == ["jobs.failed", "jobs.duration"]


def test_another_definition_of_a_name_is_refused(metrics: Metrics) -> None:
    metrics.counter("jobs.failed")
    metrics.histogram("jobs.duration", bounds=[1])
    for define in (
        lambda: metrics.gauge("jobs.failed"),
        lambda: metrics.counter("jobs.failed", labels=["reason"]),
        lambda: metrics.counter("jobs_failed"),
        lambda: metrics.counter("jobs.failed.total"),
        lambda: metrics.gauge("jobs_failed_total"),
        lambda: metrics.histogram("jobs.duration", bounds=[1, 2]),
        lambda: metrics.gauge("jobs.duration.count"),
        lambda: metrics.gauge("jobs.duration_bucket"),
    ):
        with pytest.raises(ValueError, match="is defined in another way than"):
            define()
    metrics.remove("jobs.failed")
    metrics.remove("never.defined")
    metrics.gauge("jobs.failed").set(1)
    assert dict(metrics.counters())["jobs.failed"] == 1


@pytest.mark.parametrize(
    "name",
    [
        *("", "1jobs", "jobs.", ".jobs", "jobs..failed", "jobs failed", "jobs-failed", "jobs\n", "jöbs"),
        *("tnt.jobs", "tnt_jobs", "server.jobs", "iproto_server_jobs", "server"),
    ],
)
def test_a_wrong_or_reserved_name_is_refused(metrics: Metrics, name: str) -> None:
    with pytest.raises(ValueError, match="a metric cannot be named"):
        metrics.counter(name)
    assert list(metrics) == []


@pytest.mark.parametrize("label", ["", "1a", "a-b", "__a", "alias", "le", "quantile", "a b"])
def test_a_wrong_or_reserved_label_is_refused(metrics: Metrics, label: str) -> None:
    with pytest.raises(ValueError, match=r"the label of 'jobs' cannot be named"):
        metrics.counter("jobs", labels=[label])


def test_labels_are_a_list_without_repetitions(metrics: Metrics) -> None:
    with pytest.raises(TypeError, match="labels are a list of names, not 'reason'"):
        metrics.counter("jobs", labels="reason")
    with pytest.raises(ValueError, match="a label of 'jobs' is given twice"):
        metrics.counter("jobs", labels=["a", "a"])


def test_missing_and_unknown_labels_are_refused(metrics: Metrics) -> None:
    failed = metrics.counter("jobs.failed", labels=["reason"])
    with pytest.raises(ValueError, match=r"'jobs\.failed' needs the label 'reason'"):
        failed.inc()
    with pytest.raises(ValueError, match=r"'jobs\.failed' has no label 'queue'"):
        failed.inc(reason="x", queue="y")
    assert dict(metrics.counters()) == {}


@pytest.mark.parametrize("value", [math.nan, "1", None, True, [1]])
def test_what_is_no_number_is_refused(metrics: Metrics, value: Any) -> None:
    with pytest.raises(ValueError, match="is not a number"):
        metrics.counter("c").inc(value)
    with pytest.raises(ValueError, match="is not a number"):
        metrics.gauge("g").set(value)
    with pytest.raises(ValueError, match="is not a number"):
        metrics.histogram("h").observe(value)
    assert dict(metrics.counters()) == {"c": 0, "g": 0, "h.count": 0, "h.sum": 0}


def test_a_counter_cannot_be_decreased(metrics: Metrics) -> None:
    with pytest.raises(ValueError, match="the counter 'jobs' cannot be decreased"):
        metrics.counter("jobs").inc(-1)


@pytest.mark.parametrize("bounds", [[], [1, 1], [2, 1]])
def test_bounds_ascend(metrics: Metrics, bounds: list[float]) -> None:
    with pytest.raises(ValueError, match="the bounds of 'jobs' must be ascending"):
        metrics.histogram("jobs", bounds=bounds)


def test_too_many_label_values_are_counted_together(metrics: Metrics) -> None:
    seen = metrics.counter("seen", labels=["who"])
    for number in range(MAX_SERIES + 5):
        seen.inc(who=number)
    seen.inc(who=0)
    counters = dict(metrics.counters())
    assert len(counters) == MAX_SERIES + 1
    assert counters["seen.other"] == 5
    assert counters["seen.0"] == 2


def test_a_rollback_takes_nothing_back() -> None:
    box = Box()

    def fail() -> None:
        box.metrics.counter("jobs.tried").inc()
        raise RuntimeError

    with pytest.raises(RuntimeError):
        box.run(box.session.background, fail)
    assert dict(box.metrics.counters()) == {"jobs.tried": 1}
