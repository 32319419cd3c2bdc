"""The worker and the producer in docs/CLIENT.md run as documented."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from iproto_server.testing.logged_process import LoggedProcess
from tests.client.support import counts, tutorial, wait_for_counts
from tests.conftest import StartServer
from tests.programs import REPOSITORY

CLIENT = (REPOSITORY / "docs" / "CLIENT.md").read_text(encoding="utf-8")
WORKER_LINES = 15


def example(containing: str) -> str:
    """Return the Python example with that text in it."""
    [block] = [
        block for block in re.findall(r"```python\n(.*?)```", CLIENT, re.DOTALL) if containing in block
    ]
    assert isinstance(block, str)
    return block


def test_the_worker_is_short() -> None:
    assert sum(bool(line.strip()) for line in example("queue.work").splitlines()) <= WORKER_LINES


def test_the_worker_handles_what_the_producer_puts(start_server: StartServer, tmp_path: Path) -> None:
    server = tutorial(start_server)
    port = str(server.port)
    producer = example("client.sync").replace("3301", port)
    subprocess.run([sys.executable, "-c", producer], cwd=REPOSITORY, check=True)
    assert sum(counts(server.address)) == 2
    worker = LoggedProcess(
        [sys.executable, "-c", example("queue.work").replace("3301", port)], cwd=REPOSITORY
    )
    try:
        worker.wait_for("sending {'to': 'ann'}")
        worker.wait_for("sending {'to': 'bob'}")
        wait_for_counts(server.address, (0, 0, 0))
        assert worker.terminate() == 0
    finally:
        worker.kill()
