"""Metrics, the dashboard, Graphite and reports of files show the queues that Lua code keeps."""

from __future__ import annotations

import json
import socket
from pathlib import Path

from tests.command_line import run
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.server.http.api_client import logged_in
from tests.server.http.http_client import http_port, metrics
from tests.server.lua.queues.conftest import GUEST, SCRIPTS, TUBE, TUTORIAL, LuaQueue, modules_of


def test_prometheus(client: IprotoClient, queue: LuaQueue) -> None:
    queue.put(client, 1)
    queue.put(client, 2)
    queue.take(client)
    series = metrics(http_port(queue.server))
    assert series["tnt_queue_tasks"][queue.name, "ready"] == 1
    assert series["tnt_queue_tasks"][queue.name, "taken"] == 1
    counter = "queue_ready" if queue.kind == TUTORIAL else "tubes_mail_ready"
    assert series[counter] == {(): 1}
    assert series["tnt_queue_consumers_waiting"][queue.name,] == 0


def test_the_dashboard(client: IprotoClient, queue: LuaQueue) -> None:
    task_id = queue.put(client, {"to": "ann"})
    api = logged_in(http_port(queue.server), "operator")
    [described] = api.get("queues")["queues"]
    assert (described["name"], described["tasks"]["ready"]) == (queue.name, 1)
    [task] = api.get(f"queues/{queue.name}/tasks?state=ready")["tasks"]
    assert (str(task["id"]), task["data"]) == (str(task_id), {"to": "ann"})
    api.post(f"queues/{queue.name}/put", data="from a page")
    assert len(api.get(f"queues/{queue.name}/tasks?state=ready")["tasks"]) == 2


def test_the_files(client: IprotoClient, queue: LuaQueue) -> None:
    queue.put(client, 1)
    [backlog] = [json.loads(line) for line in run("backlog", queue.folder, "--json").output.splitlines()]
    assert (backlog["name"], backlog["tasks"]["ready"]) == (queue.name, 1)


def graphite(start_server: StartServer, folder: Path, kind: str, wanted: set[bytes]) -> None:
    """Serve a queue, and wait for counters at a Graphite server."""
    script = folder / "init.lua"
    script.write_text(f"{GUEST}package.path = '{modules_of(kind)}/?.lua;' .. package.path\n{SCRIPTS[kind]}")
    with socket.create_server(("127.0.0.1", 0)) as receiver:
        receiver.settimeout(60)
        port = receiver.getsockname()[1]
        start_server([str(script)], ["--graphite", f"127.0.0.1:{port}"])
        connection, _ = receiver.accept()
        connection.settimeout(60)
        with connection, connection.makefile("rb") as lines:
            for line in lines:
                wanted.discard(line.rpartition(b" ")[0])
                if not wanted:
                    return
    raise AssertionError(wanted)


def test_graphite_has_the_tutorials_queue(start_server: StartServer, tmp_path: Path) -> None:
    names = ("total", "ready", "waiting", "taken")
    graphite(start_server, tmp_path, TUTORIAL, {f"queue.stats.{name} 0".encode() for name in names})


def test_graphite_has_tubes(start_server: StartServer, tmp_path: Path) -> None:
    names = ("ready", "taken", "buried", "delayed")
    graphite(start_server, tmp_path, TUBE, {f"queue.stats.mail.{name} 0".encode() for name in names})
