"""The examples of the section "Tubes" in docs/QUEUES.md run as documented."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.programs import REPOSITORY
from tests.queue_lua_compat.tubes.conftest import TUBES_APPLICATION

QUEUES = (REPOSITORY / "docs" / "QUEUES.md").read_text(encoding="utf-8")


def example(containing: str) -> str:
    """Return the Python example that contains a text."""
    (block,) = [
        block for block in re.findall(r"```python\n(.*?)```", QUEUES, re.DOTALL) if containing in block
    ]
    assert isinstance(block, str)
    return block


def test_a_client_puts_takes_and_acknowledges(start_server: StartServer, tmp_path: Path) -> None:
    server = start_server([TUBES_APPLICATION])
    script = tmp_path / "client.py"
    script.write_text(example('"queue.create_tube", "mails"').replace("3301", str(server.port)))
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("0 t ann@example.org\n-\n", "")


def test_an_application_has_a_driver_and_a_callback_of_its_own(
    start_server: StartServer, tmp_path: Path
) -> None:
    (tmp_path / "mails.py").write_text(example("class LifoDriver"))
    server = start_server([TUBES_APPLICATION, "mails:app"], work_dir=tmp_path)
    with IprotoClient.at(server.address) as client:
        for text in ("first", "second", "third"):
            assert client.call("queue.tube.stack:put", text).ok
        assert client.call("mails.send_all").data == [["third", "second", "first"]]
        client.call("queue.create_tube", "plain", "fifo", {"on_task_change": "note"})
        client.call("queue.tube.plain:put", "fourth")
        client.call("queue.tube.plain:delete", 0)
        assert client.call("mails.send_all").data == [["third", "second", "first", "fourth"]]
