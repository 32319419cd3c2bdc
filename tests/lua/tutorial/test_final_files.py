"""The tutorial's final files, unchanged, run as in a real Tarantool; so does the application in examples/."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.iproto_client import IprotoClient
from tests.lua.tutorial.applications import (
    OURS,
    REAL,
    SERVED,
    Running,
    final_files,
    masked,
    program,
    put_files,
    running,
)
from tests.programs import REPOSITORY, require_program

pytestmark = pytest.mark.process

CLIENTS = REPOSITORY / "tests" / "clients" / "lua"
real_tarantool = pytest.mark.real_tarantool

SESSION = """\
queue.take()
queue.put("hello").data
queue.put({complex = {struct = "data"}}, {delay = 1000}).status
queue.put(nil)
queue.stats().total, queue.stats().ready, queue.stats().waiting, queue.stats().taken
task = queue.take()
task.status, task.data
queue.ack()
queue.ack(1)
queue.ack("no number")
queue.release(task.id, {delay = 1000}).status
pcall(queue.ack, task.id)
box.space.queue.index.status:pairs({'T'}):each(function(t) box.space.queue:update({t.id},{{'=',2,'R'}}) end)
queue.put("second").status
task = queue.take(1)
task.data
box.session.storage.destroyed
queue.ack(task.id).status
queue.ack(task.id)
queue.put("x", {delay = 'soon'})
queue.put("x", {delay = 0.01}).status
task = queue.take(10) return task.data, task.status, task.runat
fiber.self().storage.console ~= nil
no_such_variable
package.reload.count
package.reload()
package.reload.count
queue.ack(task.id).data
queue.stats().total, queue.stats().ready, queue.stats().waiting, queue.stats().taken
queue.take(0.01)
#box.space.queue:format(), box.space.queue:format()[3].name
box.space.queue:truncate()
queue.stats().total, queue.stats().waiting
box.space.queue.drop()
box.snapshot()
"""


@pytest.fixture(params=["final", "example"])
def source(request: pytest.FixtureRequest) -> Path:
    """The folder of an application: the tutorial's own files, or those in examples/."""
    return final_files() if request.param == "final" else REPOSITORY / "examples" / "tutorial"


@pytest.fixture
def new_folder(source: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Makes folders with the application."""

    def make(name: str) -> Path:
        folder = tmp_path / name
        put_files(folder, source)
        return folder

    return make


def session(who: str, folder: Path) -> list[tuple[str, str]]:
    """Type the session, and return each statement with its answer, without places in the code.

    Their length decides where a long line goes on in the next one.
    """
    with running(who, folder) as application:
        answers = [(line, masked(application.ask(line))) for line in SESSION.splitlines()]
    places = re.compile(r"\d{19}|'?[^\s']*\w+\.lua:\d+: |\[string .*?\]:1: |eval:1: ")
    return [(line, " ".join(places.sub("", answer).split())) for line, answer in answers]


@real_tarantool
def test_a_session_is_that_of_a_real_tarantool(new_folder: Callable[[str], Path]) -> None:
    for ours, theirs in zip(
        session(OURS, new_folder("here")), session(REAL, new_folder("there")), strict=True
    ):
        assert ours == theirs


def tasks_of(application: Running) -> list[str]:
    """The status and the data of all tasks."""
    with application.client() as client:
        return [f"{row[1]} {row[3]}" for row in client.everything(client.space_id("queue")).data]


@real_tarantool
@pytest.mark.parametrize("first", [OURS, REAL])
def test_a_killed_server_leaves_its_tasks_to_the_other_program(
    new_folder: Callable[[str], Path], first: str
) -> None:
    folder, second = new_folder("home"), REAL if first == OURS else OURS
    with running(first, folder) as application, application.client() as client:
        for data in ("acknowledged", "taken", "ready"):
            assert client.call("queue.put", data).ok
        assert client.call("queue.put", "delayed", {"delay": 1000}).ok
        [task] = client.call("queue.take").data
        assert client.call("queue.ack", task["id"]).ok
        assert client.call("queue.take").ok
        assert tasks_of(application) == ["T taken", "R ready", "W delayed"]
    with running(second, folder) as application, application.client() as client:
        assert tasks_of(application) == ["R taken", "R ready", "W delayed"]
        assert client.call("queue.put", "of the second").ok
        [task] = client.call("queue.take").data
        assert task["data"] == "taken"
        application.ask("box.snapshot()")
        assert client.call("queue.ack", task["id"]).ok
    with running(first, folder) as application:
        assert tasks_of(application) == ["R ready", "W delayed", "R of the second"]
        answer = application.ask("queue.stats().ready, queue.stats().waiting, queue.stats().total")
        assert answer == "---\n- 2\n- 1\n- 3\n...\n"


def run_client(who: str, *arguments: str) -> str:
    """Run a client of Lua, and return its output."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(entry or str(REPOSITORY) for entry in sys.path),
    }
    done = subprocess.run(
        [*program(who), *arguments], capture_output=True, text=True, timeout=60, check=True, env=environment
    )
    return re.sub(r"\d{19}", "ID", done.stdout)


@pytest.mark.parametrize(
    ("server", "client"),
    [
        (OURS, OURS),
        (SERVED, OURS),
        pytest.param(OURS, REAL, marks=real_tarantool),
        pytest.param(REAL, OURS, marks=real_tarantool),
        pytest.param(REAL, REAL, marks=real_tarantool),
    ],
)
def test_a_producer_and_a_consumer(new_folder: Callable[[str], Path], server: str, client: str) -> None:
    with running(server, new_folder("home")) as application:
        output = run_client(client, str(CLIENTS / "producer.lua"), application.address, "hi", "there")
        assert re.sub(r'"(\w+)":[^,}\]]+', r"\1", output).startswith("put {")
        assert '"status":"R"' in output
        assert '"data":["hi","there"]' in output
        consume = (str(CLIENTS / "consumer.lua"), application.address)
        released = run_client(client, *consume, "release", "10", "1").splitlines()
        assert [line.split()[0] for line in released] == ["took", "released"]
        ended = run_client(client, *consume, "ack", "0.01", "2").splitlines()
        assert [line.split()[0] for line in ended] == ["took", "acknowledged", "no"]
        assert tasks_of(application) == []


@pytest.mark.parametrize("who", [OURS, SERVED, pytest.param(REAL, marks=real_tarantool)])
def test_a_reload_changes_code_under_clients_that_wait_and_hold_tasks(
    new_folder: Callable[[str], Path], who: str
) -> None:
    folder = new_folder("home")
    with (
        running(who, folder) as application,
        application.client() as holder,
        application.client() as waiting,
        application.client() as producer,
        ThreadPoolExecutor(1) as threads,
    ):
        assert producer.call("queue.put", "held").ok
        [held] = holder.call("queue.take").data
        taken = threads.submit(waiting.call, "queue.take", 60)
        while application.ask("queue._wait:has_readers()") != "---\n- true\n...\n":
            pass
        code = folder / "queue.lua"
        new = (
            "function queue.purge() local n = box.space.queue:len() box.space.queue:truncate() return n end\n"
        )
        code.write_text(code.read_text().rstrip().removesuffix("return queue") + new + "return queue\n")
        assert application.ask("package.reload()") == "---\n...\n"
        assert application.ask("package.reload.count") == "---\n- 2\n...\n"
        assert producer.call("queue.put", "waited for", {"delay": 0.01}).ok
        assert taken.result().data[0]["data"] == "waited for"
        assert counters(producer) == {"total": 2, "ready": 0, "waiting": 0, "taken": 2}
        assert holder.call("queue.ack", held["id"]).data[0]["data"] == "held"
        assert counters(producer) == {"total": 1, "ready": 0, "waiting": 0, "taken": 1}
        assert producer.call("queue.purge").data == [1]
        assert counters(producer) == {"total": 0, "ready": 0, "waiting": 0, "taken": 0}


def counters(client: IprotoClient) -> dict[str, int]:
    """The counters of the queue."""
    [found] = client.call("queue.stats").data
    return dict(found)


@real_tarantool
def test_tarantoolctl_takes_a_task_and_its_end_gives_it_back(new_folder: Callable[[str], Path]) -> None:
    """`tarantoolctl connect 127.0.0.1:3301 <<< 'queue.take()'`"""
    tarantoolctl = require_program("tarantoolctl", "tarantool")
    answers = []
    for who in (OURS, REAL):
        with running(who, new_folder(who)) as application, application.client() as client:
            assert client.call("queue.put", "hello").ok
            done = subprocess.run(
                [tarantoolctl, "connect", application.address],
                input="queue.take()",
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            answers.append(
                (done.returncode, sorted(line.lstrip("- ") for line in masked(done.stdout).splitlines()))
            )
            [task] = client.call("queue.take", 60).data
            assert task["data"] == "hello"
    assert answers[0] == answers[1]
    assert "data: hello" in answers[0][1]
