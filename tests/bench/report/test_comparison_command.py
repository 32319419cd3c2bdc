"""The command of the comparison: what is measured, written and refused."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from bench import __main__ as command
from bench.peers.contender import Contender
from bench.peers.database import DEFAULT_QUEUE, Ours, OursWithLua, Tarantool
from bench.peers.queue_server import CHECKOUT
from bench.report.comparison import NAMES, Comparison, Plan, find
from bench.report.markdown import markdown
from bench.report.results import read
from bench.workloads.rate import Shape
from tests.bench.report.invented import BEANSTALKD, OURS, TARANTOOL
from tests.programs import require_program


def test_missing_contenders_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    ours: list[Contender] = [Ours(), OursWithLua(queue=DEFAULT_QUEUE)]
    assert find(NAMES, DEFAULT_QUEUE) == (ours, [TARANTOOL, BEANSTALKD, "Redis"])
    assert find([TARANTOOL], DEFAULT_QUEUE) == ([], [TARANTOOL])


@pytest.mark.slow
@pytest.mark.real_tarantool
def test_every_section_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = require_program("tarantool", "tarantool")
    monkeypatch.delenv(CHECKOUT, raising=False)
    plan = Plan(rounds=1, share=0.005, tasks=1000, shapes=[Shape(10, 100)])
    comparison = Comparison([Ours(), Tarantool(program)], tmp_path, plan, lambda _: None)
    comparison.run()
    assert {each.section for each in comparison.results.rates} == {
        "queue",
        "echo",
        "raw",
        "latency",
        "tubes",
        "delayed",
        "standing",
        "empty",
    }
    assert len(comparison.results.deliveries) == 4
    assert [each.contender for each in comparison.results.footprints] == [OURS, TARANTOOL]
    assert [each.contender for each in comparison.results.costs] == [OURS, TARANTOOL]
    assert {(each.kind, each.writer, each.contender) for each in comparison.results.starts} == set(
        product(("snapshot", "log"), (OURS, TARANTOOL), (OURS, TARANTOOL))
    )
    [note] = comparison.results.notes
    assert CHECKOUT in note


def test_the_command_writes_what_it_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--contender", "OURS", "--shape", "1x2", "--only", "queue,", "--rounds", "1", "--quick"]
    assert command.main([*arguments, "--output", str(tmp_path / "new" / "results")]) == 0
    printed = capsys.readouterr().out
    files = {path.suffix: path for path in (tmp_path / "new" / "results").iterdir()}
    assert set(files) == {".png", ".json", ".md"}
    file = files[".json"]
    assert files[".md"].read_text() == markdown(read([file]))
    assert {each.shape for each in read([file]).rates} == {"1 × 2"}
    assert command.main(["--show", str(file)]) == 0
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rounds", "0"], "0 is less than 1"),
        (["--rounds", "many"], "'many' is not a number"),
        (["--tasks", "-1"], "-1 is less than 1"),
        (
            ["--contender", "rabbit"],
            "'rabbit' is not one of ours, ours with Lua, Tarantool, beanstalkd, Redis",
        ),
        (["--shape", "10"], "'10' is not of the form 10x100"),
        (["--shape", "0x1"], "'0x1' is not of the form 10x100"),
        (["--only", "raw,none"], "'none' is not one of queue, echo, raw"),
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
