"""Reloading under load: `python -m bench.reload` has it at full size."""

from __future__ import annotations

from pathlib import Path

from bench.reload import main, run, shown

_MEBIBYTE = 2**20


def test_reloads_under_load_cost_no_error_no_task_and_no_memory(tmp_path: Path) -> None:
    report = run(tmp_path / "data", clients=20, reloads=15, pause=0.05)
    assert report.errors == []
    assert (report.lost, report.twice) == (0, 0)
    assert report.put > 20
    assert report.generation == 16
    # The heap may grow by a page here and there; a generation that is kept has some hundred kilobytes.
    assert report.after - report.before < 3 * _MEBIBYTE
    assert "reloads" in shown(report)


def test_the_command_tells_by_its_status_whether_all_went_well() -> None:
    assert main(["--clients", "2", "--reloads", "2", "--pause", "0.01"]) == 0
