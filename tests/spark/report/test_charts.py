"""Charts: well-formed SVG with names and units at the axes, whatever the data is."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime, timedelta, timezone
from xml.etree import ElementTree

import pytest

from pyspark_tarantool.report import Series, bars, columns, lines

BEGIN = datetime(2026, 1, 31, 12, tzinfo=UTC)
MINUTES = [BEGIN + timedelta(minutes=number) for number in range(10)]


def texts(svg: str) -> list[str]:
    """What is written on a chart."""
    return [
        "".join(element.itertext()).strip()
        for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    ]


@pytest.mark.parametrize(
    ("seconds", "label"),
    [(0.02, "(ms)"), (20, "(s)"), (600, "(min)"), (36000, "(h)"), (864000, "(d)"), (0, "(s)")],
)
def test_times_have_the_unit_that_fits(seconds: float, label: str) -> None:
    chart = bars(["mails"], [Series("age", [seconds])], "Age (s)", "Queue")
    assert {f"Age {label}", "Queue", "mails"} <= set(texts(chart))


@pytest.mark.parametrize(("count", "label"), [(900, "(bytes)"), (20_000, "(kB)"), (3e9, "(GB)")])
def test_sizes_have_the_unit_that_fits(count: float, label: str) -> None:
    chart = lines(MINUTES[:2], [Series("data", [count, 0])], "Time (UTC)", "Data (bytes)")
    assert {f"Data {label}", "Time (UTC), 2026-01-31"} <= set(texts(chart))


def test_a_logarithmic_axis_has_a_unit_at_each_mark() -> None:
    chart = lines(
        MINUTES,
        [Series("p50", [10.0 ** (number - 3) for number in range(10)])],
        "Time (UTC)",
        "Wait (s)",
        logarithmic=True,
    )
    assert {"Wait (logarithmic)", "10 ms", "1 s", "1 min", "1 h", "1 d"} <= set(texts(chart))


@pytest.mark.parametrize(
    ("values", "name", "marks"),
    [
        ((0.031, 0.217), "Wait (ms)", {"0", "80", "200"}),
        ((0.010, 0.100), "Wait (logarithmic)", {"10 ms", "20 ms", "50 ms", "100 ms"}),
        ((0.011, 0.9), "Wait (logarithmic)", {"20 ms", "50 ms", "100 ms", "200 ms", "500 ms"}),
        ((15, 400), "Wait (logarithmic)", {"20 s", "30 s", "1 min", "2 min", "5 min"}),
    ],
)
def test_an_axis_has_marks_enough_to_read_values(
    values: tuple[float, float], name: str, marks: set[str]
) -> None:
    chart = lines(MINUTES[:2], [Series("p99", values)], "Time (UTC)", "Wait (s)", logarithmic=True)
    assert {name} | marks <= set(texts(chart))


def test_zeros_on_a_logarithmic_axis_are_shown_at_its_end() -> None:
    """Half of the tasks of a quiet queue do not wait at all."""
    waits = [Series("half", [0, 0, 0, 2.0]), Series("99 %", [1.0, 20.0, 400.0, 60.0])]
    chart = lines(MINUTES[:4], waits, "Time (UTC)", "Wait (s)", logarithmic=True)
    assert {"Wait (logarithmic)", "0 s", "10 s", "1 min"} <= set(texts(chart))
    without = lines(MINUTES[:4], waits[1:], "Time (UTC)", "Wait (s)", logarithmic=True)
    assert "0 s" not in texts(without)
    assert chart.count("fill: #0072b2") == 1 + without.count("fill: #0072b2") == 5, "with the legend"


def test_several_series_have_a_legend_and_one_has_none() -> None:
    two = bars(["mails"], [Series("p50", [1]), Series("p99", [2])], "Age (s)", "Queue", stacked=False)
    assert {"p50", "p99"} <= set(texts(two))
    assert "p50" not in texts(bars(["mails"], [Series("p50", [1])], "Age (s)", "Queue"))


@pytest.mark.parametrize(
    "only", [Series("ready", [1]), Series("acked", [1], "#009E73")], ids=lambda each: each.name
)
def test_a_color_that_stands_for_something_is_explained_even_if_it_is_the_only_one(only: Series) -> None:
    assert only.name in texts(bars(["mails"], [only], "Tasks", "Queue"))


def test_a_status_has_the_same_color_everywhere() -> None:
    assert "#d55e00" in bars(["mails"], [Series("buried", [1])], "Tasks", "Queue").lower()


def test_moments_are_shown_in_utc() -> None:
    tokyo = [moment.astimezone(timezone(timedelta(hours=9))) for moment in MINUTES]
    chart = columns(tokyo, 60, [Series("mails", range(10))], "Time (UTC)", "Tasks")
    assert {"12:05", "Time (UTC), 2026-01-31"} <= set(texts(chart))


@pytest.mark.parametrize(
    ("seconds", "mark", "label"),
    [
        (60, "12:00:30", "Time (UTC), 2026-01-31"),
        (24 * 3600, "00:00", "Time (UTC), 2026-01-31 to 2026-02-01"),
        (3 * 86400, "02-01 00:00", "Time (UTC)"),
        (60 * 86400, "2026-03-01", "Time (UTC)"),
    ],
)
def test_marks_of_time_say_what_is_needed(seconds: int, mark: str, label: str) -> None:
    chart = lines(
        [BEGIN, BEGIN + timedelta(seconds=seconds)], [Series("ready", [1, 2])], "Time (UTC)", "Tasks"
    )
    assert {mark, label} <= set(texts(chart))


def test_a_name_is_no_formula_and_no_comment() -> None:
    names = ["$x^2$", "--><b>", "長い名前", "a" * 100]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shown = texts(bars(names, [Series("ready", [1, 2, 3, 4])], "Tasks", "Queue"))
    assert {"$x^2$", "--><b>", "長い名前", "a" * 31 + "…"} <= set(shown)


@pytest.mark.parametrize(
    "chart",
    [
        bars([], [], "Tasks", "Queue"),
        bars(["mails"], [Series("ready", [0])], "Tasks", "Queue"),
        columns([], 60, [], "Time (UTC)", "Tasks"),
        lines([], [], "Time (UTC)", "Tasks"),
        lines(MINUTES, [Series("p50", [None] * 10)], "Time (UTC)", "Wait (s)", logarithmic=True),
    ],
    ids=["no bars", "bars of 0", "no columns", "no lines", "lines without values"],
)
def test_no_data_is_said(chart: str) -> None:
    assert "Nothing to show" in texts(chart)


def test_gaps_and_single_points_are_drawn() -> None:
    assert "Nothing to show" not in texts(lines(MINUTES[:1], [Series("p50", [1])], "Time (UTC)", "Wait (s)"))
    assert texts(lines([0.0, 1.0, 2.0], [Series("p50", [1, None, 3])], "Attempts", "Tasks", filled=True))


def test_a_single_moment_has_marks_around_it() -> None:
    chart = lines(
        [datetime(2026, 1, 31, 12, 30, tzinfo=UTC)], [Series("ready", [3.0])], "Time (UTC)", "Tasks"
    )
    assert "12:30:00" in chart
    assert "00:00:00" not in chart


def test_the_same_data_is_the_same_chart() -> None:
    assert bars(["a"], [Series("b", [1])], "c", "d") == bars(["a"], [Series("b", [1])], "c", "d")
