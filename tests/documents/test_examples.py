"""The programs in examples/ run as they are; `tests/spark/` has those for Spark."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from iproto_server.protocol.constants import Key, RequestType
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.lua.program.scripts import our_program
from tests.programs import REPOSITORY
from tests.running_server import QUEUE_APPLICATION
from tests.tools.console.terminal_process import TerminalProcess

EXAMPLES = REPOSITORY / "examples"


@pytest.fixture
def start_example(start_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> StartServer:
    """Starts servers that find the examples."""
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    return start_server


def run(*arguments: str | Path) -> str:
    """Run Python in the top directory, as examples/README.md says, and return its output."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_all_examples_are_listed() -> None:
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    programs = [path.relative_to(EXAMPLES) for kind in ("py", "lua") for path in EXAMPLES.rglob(f"*.{kind}")]
    assert len(programs) > 4
    assert [program for program in programs if f"[{program}]({program})" not in listed] == []


def test_links_are_added_visited_and_ranked(start_example: StartServer) -> None:
    server = start_example(["examples.short_links:app"])
    with IprotoClient.at(server.address) as client:
        assert client.call("links.add", "https://example.org/").data == [1]
        assert client.call("links.add", "ftp://example.org/").failure == (
            32,
            "an http or https URL is required",
        )
        assert client.call("links.visit", 1).data == ["https://example.org/"]
        assert client.call("links.visit", 2).failure == (32, "there is no link 2")
        assert client.call("links.top").data == [[[1, "https://example.org/", 1]]]


def test_a_stock_in_lua(start_example: StartServer) -> None:
    server = start_example([str(EXAMPLES / "lua" / "init.lua")])
    with IprotoClient.at(server.address) as client:
        assert client.call("stock.add", "nail", 10).data == [["nail", 10]]
        assert client.call("stock.take", "nail", 3).data == [["nail", 7]]
        assert client.call("stock.exchange", "nail", "nut", 2).data == [["nut", 2]]
        assert client.call("stock.exchange", "nail", "nut", 6).failure == (32, "there are only 5 of nail")
        assert client.call("stock.wait", "nut", 2, 1).data == [["nut", 2]]
        assert client.call("stock.wait", "nut", 3, 0.02).data == []
        movements = client.everything(client.space_id("movements")).data
        assert movements == [[1, "nail", 10], [2, "nail", -3], [3, "nail", -2], [4, "nut", 2]]


def test_the_tutorial_in_lua(tmp_path: Path) -> None:
    """Its console puts and takes tasks, loads the code again, and ends the server."""
    command = [sys.executable, "-m", "iproto_server", "serve", str(EXAMPLES / "tutorial" / "init.lua")]
    log = tmp_path / "server.log"
    options = ["--listen", "127.0.0.1:0", "--work-dir", str(tmp_path / "data"), "--log", str(log)]
    prompt = "tarantool> "
    with TerminalProcess([*command, *options], tmp_path, {"PYTHONPATH": str(REPOSITORY)}) as console:
        console.wait_for(prompt)
        address = re.search(r"listening on (\S+)", log.read_text())
        assert address
        answer = console.ask("queue.put({1, 'two'}).data", prompt)
        assert answer == "---\n- [1, 'two']\n...\n\n"
        run_lua(tmp_path, EXAMPLES / "tutorial" / "producer.lua", address[1], "hello")
        console.ask("task = queue.take()", prompt)
        console.enter("package.reload()")
        console.wait_for(prompt)
        assert console.ask("task.status .. queue.ack(task.id).status", prompt) == "---\n- TT\n...\n\n"
        output = run_lua(tmp_path, EXAMPLES / "tutorial" / "consumer.lua", address[1], "0")
        assert output == "task: hello\n"
        assert console.ask("package.reload.count, queue.stats().total", prompt) == "---\n- 2\n- 0\n...\n\n"
        console.type("\x04")
        assert console.wait() == 0


def run_lua(folder: Path, *arguments: str | Path) -> str:
    """Run a file of Lua to its end, and return its output."""
    done = our_program(folder).run(*map(str, arguments), ends_itself=True)
    assert done.status == 0, done.errors
    return done.output


def test_tasks_come_by_priority(start_example: StartServer) -> None:
    server = start_example(["examples.priority_queue:app"])
    with IprotoClient.at(server.address) as client:
        for data, priority in (("later", 5), ("first", -1), ("second", 0)):
            client.call("work.put", data, priority)
        assert [client.call("work.take").data[0][3] for _ in range(3)] == ["first", "second", "later"]
        assert client.call("work.take").data == []
        assert client.call("work.done", 2).data == [[2, client.call("box.session.id").data[0], -1, "first"]]
        assert client.call("work.done", 2).failure == (32, "task 2 is not taken by this connection")


def test_a_task_goes_to_the_next_when_its_consumer_leaves(start_example: StartServer) -> None:
    server = start_example(["examples.priority_queue:app"])
    with IprotoClient.at(server.address) as client:
        client.call("work.put", "data")
        with IprotoClient.at(server.address) as leaving:
            assert leaving.call("work.take").data[0][0] == 1
            client.send(RequestType.CALL, {Key.FUNCTION_NAME: "work.take", Key.TUPLE: [30]})
        assert client.receive().data[0][3] == "data"
        assert client.call("work.give_back", 1).data == [[1, 0, 0, "data"]]


def test_tasks_return_after_a_restart(start_example: StartServer, tmp_path: Path) -> None:
    server = start_example(["examples.priority_queue:app"], work_dir=tmp_path)
    with IprotoClient.at(server.address) as client:
        client.call("work.put", "data")
        assert client.call("work.take").data[0][0] == 1
        server.stop()
    server = start_example(["examples.priority_queue:app"], work_dir=tmp_path)
    with IprotoClient.at(server.address) as client:
        assert client.call("work.take").data[0][3] == "data"


def test_a_taken_task_stays_taken_through_a_reload(start_example: StartServer) -> None:
    server = start_example(["examples.priority_queue:app"])
    with IprotoClient.at(server.address) as client, IprotoClient.at(server.address) as other:
        client.call("work.put", "data")
        client.call("work.take")
        other.send(RequestType.CALL, {Key.FUNCTION_NAME: "work.take", Key.TUPLE: [30]})
        assert client.call("package.reload").data == [2]
        client.call("work.give_back", 1)
        assert other.receive().data[0][3] == "data"


def test_the_consumer_acknowledges_tasks(start_server: StartServer) -> None:
    server = start_server([QUEUE_APPLICATION])
    with IprotoClient.at(server.address) as client:
        for number in range(3):
            client.call("queue.put", {"number": number})
        output = run(EXAMPLES / "consumer.py", server.address, "--patience", "0.1")
        assert output.splitlines() == [
            "task: {'number': 0}",
            "task: {'number': 1}",
            "task: {'number': 2}",
            "acknowledged: 3",
        ]
        assert client.call("queue.stats").data[0]["total"] == 0


def test_the_plugins_example_passes(tmp_path: Path) -> None:
    output = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, EXAMPLES / "testing")
    assert "3 passed" in output
