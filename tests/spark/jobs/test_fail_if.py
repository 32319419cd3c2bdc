"""`--fail-if`: which conditions there are, when they hold, and what a scheduler sees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyspark_tarantool.backlog import METRICS, backlog
from pyspark_tarantool.jobs.fail_if import Condition, ConditionError, check
from pyspark_tarantool.lifecycle import lifecycle
from pyspark_tarantool.suspects import suspects
from tests.spark.interpreted import interpreted
from tests.spark.jobs_data import run, tutorial_directory


@pytest.mark.parametrize(
    ("text", "limit", "values"),
    [
        ("oldest_ready > 5m", 300, {299.9: False, 300: False, 300.1: True}),
        ("oldest_ready>=1.5h", 5400, {5399: False, 5400: True}),
        (" oldest_ready < 250ms ", 0.25, {0.1: True, 0.25: False}),
        ("tasks <= 10", 10, {10: True, 11: False}),
    ],
)
def test_a_condition_compares_a_metric(text: str, limit: float, values: dict[float, bool]) -> None:
    condition = Condition.parse(text, METRICS)
    assert condition.limit == limit
    assert {value: condition.holds(value) for value in values} == values
    assert not condition.holds(None), "nothing is known"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("old", "it is 'old', not like 'oldest_ready > 5m' or 'buried >= 10'"),
        ("oldest_ready = 5m", "it is 'oldest_ready = 5m', not like"),
        (
            "age > 5m",
            "there is no 'age': there are tasks, ready, delayed, taken, buried, overdue, oldest_ready",
        ),
        ("oldest_ready > 5", "oldest_ready is a duration with one of the units ms, s, m, min, h, d: "),
        ("oldest_ready > 5w", "oldest_ready is a duration with one of the units"),
        ("tasks > 5m", "tasks is a number, without the unit 'm'"),
    ],
)
def test_wrong_conditions(text: str, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        Condition.parse(text, METRICS)
    assert str(caught.value).startswith(sentence)


def test_the_error_names_all_that_hold() -> None:
    conditions = [Condition.parse(text, METRICS) for text in ("oldest_ready > 5m", "tasks > 9", "buried > 0")]
    with pytest.raises(ConditionError) as caught:
        check(conditions, {"oldest_ready_s": 400.0, "tasks": 12, "buried": 0})
    assert caught.value.message == "oldest_ready is 6 min 40 s (oldest_ready > 5m); tasks is 12 (tasks > 9)"
    check(conditions[2:], {"buried": 0})


@pytest.fixture(scope="module")
def _interpreted(spark: SparkSession) -> Iterator[None]:
    with interpreted(spark):
        yield


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four ready tasks and a delayed one."""
    return tutorial_directory(tmp_path_factory.mktemp("tutorial"))


@pytest.mark.usefixtures("_interpreted")
class TestJobs:
    def test_the_report_is_written_and_the_status_is_3(self, directory: Path, tmp_path: Path) -> None:
        page = tmp_path / "page.html"
        options = (
            "--queue",
            "tutorial",
            "--report",
            page,
            "--fail-if",
            "ready > 3",
            "--fail-if",
            "buried > 0",
        )
        outcome = run(backlog, directory, *options)
        assert (outcome.status, outcome.errors[-1]) == (
            3,
            "pyspark_tarantool.backlog: ready is 4 (ready > 3)",
        )
        assert page.exists()

    @pytest.mark.parametrize(
        ("job", "holds", "does_not"),
        [
            (backlog, "oldest_ready >= 0s", "tasks > 5"),
            (lifecycle, "released > 1", "service_p99 > 1h"),
            (suspects, "growing <= 0", "stuck > 0"),
        ],
    )
    def test_each_job_has_metrics(self, directory: Path, job: object, holds: str, does_not: str) -> None:
        for condition, status in ((holds, 3), (does_not, 0)):
            outcome = run(job, directory, "--queue", "tutorial", "--fail-if", condition)  # type: ignore[arg-type]
            assert outcome.status == status, outcome.errors

    def test_a_wrong_one_is_refused_before_the_work(self, directory: Path) -> None:
        outcome = run(backlog, directory, "--queue", "tutorial", "--fail-if", "tasks > many")
        assert outcome.status == 2
        assert outcome.errors[-1].startswith(
            "pyspark_tarantool.backlog: Invalid value for '--fail-if': it is 'tasks > many', not like"
        )
