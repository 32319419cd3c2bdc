"""Microbenchmarks against baselines: ratios, marks, damaged files. The times are invented."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from bench.lib import calibration
from bench.micro import __main__ as micro
from bench.micro.baseline import FILE, BaselineError, Piece, Times, load, median, store
from bench.micro.regressions import Change, changes, report, slower

FRAMES = "bench/micro/test_protocol_pieces.py::test_frame_decode[whole]"
INSERT = "bench/micro/test_box_pieces.py::test_tree_insert[random]"
PUT = "bench/micro/test_hot_path.py::test_put"


def times(machine_us: float = 4000.0, python: str = "3.11", /, **ns: float) -> Times:
    """Create times that were measured at the same speed of the machine."""
    names = {"frames": FRAMES, "insert": INSERT, "put": PUT}
    return Times(python, {names[name]: Piece(time, machine_us) for name, time in ns.items()})


REPORT: Final = {
    "machine_info": {"python": "3.11"},
    "benchmarks": [
        {
            "fullname": PUT,
            "extra_info": {"count": 5000, "calibration": 0.004},
            "stats": {"min": 0.015},
        }
    ],
}
"""The relevant part of a report of pytest-benchmark."""


class Measurements:
    """Returns prepared runs in order, and records the selections."""

    def __init__(self, *runs: Times) -> None:
        self.runs = list(runs)
        self.selections: list[Sequence[str]] = []

    def __call__(self, selection: Sequence[str]) -> Times:
        self.selections.append(selection)
        return self.runs.pop(0)


class TestRatios:
    def test_a_ratio_is_the_time_over_the_baselines(self) -> None:
        [change] = changes(times(put=3000), times(put=2000))
        assert change.ratio == pytest.approx(1.5)

    def test_the_speed_of_the_machine_has_no_part_in_it(self) -> None:
        [change] = changes(times(8000, put=3000), times(4000, put=2000))
        assert change.ratio == pytest.approx(0.75)

    @pytest.mark.parametrize(("ns", "is_slower"), [(1240, False), (1250, True), (1300, True), (100, False)])
    def test_slower_is_what_reaches_the_limit(self, ns: float, is_slower: bool) -> None:
        every = changes(times(put=ns), times(put=1000))
        assert bool(slower(every, 1.25)) is is_slower

    def test_new_pieces_and_those_that_are_gone_have_no_ratio_and_are_not_slower(self) -> None:
        every = changes(times(put=9, frames=9), times(put=9, insert=1))
        assert [(change.name, change.ratio) for change in every] == [
            (INSERT, None),
            (PUT, 1.0),
            (FRAMES, None),
        ]
        assert slower(every) == []

    def test_what_was_not_selected_is_not_gone(self) -> None:
        every = changes(times(put=9), times(put=9, insert=1), is_whole=False)
        assert [change.name for change in every] == [PUT]

    def test_the_middle_of_several_runs_is_that_of_ratios(self) -> None:
        # The longest time is the best one: the machine was slowest.
        runs = [times(4000, put=2000), times(9000, put=3000), times(4000, put=2400)]
        assert median(runs).pieces == {PUT: Piece(2000, 4000)}

    def test_a_piece_that_only_some_runs_have_is_that_of_those(self) -> None:
        assert median([times(put=1, insert=5), times(put=1)]).pieces[INSERT] == Piece(5, 4000)


class TestReport:
    def test_it_has_a_line_for_each_piece(self) -> None:
        now, then = times(8000, put=6000, insert=62.5), times(4000, put=2000, frames=40)
        lines = report(changes(now, then), now, then).splitlines()
        assert lines[0] == "CPU time of one"
        assert [line.split() for line in lines[5:8]] == [
            ["box:", "tree_insert[random]", "62.5", "new"],
            ["hot", "path:", "put", "6,000", "2,000", "1.50", "SLOWER"],
            ["protocol:", "frame_decode[whole]", "40.0", "gone"],
        ]
        assert lines[-1] == "1 of 3 benchmarks take at least 1.25 times as long as in the baseline."

    def test_it_says_that_nothing_is_slower(self) -> None:
        same = times(put=1)
        assert report(changes(same, same), same, same).endswith(
            "No benchmark takes 1.25 times as long as in the baseline."
        )

    def test_it_says_that_the_baseline_is_of_another_python(self) -> None:
        now, then = times(4000, "3.13", put=1), times(4000, "3.11", put=1)
        assert "of Python 3.11, the run of 3.13" in report([Change(PUT, None, None)], now, then)


class TestBaselines:
    def test_what_is_stored_is_loaded(self, tmp_path: Path) -> None:
        kept = times(put=2000.0, insert=72.5)
        file = store(tmp_path / "baselines", kept)
        assert file.name == FILE
        assert load(tmp_path / "baselines") == kept

    def test_a_missing_one_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(BaselineError, match=r"there is no baseline .*pieces\.json; --store creates one"):
            load(tmp_path)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{",
            "[]",
            "null",
            "\0",
            "{}",
            '{"format": "of another program"}',
            '{"format": "times of the server\'s pieces, 1"}',
        ],
    )
    def test_a_damaged_or_foreign_file_is_named(self, tmp_path: Path, text: str) -> None:
        (tmp_path / FILE).write_text(text)
        with pytest.raises(BaselineError, match=r"pieces\.json cannot be used as a baseline: not a baseline"):
            load(tmp_path)

    def test_a_file_that_is_no_text_is_named(self, tmp_path: Path) -> None:
        (tmp_path / FILE).write_bytes(b"\xff\xfe\x80")
        with pytest.raises(BaselineError, match="cannot be used as a baseline"):
            load(tmp_path)

    def test_a_directory_in_its_place_is_named(self, tmp_path: Path) -> None:
        (tmp_path / FILE).mkdir()
        with pytest.raises(BaselineError, match="cannot be used as a baseline"):
            load(tmp_path)

    @pytest.mark.parametrize(
        "piece",
        [
            {"ns": 0, "machine_us": 1},
            {"ns": 1, "machine_us": 0},
            {"ns": -1, "machine_us": 1},
            {"ns": float("nan"), "machine_us": 1},
            {"ns": 1, "machine_us": float("inf")},
            {"ns": "1", "machine_us": 1},
            {"ns": None, "machine_us": 1},
            {"ns": 1},
            {"ns": 1, "machine_us": 1, "more": 1},
            [1, 1],
            1,
        ],
    )
    def test_a_file_with_what_is_no_time_is_named(self, tmp_path: Path, piece: object) -> None:
        file = store(tmp_path, times(put=1))
        found = json.loads(file.read_text())
        found["pieces"][PUT] = piece
        file.write_text(json.dumps(found))
        with pytest.raises(BaselineError, match="cannot be used as a baseline"):
            load(tmp_path)

    def test_that_of_the_repository_can_be_loaded_and_tells_nothing_of_the_machine(self) -> None:
        kept = load(micro.BASELINES)
        assert PUT in kept.pieces
        found = json.loads((micro.BASELINES / FILE).read_text())
        assert set(found) == {"format", "python", "pieces"}


class TestMeasuredTimes:
    def test_a_piece_has_the_time_of_one_in_the_best_round(self) -> None:
        [(name, piece)] = Times.from_report(json.dumps(REPORT)).pieces.items()
        assert name == PUT
        assert piece.ns == pytest.approx(3000)
        assert piece.machine_us == pytest.approx(4000)

    @pytest.mark.parametrize(
        "changed",
        [
            {"machine_info": {"node": "somewhere"}},
            {"benchmarks": [{"fullname": PUT, "extra_info": {}, "stats": {"min": 1}}]},
            {"benchmarks": None},
        ],
    )
    def test_a_report_of_other_tests_is_refused(self, changed: dict[str, object]) -> None:
        with pytest.raises(ValueError, match="not a report of the microbenchmarks"):
            Times.from_report(json.dumps({**REPORT, **changed}))

    def test_the_fixed_work_is_the_same_each_time(self) -> None:
        assert calibration.work() == calibration.work()
        assert calibration.measure() > 0


class TestCommand:
    @pytest.fixture
    def arguments(self, tmp_path: Path) -> list[str]:
        return ["--baselines", str(tmp_path)]

    def test_it_reports_and_succeeds(
        self, arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        store(tmp_path, times(put=1000))
        assert micro.main(arguments, Measurements(times(put=1100))) == 0
        assert "1.10" in capsys.readouterr().out

    def test_what_seems_slower_is_measured_again_and_the_middle_counts(
        self, arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        store(tmp_path, times(put=1000, insert=1000))
        measure = Measurements(times(put=1900, insert=1000), times(put=1050), times(put=1000))
        assert micro.main([*arguments, "--fail"], measure) == 0
        assert measure.selections == [[], [PUT], [PUT]]
        assert "1.05" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("options", "status"), [([], 0), (["--fail"], 1), (["--fail", "--limit", "1.6"], 0)]
    )
    def test_only_on_request_does_it_fail(
        self, arguments: list[str], tmp_path: Path, options: list[str], status: int
    ) -> None:
        store(tmp_path, times(put=1000))
        assert micro.main([*arguments, *options], Measurements(*[times(put=1500)] * 3)) == status

    def test_pieces_can_be_selected(
        self, arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        store(tmp_path, times(put=1000, insert=1000))
        measure = Measurements(times(put=1000))
        assert micro.main([*arguments, "--", "-k", "put"], measure) == 0
        assert measure.selections == [["-k", "put"]]
        assert "gone" not in capsys.readouterr().out

    def test_without_a_baseline_nothing_is_measured(
        self, arguments: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        measure = Measurements()
        assert micro.main(arguments, measure) == 2
        assert measure.selections == []
        assert "there is no baseline" in capsys.readouterr().err

    def test_the_middle_of_some_runs_is_stored(self, arguments: list[str], tmp_path: Path) -> None:
        measure = Measurements(times(put=3000), times(put=1000), times(put=2000))
        assert micro.main([*arguments, "--store"], measure) == 0
        assert load(tmp_path) == times(put=2000)
        assert micro.main([*arguments, "--store", "--runs", "1"], Measurements(times(put=5000))) == 0
        assert load(tmp_path) == times(put=5000)

    def test_a_baseline_of_some_pieces_is_refused(
        self, arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert micro.main([*arguments, "--store", "--", "-k", "put"], Measurements()) == 2
        assert "--store needs all benchmarks" in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        "options",
        [["--limit", "0"], ["--limit", "fast"], ["--limit", "nan"], ["--runs", "0"], ["--runs", "x"]],
    )
    def test_options_that_make_no_sense(self, options: list[str]) -> None:
        with pytest.raises(SystemExit) as exit:
            micro.main(options, Measurements())
        assert exit.value.code == 2

    def test_pytest_measures_a_piece(
        self, arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        name = "bench/micro/test_protocol_pieces.py::test_request_decode[ping]"
        store(tmp_path, Times("3.11", {name: Piece(1e9, 1)}))
        assert micro.main([*arguments, "--", name]) == 0
        assert "protocol: request_decode[ping]" in capsys.readouterr().out

    def test_what_pytest_says_is_shown_where_it_fails(
        self, arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        store(tmp_path, times(put=1))
        assert micro.main([*arguments, "--", "bench/micro/test_hot_path.py::test_nothing"]) == 2
        assert "the benchmarks could not run" in capsys.readouterr().err
