"""Reloading under load: `python -m bench.scenarios.server.reload` has it at full size."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.scenarios.server.reload import QUEUES, main, run, shown

_MEBIBYTE = 2**20


@pytest.mark.parametrize("queue", QUEUES)
def test_reloads_under_load_cost_no_error_no_task_and_no_memory(tmp_path: Path, queue: str) -> None:
    report = run(tmp_path / "data", clients=10, reloads=12, pause=0.02, queue=queue)
    assert report.errors == []
    assert (report.lost, report.twice) == (0, 0)
    assert report.put > 10
    assert report.generation == 13
    # The heap may grow by a page here and there; a generation that is kept has some hundred kilobytes.
    assert report.after - report.before < 3 * _MEBIBYTE
    assert "reloads" in shown(report)


def test_the_command_tells_by_its_status_whether_all_went_well() -> None:
    assert main(["--clients", "2", "--reloads", "2", "--pause", "0.01"]) == 0
