"""The depth and age of queues, read from the files of a server."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from iproto_server.box.catalog.system_space_ids import INDEX, SPACE
from iproto_server.tools.operators.backlog import backlog_of_directory
from pyspark_tarantool.jobs.latest_change import LatestChange
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.io.data_files import DataFiles
from pyspark_tarantool.source.options import OnDamaged, ReadOptions
from tests.command_line import run
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.running_server import QUEUE_APPLICATION
from tests.storage.databases import new_database, save, start, write_log
from tests.storage.files import TIMESTAMP, insertion

LEGACY, TUBES = "queue_lua_compat.legacy:app", "queue_lua_compat.tubes:app"


def backlog(directory: Path, *options: object) -> list[dict[str, Any]]:
    outcome = run("backlog", "--json", directory, *options)
    assert (outcome.status, outcome.errors) == (0, [])
    return [json.loads(line) for line in outcome.output.splitlines()]


def test_the_tutorials_queue_in_snapshot_and_log(start_server: StartServer, tmp_path: Path) -> None:
    server = start_server([QUEUE_APPLICATION], work_dir=tmp_path)
    begun = time.time()
    with IprotoClient.at(server.address) as client:
        client.call("queue.put_many", ["a", "b"])
        assert client.call("box.snapshot").ok
        client.call("queue.put", "later", {"delay": 60})
        client.call("queue.put", "soon", {"delay": 3600})
        client.call("queue.take")
        [queue] = backlog(tmp_path)  # while the server runs
        assert queue["tasks"] == {"ready": 1, "taken": 1, "delayed": 2}
        assert 0 <= queue["oldest_ready"] <= time.time() - begun + 1
        assert 0 < queue["next_due"] <= 61
        [other] = json.loads(f"[{run('backlog', '--json', server.address).output}]")
        assert (other["name"], other["tasks"]) == (queue["name"], queue["tasks"])
    server.stop()
    [after] = backlog_of_directory(tmp_path, tmp_path, time.time() + 100)
    # The disconnect has released the task.
    assert (after["tasks"]["ready"], after["overdue"]) == (2, 1)
    assert after["oldest_ready"] > 100
    assert "queue" in run("backlog", tmp_path).output


def test_tubes(start_server: StartServer, tmp_path: Path) -> None:
    server = start_server([TUBES], work_dir=tmp_path)
    with IprotoClient.at(server.address) as client:
        for kind in ("fifo", "fifottl", "limfifottl", "utube", "utubettl"):
            assert client.call("queue.create_tube", kind, kind).ok
            for data in ("a", "b"):
                assert client.call(f"queue.tube.{kind}:put", data).ok
            assert client.call(f"queue.tube.{kind}:bury", 0).ok
    queues = {queue["name"]: queue for queue in backlog(tmp_path)}
    assert set(queues) == {"fifo", "fifottl", "limfifottl", "utube", "utubettl"}
    for name, queue in queues.items():
        assert (queue["dialect"], queue["tasks"]["ready"], queue["tasks"]["buried"]) == ("tube", 1, 1)
        assert (queue["oldest_ready"] is None) == (name in ("fifo", "utube"))


def test_tubes_of_the_older_queue(start_server: StartServer, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    server = start_server([LEGACY], ["--wal-dir", "logs"], work_dir=tmp_path)
    with IprotoClient.at(server.address) as client:
        for tube in ("a", "b", "b"):
            assert client.call("queue.put", 0, tube, 0, 0, 0, 0, "x").ok
    assert run("backlog", tmp_path).errors == ["there are no queues"]
    for wal_dir in (logs, "logs"):
        queues = backlog(tmp_path, "--wal-dir", wal_dir)
        assert [(queue["name"], queue["tasks"]["ready"]) for queue in queues] == [
            ("queue_0/a", 1),
            ("queue_0/b", 2),
        ]


def _tutorial(directory: Path) -> None:
    """A queue with a task that was put at 1.7e9, and one that is due ten seconds later."""
    fields = [{"name": name, "type": "any"} for name in ("id", "status", "runat", "data")]
    rows = [
        insertion(SPACE, 512, 1, "queue", "memtx", 0, {}, fields),
        insertion(INDEX, 512, 0, "primary", "tree", {"unique": True}, [[0, "unsigned"]]),
        insertion(512, 1_700_000_000_000_000_000, "R", 0, "a"),
        insertion(512, 1_700_000_000_000_000_001, "W", 1_700_000_010, "b"),
    ]
    write_log(directory, dict(new_database(directory).vclock), [[row] for row in rows])


class TestAges:
    """Both commands, this one and Spark's job, have one rule."""

    def test_they_refer_to_the_newest_change(self, tmp_path: Path) -> None:
        _tutorial(tmp_path)
        [queue] = backlog_of_directory(tmp_path, tmp_path)
        newest = LatestChange.newest(
            DataFiles.find(ReadOptions.parse({"path": str(tmp_path), "mode": "changes"})),
            DamageHandler(OnDamaged.FAIL),
        )
        assert queue["as_of"] == newest.moment.timestamp() == TIMESTAMP
        assert queue["oldest_ready"] == TIMESTAMP - 1_700_000_000
        assert (queue["overdue"], queue["next_due"]) == (0, 1_700_000_010 - TIMESTAMP)

    def test_without_logs_to_the_snapshot(self, tmp_path: Path) -> None:
        _tutorial(tmp_path)
        box, _ = start(tmp_path)
        (tmp_path / "copy").mkdir()
        save(box, tmp_path / "copy", {1: 4})
        [queue] = backlog_of_directory(tmp_path / "copy", tmp_path / "copy")
        assert (queue["as_of"], queue["tasks"]["ready"]) == (TIMESTAMP, 1)

    def test_or_to_a_given_time(self, tmp_path: Path) -> None:
        _tutorial(tmp_path)
        [queue] = backlog(tmp_path, "--now", "2023-11-14T22:14:20Z")
        assert (queue["oldest_ready"], queue["overdue"], queue["next_due"]) == (60, 1, None)
        [queue] = backlog(tmp_path, "--now", "present")
        assert queue["oldest_ready"] > 10**7
        output = run("backlog", tmp_path, "--now", "1700000060").output
        assert output.startswith("as of 2023-11-14T22:14:20Z, the time of --now\n")
        assert "the time of the newest change" in run("backlog", tmp_path).output

    @pytest.mark.parametrize("text", ["yesterday", "2023-11-14T22:14:20", ""])
    def test_other_texts_are_refused(self, tmp_path: Path, text: str) -> None:
        assert run("backlog", tmp_path, "--now", text).status == 2

    def test_a_server_tells_the_present(self) -> None:
        assert run("backlog", "127.0.0.1:3301", "--now", "present").status == 2


def test_a_directory_without_a_database(tmp_path: Path) -> None:
    assert run("backlog", tmp_path) == (1, "", [f"there is no database in {tmp_path}"])


def test_a_damaged_snapshot(start_server: StartServer, tmp_path: Path) -> None:
    start_server([QUEUE_APPLICATION], work_dir=tmp_path).stop()
    snapshot = next(tmp_path.glob("*.snap"))
    snapshot.write_bytes(snapshot.read_bytes()[:-20])
    outcome = run("backlog", tmp_path)
    assert outcome.status == 1
    assert str(snapshot) in outcome.errors[0]


@pytest.mark.parametrize("option", ["--wal-dir", "--memtx-dir"])
def test_directories_of_files_are_not_for_a_server(option: str) -> None:
    assert run("backlog", "127.0.0.1:3301", option, "x").status == 2
