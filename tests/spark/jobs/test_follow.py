"""`--follow`: the page is written again while a server works."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyspark_tarantool.backlog import backlog
from tests.spark.interpreted import interpreted
from tests.spark.jobs_data import Outcome, run
from tests.spark.queues.scripted import ScriptedServer, TutorialActions


@pytest.fixture(scope="module", autouse=True)
def _interpreted(spark: SparkSession) -> Iterator[None]:
    with interpreted(spark):
        yield


def tasks_on(page: Path) -> int | None:
    """The number of tasks that a page shows; None if it is not there."""
    if not page.exists():
        return None
    found = re.search(r'<div class="value">(\d+)</div><div class="label">tasks in total', page.read_text())
    return int(found[1]) if found else None


def wait_for_tasks(page: Path, count: int, job: threading.Thread) -> None:
    """Wait until a page shows a number of tasks; pytest's timeout ends it."""
    while tasks_on(page) != count:
        assert job.is_alive()
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_page_shows_what_a_server_does(spark: SparkSession, tmp_path: Path) -> None:
    directory, page = tmp_path / "data", tmp_path / "page.html"
    directory.mkdir()
    server = ScriptedServer(directory, "tutorial")
    actions = TutorialActions(server)
    actions.put(0, 0)
    outcomes: list[Outcome] = []
    options = ("--queue", "tutorial", "--report", page, "--follow", 1)
    job = threading.Thread(target=lambda: outcomes.append(run(backlog, directory, *options)))
    job.start()
    try:
        wait_for_tasks(page, 1, job)
        assert '<meta http-equiv="refresh" content="1">' in page.read_text()
        actions.put(0, 0)
        actions.put(0, 0)
        wait_for_tasks(page, 3, job)
    finally:
        for query in spark.streams.active:
            query.stop()
        job.join()
        server.close()
    assert outcomes[0].status == 0, outcomes[0].errors
    assert spark.range(3).count() == 3, "the session of another thread goes on"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ((), "--follow needs --report, and one directory"),
        (("--report", "p.html", "other"), "--follow needs --report, and one directory"),
        (("--report", "p.html", "--at-lsn", "5"), "--follow and --at-lsn exclude each other"),
        (("--report", "p.html", "--output", "o"), "--follow and --output exclude each other"),
        (("--report", "p.html", "--fail-if", "tasks > 1"), "--follow and --fail-if exclude each other"),
    ],
)
def test_wrong_command_lines(tmp_path: Path, options: tuple[str, ...], sentence: str) -> None:
    outcome = run(backlog, tmp_path, "--queue", "tutorial", "--follow", 5, *options)
    assert (outcome.status, outcome.errors) == (2, [f"pyspark_tarantool.backlog: {sentence}"])
