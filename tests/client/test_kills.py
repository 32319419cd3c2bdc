"""Workers and the server are killed: a short campaign; `python -m tests.client.kills` runs long ones."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from tests.client.kills import SUBJECTS, Campaign, Report
from tests.queue_lua_compat.real_tubes import worlds


@pytest.mark.slow
@pytest.mark.server
@pytest.mark.parametrize("subject", worlds("iproto-server", "tarantool"))
def test_each_task_is_done(tmp_path: Path, subject: str) -> None:
    campaign = Campaign(SUBJECTS[subject](), tmp_path, tasks=3000, workers=4, seed=1)
    try:
        report = asyncio.run(campaign.run())
    finally:
        campaign.close()
    assert report.findings() == []
    assert report.kills["worker"] + report.kills["server"] > 0


def findings(tmp_path: Path, *lines: str, puts: int = 1) -> list[str]:
    """Return the findings about one task, from what workers have noted."""
    file = tmp_path / "worker.txt"
    file.write_text("".join(f"{line}\n" for line in lines))
    report = Report(1, Counter({0: puts}))
    report.read([file])
    return report.findings()


class TestFindings:
    def test_a_task_that_is_done_and_acknowledged(self, tmp_path: Path) -> None:
        assert findings(tmp_path, "1 done 0", "2 acknowledged 0") == []

    def test_a_task_that_is_done_again_as_it_was_not_acknowledged(self, tmp_path: Path) -> None:
        assert findings(tmp_path, "1 done 0", "3 done 0", "4 acknowledged 0") == []

    def test_a_line_that_was_cut_short_counts_as_never_written(self, tmp_path: Path) -> None:
        file = tmp_path / "worker.txt"
        file.write_text("1 done 0\n2 ackn")
        report = Report(1, Counter({0: 1}))
        report.read([file])
        assert report.findings() == []

    def test_a_task_that_is_lost(self, tmp_path: Path) -> None:
        assert findings(tmp_path) == ["task 0 was never done"]

    def test_a_task_that_is_done_again_after_its_acknowledgement(self, tmp_path: Path) -> None:
        [finding] = findings(tmp_path, "1 done 0", "2 acknowledged 0", "3 done 0")
        assert finding == "task 0 was done again after a confirmed acknowledgement"

    def test_a_task_that_was_put_once_and_acknowledged_twice(self, tmp_path: Path) -> None:
        lines = ("1 done 0", "2 acknowledged 0", "3 done 0", "4 acknowledged 0")
        assert "acknowledged 2 times, put 1 times" in findings(tmp_path, *lines)[0]
        assert findings(tmp_path, *lines, puts=2) == []

    def test_a_task_from_nowhere(self, tmp_path: Path) -> None:
        assert findings(tmp_path, "1 done 0", "1 done 7") == ["task 7 comes from nowhere"]
