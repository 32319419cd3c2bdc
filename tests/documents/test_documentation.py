"""The examples in README.md, docs/OPERATIONS.md, docs/PROCEDURES.md and docs/PROTOCOL.md work as printed."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from iproto_server.protocol.constants import Key, RequestType
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.programs import REPOSITORY, require_perl_module, require_program
from tests.running_server import QUEUE_APPLICATION

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
OPERATIONS = (REPOSITORY / "docs" / "OPERATIONS.md").read_text(encoding="utf-8")
PROCEDURES = (REPOSITORY / "docs" / "PROCEDURES.md").read_text(encoding="utf-8")
PROTOCOL = (REPOSITORY / "docs" / "PROTOCOL.md").read_text(encoding="utf-8")


def example(language: str, containing: str, document: str = README) -> str:
    """The code block of that language with that text in it."""
    [block] = [
        block for block in re.findall(rf"```{language}\n(.*?)```", document, re.DOTALL) if containing in block
    ]
    assert isinstance(block, str)
    return block


def run(command: list[str], cwd: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
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
    code = example("lua", "require('net.box')").replace("3301", str(server.port)).replace("{5}", "{1}")
    (tmp_path / "example.lua").write_text(code)
    assert run([str(tarantool), "example.lua"], tmp_path) == "sending\thello\n"


@pytest.mark.real_tarantool
def test_the_example_in_lua_works_pasted_into_the_console(start_server: StartServer, tmp_path: Path) -> None:
    """The console runs each complete line on its own, with local variables of its own."""
    tarantool = str(require_program("tarantool", "tarantool"))
    server = start_server([QUEUE_APPLICATION])
    code = example("lua", "require('net.box')").replace("3301", str(server.port)).replace("{5}", "{1}")
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(tmp_path)
        os.execve(tarantool, [tarantool], {**os.environ, "TERM": "dumb"})
    try:
        shown = _read_until(terminal, b"tarantool> ")
        for line in code.splitlines():
            os.write(terminal, line.encode() + b"\n")
        shown += _read_until(terminal, b"...\r\n")
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(terminal)
    assert b"sending\thello\r\n" in shown, shown
    assert b"error" not in shown, shown


def _read_until(terminal: int, end: bytes) -> bytes:
    shown = b""
    while end not in shown:
        assert select.select([terminal], [], [], 30)[0], shown
        shown += os.read(terminal, 4096)
    return shown


def test_the_procedures(start_server: StartServer, tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text(example("python", "jobs.add"))
    server = start_server(["jobs:app"], work_dir=tmp_path)
    with IprotoClient.at(server.address) as client:
        assert client.call("jobs.add", {"a": 1}).data == [[1, {"a": 1}]]
        assert client.call("jobs.add", "more").data == [[2, "more"]]
        assert client.call("jobs.add", None).failure == (32, "data required")
        assert client.call("jobs.slow", 0.01).data == [2]


def test_the_tools(start_server: StartServer, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    source = start_server([QUEUE_APPLICATION], work_dir=tmp_path / "data")
    with IprotoClient.at(source.address) as client:
        for number in range(3):
            assert client.call("queue.put", {"number": number}).ok
    target = start_server([QUEUE_APPLICATION])
    outputs = {}
    for line in example("sh", "iproto-server cat", OPERATIONS).splitlines():
        if line.startswith("iproto-server ") and "secret" not in line:
            command = line.replace("iproto-server", f"{sys.executable} -m iproto_server", 1)
            outputs[line] = run(["sh", "-c", command.replace("3301", str(target.port))], tmp_path)
    directory, in_yaml, in_json, in_lua, played, checked = outputs.values()
    assert directory == in_yaml
    assert in_yaml.count("number") == 3
    assert in_json.count('"number"') == 3
    assert in_lua.count("box.space[512]:insert(") == 3
    assert played == ""
    assert checked.splitlines()[-1].endswith(": consistent")
    with IprotoClient.at(target.address) as client:
        assert client.call("queue.stats").data[0]["total"] == 3


@pytest.fixture
def guide(tmp_path: Path) -> Path:
    """The directory of a module that is made of all examples in docs/PROCEDURES.md."""
    blocks = re.findall(r"```python\n(.*?)```", PROCEDURES, re.DOTALL)
    (tmp_path / "jobs.py").write_text("\n\n".join(blocks))
    return tmp_path


def test_the_guide_makes_one_application(start_server: StartServer, guide: Path) -> None:
    server = start_server(["jobs:app"], work_dir=guide)
    with IprotoClient.at(server.address) as client, IprotoClient.at(server.address) as other:
        assert client.call("jobs.add", "first").data == [[1, "new", "first"]]
        assert client.call("jobs.add", "second", "").data == [[2, "new", "second"]]
        assert client.call("jobs.add", "failed", "failed").data == [[3, "failed", "failed"]]
        assert client.call("jobs.next").data == [[1, "taken", "first"]]
        assert client.call("jobs.next", 60).data == [[2, "taken", "second"]]
        assert client.call("jobs.next").data == []
        assert client.call("jobs.finish", 1).data == [[[1, "done", "first", "appended"]]]
        assert client.call("jobs.finish", 3).failure == (32, "there is no job 3")
        assert client.call("seats.sell", 7, "ann").data == [[{7: "ann"}, 1]]
        assert client.call("box.space.jobs:replace", [2, "cancelled", 0]).status == 0
        assert client.call("box.space.jobs:len").data == [1]
        sync = client.send(RequestType.CALL, {Key.FUNCTION_NAME: "jobs.next", Key.TUPLE: [60]})
        other.call("jobs.add", "waited for")
        response = client.receive()
        assert (response.sync, response.data) == (sync, [[2, "taken", "waited for"]])
        session_id, user, peer, since = other.call("jobs.who").data
        assert client.call("jobs.announce", "text").data == [{"text": "text"}]
        assert (user, session_id > 1, peer.startswith("127.0.0.1:"), since > 0) == ("guest", True, True, True)


def test_the_guide_can_be_reloaded(start_server: StartServer, guide: Path) -> None:
    server = start_server(["jobs:app"], work_dir=guide)
    with IprotoClient.at(server.address) as client, IprotoClient.at(server.address) as other:
        for name in ("ann", "bob"):
            client.send(RequestType.CALL, {Key.FUNCTION_NAME: "jobs.call", Key.TUPLE: [name]})
        other.call("jobs.serve_next")
        assert client.receive().data == ["ann is number 1"]
        code = (guide / "jobs.py").read_text()
        (guide / "jobs.py").write_text(code.replace("is number", "comes as number"))
        assert other.call("package.reload").data == [2]
        other.call("jobs.serve_next")
        assert client.receive().data == ["bob comes as number 2"]


def test_the_guide_tests_itself(guide: Path) -> None:
    run([sys.executable, "-c", "import jobs; jobs.test_a_job_that_is_waited_for()"], guide)


CLIENTS_EXAMPLES: dict[str, tuple[str, list[str]]] = {
    "spaces": (
        "unicode_ci",
        [
            "[[1, 'Zoë', {'city': 'Bern'}, ['chess', 'go']]]",
            "2",
            "[[[1, 'Zoë', {'city': 'Bern'}, ['chess', 'go']]]]",
        ],
    ),
    "transactions": ("asynctnt", ["Transaction has been aborted by conflict", "[[1, 40], [2, 60]]"]),
    "pages": ("fetch_pos", ["[[1], [2], [3]]", "[[4], [5], [6]]", "[[7]]"]),
    "events": ("WATCH", ["box.status {'is_ro': False, 'is_ro_cfg': False, 'status': 'running'}"]),
    "pushed messages": ("on_push", ["[['half way']]"]),
    "users": (
        "box.schema.role",
        [
            "[{'total': 0, 'ready': 0, 'waiting': 0, 'taken': 0}]",
            "Execute access to function 'queue.take' is denied for user 'ann'",
        ],
    ),
    "the instance": (
        "read_only",
        ["True", '(7, "Can\'t modify data because this instance is in read-only mode.")', "True"],
    ),
}
"""What each example for clients has in it, by its subject, and what it prints."""


@pytest.mark.parametrize("subject", CLIENTS_EXAMPLES)
def test_clients_can(start_server: StartServer, tmp_path: Path, subject: str) -> None:
    containing, printed = CLIENTS_EXAMPLES[subject]
    server = start_server([QUEUE_APPLICATION])
    code = example("python", containing, PROTOCOL).replace("3301", str(server.port))
    assert run([sys.executable, "-c", code], tmp_path).splitlines() == printed


@pytest.mark.perl
def test_clients_of_tarantool_1_5_can(start_server: StartServer, tmp_path: Path) -> None:
    perl = require_perl_module("MR::Tarantool::Box", "libmr-tarantool-perl")
    (tmp_path / "hits.py").write_text(example("python", "Number64", PROTOCOL))
    server = start_server(["hits:app"], ["--listen-1-5", "127.0.0.1:0"], work_dir=tmp_path)
    port = server.process.wait_for(r"listening on 127.0.0.1:(\d+), protocol of Tarantool 1.5")[1]
    code = example("perl", "MR::Tarantool::Box", PROTOCOL).replace("33013", port)
    assert run([perl, "-e", code], tmp_path) == "/index: 42\n"


def test_clients_can_use_tls(start_server: StartServer, tmp_path: Path) -> None:
    require_program("openssl", "openssl")
    run(["sh", "-c", example("sh", "openssl req", PROTOCOL)], tmp_path)
    [address] = re.findall(r"--listen '(127.0.0.1:3301\?transport=ssl.*?)'", PROTOCOL)
    server = start_server([QUEUE_APPLICATION], listen=address.replace("3301", "0"), work_dir=tmp_path)
    code = example("python", "ssl_ca_file", PROTOCOL).replace("3301", str(server.port))
    assert run([sys.executable, "-c", code], tmp_path) == "ann\n"
