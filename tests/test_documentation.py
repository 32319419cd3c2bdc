"""The examples in README.md work as they stand there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import StartServer
from tests.programs import REPOSITORY, require_program
from tests.running_server import QUEUE_APPLICATION
from tests.wire import RawClient

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


def example(language: str, containing: str) -> str:
    """The code block of that language with that text in it."""
    [block] = [
        block for block in re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL) if containing in block
    ]
    assert isinstance(block, str)
    return block


def run(command: list[str], cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_producer_and_consumer_in_python(start_server: StartServer, tmp_path: Path) -> None:
    server = start_server([QUEUE_APPLICATION])
    code = example("python", "tarantool.Connection")
    code = code.replace("3301", str(server.port)).replace('"queue.take", [5]', '"queue.take", [2.5]')
    output = run([sys.executable, "-c", code], tmp_path).splitlines()
    assert output == [
        "sending {'to': 'alice', 'text': 'hello'}",
        "sending {'to': 'carol', 'text': 'in two seconds'}",
        "{'total': 0, 'ready': 0, 'waiting': 0, 'taken': 0}",
    ]


@pytest.mark.real_tarantool
def test_the_producer_and_consumer_in_lua(start_server: StartServer, tmp_path: Path) -> None:
    tarantool = require_program("tarantool", "tarantool")
    server = start_server([QUEUE_APPLICATION])
    code = example("lua", "netbox.connect").replace("3301", str(server.port)).replace("{5}", "{1}")
    (tmp_path / "example.lua").write_text(code)
    assert run([str(tarantool), "example.lua"], tmp_path) == "sending\thello\n"


def test_the_procedures(start_server: StartServer, tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text(example("python", "jobs.add"))
    server = start_server(["jobs:app"], work_dir=tmp_path)
    with RawClient(server.address) as client:
        assert client.call("jobs.add", {"a": 1}).data == [[1, {"a": 1}]]
        assert client.call("jobs.add", "more").data == [[2, "more"]]
        assert client.call("jobs.add", None).error == (32, "data required")
        assert client.call("jobs.slow", 0.01).data == [2]
