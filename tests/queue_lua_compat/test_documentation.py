"""The examples in docs/QUEUES.md for the tutorial's queue and the legacy queue run as documented."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from queue_lua_compat import legacy, tutorial
from tests.conftest import StartServer
from tests.programs import REPOSITORY

QUEUES = (REPOSITORY / "docs" / "QUEUES.md").read_text(encoding="utf-8")

PRINTED = {
    "The tutorial's queue": ["['one', 'two']", "{'total': 1, 'ready': 1, 'waiting': 0, 'taken': 0}"],
    "The legacy queue": ["['mails', 'taken', 'to bob', 'hello']", "['taken', 'to bob']", "1"],
}
"""What each section's example prints."""


@pytest.mark.parametrize("title", PRINTED)
def test_a_client_can(start_server: StartServer, tmp_path: Path, title: str) -> None:
    [section] = re.findall(rf"^## {title}\n(.*?)^## ", QUEUES, re.DOTALL | re.MULTILINE)
    [application] = re.findall(r"iproto-server serve (\S+)", section)
    [code] = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    server = start_server([application])
    done = subprocess.run(
        [sys.executable, "-c", code.replace("3301", str(server.port))],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == PRINTED[title]


def test_the_tables_have_all_functions_and_no_others() -> None:
    for title, application in (("The tutorial's queue", tutorial.app), ("The legacy queue", legacy.app)):
        [section] = re.findall(rf"^## {title}\n(.*?)^## ", QUEUES, re.DOTALL | re.MULTILINE)
        rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `queue.")]
        named = {name for row in rows for name in re.findall(r"`(queue\.\w+)\(", row)}
        assert named == set(application.procedures)
