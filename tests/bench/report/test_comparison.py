"""Figures, tables, goals and files of the comparison, with invented figures, and its command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench import __main__ as command
from bench.client.latency import Latencies
from bench.lib.table import table
from bench.peers.database import DEFAULT_QUEUE, Ours, Tarantool
from bench.report.chart import draw
from bench.report.comparison import NAMES, Comparison, Plan, find
from bench.report.goals import Goal, goals
from bench.report.results import Case, Results, read
from bench.report.tables import tables
from bench.scenarios.backlog import Footprint
from bench.scenarios.checkpoint import Cost
from bench.scenarios.delivery import Delivery
from bench.workloads.rate import Rate, Shape
from tests.programs import require_program

OURS, TARANTOOL, BEANSTALKD = "ours", "Tarantool", "beanstalkd"
MANY = "10 × 100"


def rate(
    contender: str,
    operation: str,
    per_second: float,
    server_us: float = 10.0,
    latencies_ms: tuple[float, float, float] = (1.0, 2.0, 3.0),
    *,
    section: str = "queue",
    shape: str = MANY,
    number: int = 0,
) -> Rate:
    """Create a measurement."""
    return Rate(
        section,
        contender,
        "write",
        shape,
        100,
        operation,
        number,
        1000,
        per_second,
        server_us,
        0.5,
        0.25,
        None if operation == "cycle" else list(latencies_ms),
        50 * 2**20,
    )


def cost(contender: str, pause: float) -> Cost:
    """Create the costs of a snapshot."""
    return Cost(contender, True, 2.5, 0.001, pause, 1.1, 1.05, 3000.0, 1500.0)


@pytest.fixture
def results() -> Results:
    """Create results of all measurements of ours, Tarantool and beanstalkd."""
    made = Results([OURS, TARANTOOL, BEANSTALKD], ["Redis"], 1_000_000)
    for name, speed in ((OURS, 3000.0), (TARANTOOL, 1000.0), (BEANSTALKD, 2000.0)):
        for shape in ("1 × 1", MANY, "100 × 1", "1000 × 1"):
            for operation in ("put", "take", "ack", "cycle"):
                latency = 1000 / speed
                times = (latency, 2 * latency, 3 * latency)
                made.rates.append(rate(name, operation, speed, 1e5 / speed, times, shape=shape))
        made.deliveries.append(Delivery(name, 0, 2000, 100, 0, 4000, [0.1, 0.2, 0.3], 50.0, 60.0))
        made.footprints.append(Footprint(name, 1_000_000, 10**7, 10**7 + int(speed) * 10**5))
        made.costs.append(cost(name, 15 / speed))
    for name, speed in ((OURS, 500.0), (TARANTOOL, 1000.0)):
        made.rates += [
            rate(name, operation, speed, section="raw")
            for operation in ("insert", "select", "replace", "update", "delete")
        ]
    made.rates += [
        rate(OURS, "cycle", 900.0, section="standing"),
        rate(OURS, "cycle", 1080.0, section="empty"),
    ]
    return made


def by_name(found: list[Goal]) -> dict[str, Goal]:
    """Map goals by their names."""
    return {goal.what: goal for goal in found}


def test_goals_are_ratios_of_medians(results: Results) -> None:
    found = by_name(goals(results))
    cycle = found["put + take + ack, 10 × 100, against Tarantool: cycles per second"]
    assert (cycle.measured, cycle.limit, cycle.is_met) == (3.0, 2.0, True)
    cpu = found["put + take + ack, 100 × 1, against Tarantool: CPU per cycle"]
    assert cpu.measured == pytest.approx(1 / 3)
    assert (cpu.limit, cpu.is_met) == (0.7, True)
    latency = found["take, 1 × 1, against Tarantool: median latency"]
    assert latency.measured == pytest.approx(1 / 3)
    assert (latency.limit, latency.is_met) == (1.0, True)
    high = found["put, 1000 × 1, against Tarantool: p99"]
    assert high.measured == pytest.approx(1 / 3)
    assert high.is_met
    assert found["put + take + ack, 1000 × 1, against beanstalkd: cycles per second"].measured == 1.5
    assert found["update without a queue, 10 × 100, against Tarantool: per second"].measured == 0.5
    memory = found["memory per task of the backlog, against Tarantool"]
    assert (memory.measured, memory.limit, memory.is_met) == (3.0, 2.0, False)
    pause = found["longest pause, a backlog of 1,000,000 tasks, load, a snapshot"]
    assert (pause.measured, pause.unit, pause.limit, pause.is_met) == (5.0, "ms", 20.0, True)
    standing = found["take + ack, a backlog of 1,000,000 tasks, against an empty queue: time"]
    assert standing.measured == pytest.approx(1.2)
    assert (standing.limit, standing.is_met) == (1.3, True)
    assert sum("against beanstalkd" in what for what in found) == 4


def test_a_figure_at_its_limit_is_good_enough() -> None:
    assert Goal("", 2.0, 2.0, is_least=True).is_met
    assert Goal("", 2.0, 2.0, is_least=False).is_met
    assert not Goal("", 1.99, 2.0, is_least=True).is_met
    assert not Goal("", 2.01, 2.0, is_least=False).is_met


def test_goals_without_figures_are_not_measured() -> None:
    found = goals(Results([OURS], [TARANTOOL], 1000, [rate(OURS, "cycle", 1000.0)]))
    assert {goal.is_met for goal in found} == {None}
    [*_, last] = tables(Results([], [], 0))
    assert "not measured" in last


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
    requests, deliveries, footprints, pauses, wanted = tables(results)
    [line] = [
        line for line in requests.splitlines() if MANY in line and "put  " in line and TARANTOOL in line
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
    assert pauses.splitlines()[-1].split() == ["beanstalkd", "2.50", "1.00", "7.50", "1.10", "3,000", "1,500"]
    assert "  yes" in wanted
    assert "   no" in wanted


def test_a_load_that_is_busy_is_marked() -> None:
    measured = replace(rate(OURS, "ping", 1e6), load_share=0.95)
    first, *_ = tables(Results([OURS], [], 0, [measured]))
    assert "95% !" in first


@pytest.mark.process  # the first look at the platform runs uname
def test_results_are_read_as_they_were_written(results: Results, tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    file.write_text(results.to_json())
    assert read([file]) == results
    machine = json.loads(results.to_json())["machine"]
    assert machine["cores"] >= 1
    assert machine["ours"] in ("compiled", "in pure Python")


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


def test_missing_contenders_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert find(NAMES, DEFAULT_QUEUE) == ([Ours()], [TARANTOOL, BEANSTALKD, "Redis"])
    assert find([TARANTOOL], DEFAULT_QUEUE) == ([], [TARANTOOL])


@pytest.mark.slow
@pytest.mark.real_tarantool
def test_every_section_is_measured(tmp_path: Path) -> None:
    program = require_program("tarantool", "tarantool")
    plan = Plan(rounds=1, share=0.005, tasks=1000, shapes=[Shape(10, 100)])
    comparison = Comparison([Ours(), Tarantool(program)], tmp_path, plan, lambda _: None)
    comparison.run()
    assert {each.section for each in comparison.results.rates} == {
        "queue",
        "raw",
        "delayed",
        "standing",
        "empty",
    }
    assert len(comparison.results.deliveries) == 4
    assert [each.contender for each in comparison.results.footprints] == [OURS, TARANTOOL]
    assert [each.contender for each in comparison.results.costs] == [OURS, TARANTOOL]


def test_the_command_writes_what_it_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--contender", "OURS", "--shape", "1x2", "--section", "queue", "--rounds", "1", "--quick"]
    assert command.main([*arguments, "--output", str(tmp_path / "new" / "results")]) == 0
    printed = capsys.readouterr().out
    [picture, file] = sorted(
        (tmp_path / "new" / "results").iterdir(), key=lambda path: path.suffix, reverse=True
    )
    assert (picture.suffix, file.suffix) == (".png", ".json")
    assert {each.shape for each in read([file]).rates} == {"1 × 2"}
    assert command.main(["--show", str(file)]) == 0
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rounds", "0"], "0 is less than 1"),
        (["--rounds", "many"], "'many' is not a number"),
        (["--tasks", "-1"], "-1 is less than 1"),
        (["--contender", "rabbit"], "'rabbit' is not one of ours, Tarantool, beanstalkd, Redis"),
        (["--shape", "10"], "'10' is not of the form 10x100"),
        (["--shape", "0x1"], "'0x1' is not of the form 10x100"),
        (["--section", "none"], "invalid choice: 'none'"),
        (["--tarantool-app", "/nowhere/queue.lua"], "file '/nowhere/queue.lua' does not exist"),
        (["--directory", "/nowhere"], "directory '/nowhere' does not exist"),
        (["--contender"], "expected at least one argument"),
        (["--slow"], "unrecognized arguments: --slow"),
    ],
)
def test_wrong_options_are_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_status:
        command.main(arguments)
    assert exit_status.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("text", [None, "something else"])
def test_unreadable_results_are_reported(
    text: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "results.json"
    if text is not None:
        file.write_text(text)
    assert command.main(["--show", str(file)]) == 1
    assert capsys.readouterr().err.startswith("python -m bench: ")


def test_missing_contenders_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert command.main(["--contender", "redis", "--output", str(tmp_path / "results")]) == 1
    assert "none of the contenders is installed" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()
