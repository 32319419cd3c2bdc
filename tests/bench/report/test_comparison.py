"""Figures, tables, goals and files of the comparison, with invented figures."""

from __future__ import annotations

import platform
from dataclasses import replace
from pathlib import Path

import pytest

from bench.client.latency import Latencies
from bench.lib.python_build import is_pgo
from bench.lib.table import Table, table
from bench.report.chart import draw
from bench.report.goals import Goal, goals
from bench.report.markdown import described, markdown
from bench.report.results import Case, Results, read, this_machine
from bench.report.tables import tables
from tests.bench.report.invented import MANY, OURS, TARANTOOL, cost, rate


def by_name(found: list[Goal]) -> dict[str, Goal]:
    """Map goals by their names."""
    return {goal.what: goal for goal in found}


def test_goals_are_ratios_of_medians(results: Results) -> None:
    found = by_name(goals(results))
    cycle = found["put + take + ack, 10 × 100, against Tarantool: cycles per second"]
    assert (cycle.measured, cycle.limit, cycle.is_met) == (3.0, 4.0, False)
    single = found["put + take + ack, 1 × 1, against Tarantool: cycles per second"]
    assert (single.measured, single.limit, single.is_met) == (3.0, 2.0, True)
    cpu = found["put + take + ack, 100 × 1, against Tarantool: CPU per cycle"]
    assert cpu.measured == pytest.approx(1 / 3)
    assert (cpu.limit, cpu.is_met) == (0.5, True)
    assert found["put + take + ack, 10 × 100, against Tarantool: CPU per cycle"].limit == 0.2
    high = found["put, 1000 × 1, against Tarantool: p99"]
    assert (high.measured, high.limit, high.is_met) == (0.5, 0.7, True)
    echo = found["put + take + ack, 100 × 1, against an echo server with a log: cycles per second"]
    assert (echo.measured, echo.limit, echo.is_met) == (0.7, 0.75, False)
    for shape in (MANY, "100 × 1"):
        for driver in ("fifo", "fifottl", "utube", "utubettl"):
            tube = found[
                f"put + take + ack in a {driver}, {shape}, against the queue module: cycles per second"
            ]
            assert (tube.measured, tube.limit, tube.is_met) == (0.5, 2.0, False)
    for kind in ("snapshot", "log"):
        begun = found[f"start from a {kind} of 1,000,000 tasks, against Tarantool: time"]
        assert (begun.measured, begun.limit, begun.is_met) == (0.5, 1.0, True)
    left = found["a snapshot of 1,000,000 tasks under load: cycles per second, against those before"]
    assert (left.measured, left.limit, left.is_met) == (0.9, 0.85, True)
    assert found["put + take + ack, 1000 × 1, against beanstalkd: cycles per second"].measured == 1.5
    assert found["update without a queue, 10 × 100, against Tarantool: per second"].measured == 0.5
    memory = found["memory per task of the backlog, against Tarantool"]
    assert (memory.measured, memory.limit, memory.is_met) == (3.0, 0.85, False)
    pause = found["a snapshot of 1,000,000 tasks under load: longest pause"]
    assert (pause.measured, pause.unit, pause.limit, pause.is_met) == (5.0, "ms", 5.0, True)
    standing = found["take + ack, a backlog of 1,000,000 tasks, against an empty queue: time"]
    assert standing.measured == pytest.approx(1.2)
    assert (standing.limit, standing.is_met) == (1.1, False)
    assert sum("against beanstalkd" in what for what in found) == 4


def test_a_figure_at_its_limit_is_good_enough() -> None:
    assert Goal("", 2.0, 2.0, is_least=True).is_met
    assert Goal("", 2.0, 2.0, is_least=False).is_met
    assert not Goal("", 1.99, 2.0, is_least=True).is_met
    assert not Goal("", 2.01, 2.0, is_least=False).is_met


def test_a_longer_pause_is_good_enough_where_pauses_were_long_before() -> None:
    [pause] = [
        goal
        for goal in goals(Results([OURS], [], 0, costs=[replace(cost(OURS, 0.012), pause_before=0.01)]))
        if goal.unit == "ms"
    ]
    assert (pause.limit, pause.is_met) == (12.5, True)


@pytest.mark.parametrize("busy", [OURS, TARANTOOL])
def test_a_row_does_not_count_if_the_load_was_busy(busy: str) -> None:
    rates = [
        replace(rate(name, "cycle", 1000.0), load_share=0.9 if name == busy else 0.5)
        for name in (OURS, TARANTOOL)
    ]
    cycle = by_name(goals(Results([OURS, TARANTOOL], [], 0, rates)))[
        "put + take + ack, 10 × 100, against Tarantool: cycles per second"
    ]
    assert (cycle.measured, cycle.load_share, cycle.is_met, cycle.verdict) == (
        1.0,
        0.9,
        None,
        "load was busy",
    )


def test_goals_without_figures_are_not_measured() -> None:
    found = goals(Results([OURS], [TARANTOOL], 1000, [rate(OURS, "cycle", 1000.0)]))
    assert {goal.is_met for goal in found} == {None}
    [*_, last] = tables(Results([], [], 0))
    assert "not measured" in str(last)


def test_the_median_of_the_rounds_counts_and_the_longest_pause() -> None:
    speeds = (100.0, 900.0, 300.0)
    rates = [rate(OURS, "put", speed, latencies_ms=(speed, 1, 1)) for speed in speeds]
    costs = [cost(OURS, 0.001), cost(OURS, 0.03), cost(OURS, 0.002)]
    results = Results([OURS], [], 1000, rates, costs=costs)
    medians = results.medians(Case("queue", MANY, 100, "put"), OURS)
    assert medians is not None
    assert (medians.per_second, medians.latencies_ms) == (300.0, [300.0, 1, 1])
    assert results.longest_pause(OURS) == 0.03
    assert results.medians(Case("queue", MANY, 100, "put"), TARANTOOL) is None
    assert results.footprint(OURS) is None


def test_the_table_has_ours_over_theirs(results: Results) -> None:
    requests, deliveries, footprints, pauses, starts, wanted = map(str, tables(results))
    [line] = [
        line
        for line in requests.splitlines()
        if line.startswith("queue") and MANY in line and "put  " in line and TARANTOOL in line
    ]
    assert line.split() == [
        *["queue", "10", "×", "100", "100", "put", "Tarantool", "1,000", "3.00", "100.00", "0.33"],
        *["1.00", "2.00", "0.33", "3.00", "50", "0.50", "25%"],
    ]
    assert deliveries.splitlines()[-1].split() == [
        "2,000",
        "100",
        "0",
        "beanstalkd",
        "0.10",
        "0.20",
        "0.30",
        "50.0",
        "60.0",
    ]
    assert footprints.splitlines()[-2].split() == ["Tarantool", "100", "3.00"]
    assert starts.splitlines()[-1].split()[:4] == ["log", "Tarantool", "1,000", "5.00"]
    assert pauses.splitlines()[-1].split() == ["beanstalkd", "2.50", "1.00", "7.50", "1.10", "3,000", "2,700"]
    assert "  yes" in wanted
    assert "   no" in wanted


def test_a_load_that_is_busy_is_marked() -> None:
    measured = replace(rate(OURS, "ping", 1e6), load_share=0.95)
    first, *_ = tables(Results([OURS], [], 0, [measured]))
    assert "95% !" in str(first)


@pytest.mark.process  # the first look at the platform runs uname
def test_results_are_read_as_they_were_written(results: Results, tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    file.write_text(results.to_json())
    assert read([file]) == results


@pytest.mark.process  # the first look at the platform runs uname
def test_results_say_what_they_were_measured_with(results: Results) -> None:
    assert described(results) == "Measured on an unknown machine."
    results.machine = this_machine()
    assert results.machine["cores"] >= 1
    again = Results.from_json(results.to_json())
    assert again.machine == results.machine
    assert f"Python {platform.python_version()} (" in described(again)


@pytest.mark.parametrize(
    ("options", "prefix", "system", "expected"),
    [
        ("'--prefix=/opt' '--enable-optimizations'", "/opt", {}, True),
        ("'--prefix=/opt'", "/opt", {"ID": "debian"}, False),
        ("'--prefix=/usr'", "/usr", {"ID": "debian"}, True),
        ("'--prefix=/usr'", "/usr", {"ID": "ubuntu", "ID_LIKE": "debian"}, True),
        ("'--prefix=/usr'", "/usr", {"ID": "arch"}, False),
        ("", "/usr", {}, False),
    ],
)
def test_profile_guided_optimization_is_recognized(
    options: str, prefix: str, system: dict[str, str], expected: bool
) -> None:
    assert is_pgo(options, prefix, system) is expected


def test_markdown_has_the_goals_first_and_what_is_missing_last(results: Results) -> None:
    results.machine = {
        **{"python": "3.11.2", "executable": "/python3", "pgo": True},
        **{"cores": 2, "system": "Linux"},
    }
    results.notes.append("Left out: tubes")
    lines = markdown(results).splitlines()
    assert lines[:7] == [
        "Measured with Python 3.11.2 (/python3, built with PGO), on 2 processors, Linux.",
        "",
        "Goals:",
        "",
        "| goal | measured | required | load busy | met? |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| put + take + ack, 10 × 100, against Tarantool: cycles per second | 3.00 × | ≥ 4 × | 25% | no |",
    ]
    assert lines[-2:] == ["- Not installed: Redis", "- Left out: tubes"]
    titles = [line for line in lines if line.endswith(":")]
    assert len(titles) == 6


def test_a_table_in_markdown_has_one_line_of_names() -> None:
    made = Table("Requests", ["", "ours\nreq/s"], [["put", "1,000"]])
    assert made.markdown() == "Requests:\n\n|  | ours req/s |\n| --- | ---: |\n| put | 1,000 |\n"


@pytest.mark.process  # as above
def test_results_of_two_runs_are_read_together(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("first", "second")]
    files[0].write_text(Results([OURS], [], 10, [rate(OURS, "put", 1.0)]).to_json())
    files[1].write_text(Results([OURS, TARANTOOL], ["Redis"], 20, [rate(TARANTOOL, "put", 1.0)]).to_json())
    both = read(files)
    assert (both.names, both.missing, both.tasks, len(both.rates)) == ([OURS, TARANTOOL], ["Redis"], 20, 2)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"names": []}', '{"names": 1, "missing": 2, "tasks": 3}'])
def test_other_files_are_no_results(text: str, tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_text(text)
    with pytest.raises(ValueError):
        read([file])


def test_no_files_are_no_results() -> None:
    with pytest.raises(ValueError, match="there are no results"):
        read([])


def test_a_chart_is_drawn_whatever_is_missing(results: Results, tmp_path: Path) -> None:
    for number, each in enumerate((results, Results([OURS], [], 0, results.rates[:3]), Results([], [], 0))):
        file = tmp_path / f"{number}.png"
        draw(each, file)
        assert file.read_bytes().startswith(b"\x89PNG")


def test_a_table_has_texts_left_and_numbers_right() -> None:
    rows = [["put", "1,000"], ["acknowledge", "20"]]
    assert table("Requests", ["", "ours\nreq/s"], rows).splitlines() == [
        "Requests",
        "",
        "              ours",
        "             req/s",
        "-----------  -----",
        "put          1,000",
        "acknowledge     20",
    ]


def test_percentiles_count_every_answer() -> None:
    latencies = Latencies()
    latencies.add(0.002, 98)
    latencies.add(0.5)
    latencies.add(0.001, 901)
    assert latencies.milliseconds(0.5, 0.9, 0.99, 0.999) == [1, 1, 2, 500]
    assert latencies.milliseconds(0.999, 0.5) == [1, 500]
    assert Latencies.of_all([latencies, latencies]).milliseconds(0.9) == [1]
    assert len(Latencies.of_all([latencies, latencies])) == 2000


def test_without_answers_there_are_no_percentiles() -> None:
    with pytest.raises(ValueError, match="there are no answers"):
        Latencies().milliseconds(0.5)
