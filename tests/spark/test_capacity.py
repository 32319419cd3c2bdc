"""The job `capacity`: loads and forecasts of queues whose load is known beforehand."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from pyspark_tarantool.capacity import capacity, metrics_of, short_seconds, whole_minutes
from pyspark_tarantool.jobs.load_forecast import HORIZONS, Load, Minute, load_of
from pyspark_tarantool.jobs.pages.capacity_report import fill_report
from pyspark_tarantool.report import Report
from tests.spark.interpreted import interpreted
from tests.spark.jobs_data import run, tutorial_directory

BEGIN = datetime(2026, 1, 31, 12, tzinfo=UTC)


def minutes(
    count: int, backlog: Callable[[int], int], *, ends: int = 10, seconds: float = 120
) -> list[Minute]:
    """Minutes with ten takes, on which workers worked for two minutes together."""
    return [
        Minute(BEGIN + timedelta(minutes=each), 12, 10, ends, seconds, backlog(each)) for each in range(count)
    ]


class TestLoad:
    def test_rates_and_littles_law(self) -> None:
        load = load_of(minutes(120, lambda _: 5))
        assert (load.puts_per_hour, load.takes_per_hour, load.service_mean_s) == (720, 600, 12)
        assert (load.busy_mean, load.busy_peak) == (2, 2), "600 takes an hour, of 12 seconds each"
        assert (load.utilisation, load.capacity_per_hour) == (1, 600)

    def test_the_peak_tells_how_many_workers_there_are(self) -> None:
        busy = minutes(10, lambda _: 5, ends=40, seconds=480)
        load = load_of([*minutes(50, lambda _: 5, ends=0, seconds=0), *busy])
        assert load.busy_peak == 8
        assert load.utilisation == pytest.approx(1 / 6)

    def test_in_less_than_half_an_hour_the_peak_is_unknown(self) -> None:
        """It would be the mean, and workers would seem to be busy all the time."""
        load = load_of(minutes(29, lambda _: 5))
        assert load.busy_mean == 2
        assert (load.busy_peak, load.utilisation, load.capacity_per_hour) == (None, None, None)
        assert load_of(minutes(30, lambda _: 5)).busy_peak == 2

    def test_the_rates_of_seconds_are_those_of_the_seconds(self) -> None:
        load = load_of(minutes(2, lambda _: 5), 60)
        assert (load.puts_per_hour, load.takes_per_hour, load.busy_mean) == (24 * 60, 20 * 60, 4)

    def test_without_work_there_is_no_utilisation(self) -> None:
        load = load_of(minutes(60, lambda each: each, ends=0, seconds=0))
        assert (load.service_mean_s, load.utilisation, load.capacity_per_hour) == (None, None, None)

    def test_a_line_is_continued(self) -> None:
        load = load_of(minutes(120, lambda each: 3 * each))
        assert load.growth_per_hour == pytest.approx(180)
        expected = [load.backlog + 180 * seconds / 3600 for seconds in HORIZONS]
        assert [each.expected for each in load.forecasts] == pytest.approx(expected)
        for each in load.forecasts:
            assert (each.low, each.high) == pytest.approx((each.expected, each.expected)), "there is no doubt"
        assert load.forecasts[0].at == BEGIN + timedelta(minutes=120 + 60)

    def test_a_backlog_is_never_negative(self) -> None:
        load = load_of(minutes(60, lambda each: 600 - 10 * each))
        assert [(each.expected, each.low) for each in load.forecasts] == [(0, 0)] * 3

    def test_the_range_grows_with_the_distance_and_the_noise(self) -> None:
        noise = random.Random(1)
        values = [noise.uniform(-1, 1) for _ in range(120)]
        calm = load_of(minutes(120, lambda each: round(500 + each + 5 * values[each])))
        wild = load_of(minutes(120, lambda each: round(500 + each + 50 * values[each])))
        widths = [[each.high - each.expected for each in load.forecasts] for load in (calm, wild)]
        assert widths[0] == sorted(widths[0])
        assert all(one < other for one, other in zip(*widths, strict=True))

    def test_the_range_has_what_comes_as_often_as_it_says(self) -> None:
        """Of backlogs that wander around a line, nine tenths and more are in it an hour later."""
        inside = 0
        for seed in range(100):
            noise, level, values = random.Random(seed), 0.0, []
            for each in range(180):
                level = 0.7 * level + noise.gauss(0, 10)
                values.append(max(0, round(1000 + 2 * each + level)))
            hour = load_of(minutes(120, values.__getitem__)).forecasts[0]
            inside += hour.low <= values[179] <= hour.high
        assert inside >= 90

    def test_too_few_minutes_are_no_forecast(self) -> None:
        load = load_of(minutes(4, lambda each: each))
        assert (load.growth_per_hour, load.forecasts) == (None, ())


class TestMinutes:
    def row(self, number: int, backlog: int) -> Row:
        start = BEGIN + timedelta(minutes=number)
        return Row(queue="q", minute=start, puts=1, takes=1, ends=None, worked_s=None, backlog=backlog)

    def test_those_without_events_are_filled_in_and_incomplete_ones_left_out(self) -> None:
        rows = [self.row(0, 3), self.row(2, 4), self.row(4, 9)]
        begin, end = BEGIN + timedelta(seconds=30), BEGIN + timedelta(minutes=4, seconds=30)
        found = whole_minutes(rows, begin, end)
        assert [each.start for each in found] == [BEGIN + timedelta(minutes=each) for each in (1, 2, 3)]
        assert [(each.puts, each.backlog) for each in found] == [(0, 3), (1, 4), (0, 4)]

    def test_a_short_log_is_used_as_it_is(self) -> None:
        begin, end = BEGIN + timedelta(seconds=10), BEGIN + timedelta(seconds=20)
        assert [each.puts for each in whole_minutes([self.row(0, 3)], begin, end)] == [1]
        assert short_seconds(begin, end) == 10
        assert short_seconds(begin, begin) == 1
        assert short_seconds(begin, BEGIN + timedelta(minutes=2)) is None


class TestReport:
    def test_a_growing_backlog_is_the_first_finding(self) -> None:
        report = Report("Capacity")
        grows, rests = (minutes(120, backlog) for backlog in (lambda each: 5 * each, lambda _: 3))
        fill_report(report, {"<b>": (load_of(grows), grows), "calm": (load_of(rests), rests)})
        html = report.html()
        assert "The backlog of &lt;b&gt; grows by 300 tasks an hour: 595 now" in html
        assert "are busy for 100 % of the time" in html
        assert html.count("<svg") == 3
        assert "prediction" not in html

    def test_short_logs_say_so(self) -> None:
        report = Report("Capacity")
        few = minutes(4, lambda _: 3)
        fill_report(report, {"calm": (load_of(few), few)})
        assert "The logs of calm are too short to tell whether workers keep up" in report.html()
        assert "All workers keep up" not in report.html()
        assert "The logs are too short to tell how many workers there are" in report.html()
        assert "100 %" not in report.html().partition("How to read")[0]

    def test_no_events_are_a_page_too(self) -> None:
        report = Report("Capacity")
        fill_report(report, {})
        assert "The logs have no events of tasks." in report.html()


def test_the_metrics_are_those_of_the_worst_queue() -> None:
    loads: list[Load] = [load_of(minutes(120, backlog)) for backlog in (lambda each: each, lambda _: 500)]
    metrics = metrics_of(loads)
    assert (metrics["backlog"], metrics["utilisation"]) == (500, 1)
    assert metrics["growth_per_hour"] == pytest.approx(60)
    assert metrics_of([])["backlog_in_1h"] is None


@pytest.fixture(scope="module")
def _interpreted(spark: SparkSession) -> Iterator[None]:
    with interpreted(spark):
        yield


@pytest.mark.usefixtures("_interpreted")
class TestJob:
    def test_of_a_server(self, tmp_path: Path) -> None:
        directory = tmp_path / "data"
        directory.mkdir()
        tutorial_directory(directory)
        page = tmp_path / "page.html"
        options = ("--queue", "tutorial", "--report", page, "--output", tmp_path / "out", "--format", "json")
        outcome = run(capacity, directory, *options, "--fail-if", "backlog > 4", "--hours", 2)
        assert outcome.status == 3, outcome.errors
        assert outcome.errors[-1] == "pyspark_tarantool.capacity: backlog is 5 (backlog > 4)"
        assert "Load of the workers" in outcome.output
        assert {path.name for path in (tmp_path / "out").iterdir()} == {"capacity", "forecasts"}
        assert "Little" in page.read_text()
