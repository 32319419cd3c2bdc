"""The legacy queue in a server process: real clients, a restart, and other applications beside it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tarantool

from tests import command_line
from tests.conftest import StartServer
from tests.running_server import QUEUE_APPLICATION, RunningServer

APPLICATION = "queue_lua_compat.legacy:app"


def connect(server: RunningServer) -> tarantool.Connection:
    return tarantool.Connection(server.host, server.port)


def test_producers_and_consumers_on_sockets(start_server: StartServer) -> None:
    server = start_server([APPLICATION])
    producer, consumer = connect(server), connect(server)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(consumer.call, "queue.take", 0, "tube", 30)
        [task] = producer.call("queue.put", 0, "tube", 0, 10, 20, 30, "data", {"more": 1})
        [taken] = waiting.result(60)
    assert task == [task[0], "tube", "ready", "data", {"more": 1}]
    assert taken == [task[0], "tube", "taken", "data", {"more": 1}]
    [meta] = producer.call("queue.meta", "0", task[0])
    assert meta[1:3] + meta[4:6] + meta[8:12] == ["tube", "taken", "127", "157", 10, 20, 0, 1]
    with pytest.raises(tarantool.DatabaseError, match="Only consumer that took the task can it ack"):
        producer.call("queue.ack", 0, task[0])
    assert consumer.call("queue.ack", 0, task[0])[0] == taken
    assert list(consumer.call("queue.take", 0, "tube", 0)) == []


def test_many_tasks_at_once_on_sockets(start_server: StartServer) -> None:
    server = start_server([APPLICATION])
    client = connect(server)
    [tasks] = client.call("queue.put_many", "jobs", "tube", 0, 0, 0, 0, list(range(100)))
    [taken] = client.call("queue.take_many", "jobs", "tube", 200, 0)
    assert [task[0] for task in taken] == [task[0] for task in tasks]
    [acknowledged] = client.call("queue.ack_many", "jobs", [task[0] for task in taken])
    assert acknowledged == taken


def test_the_tasks_of_a_connection_that_closes_are_taken_by_the_next(start_server: StartServer) -> None:
    server = start_server([APPLICATION])
    client, other = connect(server), connect(server)
    client.call("queue.put", 0, "tube", 0, 0, 0, 0, "data")
    client.call("queue.take", 0, "tube", 0)
    client.close()
    assert other.call("queue.take", 0, "tube", 30)[0][3] == "data"


def test_tasks_are_there_after_a_crash(start_server: StartServer, tmp_path: Path) -> None:
    server = RunningServer(tmp_path, [APPLICATION])
    try:
        client = connect(server)
        [task] = client.call("queue.put_unique", 0, "tube", 0, 0, 0, 0, "data")
        client.call("queue.take", 0, "tube", 0)
    finally:
        server.kill()
    client = connect(start_server([APPLICATION], work_dir=tmp_path))
    assert client.call("queue.peek", 0, task[0])[0] == task
    assert client.call("queue.put_unique", 0, "tube", 0, 0, 0, 0, "data")[0] == task


@pytest.mark.parametrize("applications", [[APPLICATION, QUEUE_APPLICATION], [QUEUE_APPLICATION, APPLICATION]])
def test_the_tutorials_queue_is_not_served_beside_it(tmp_path: Path, applications: list[str]) -> None:
    names = {APPLICATION: "legacy queue", QUEUE_APPLICATION: "queue"}
    arguments = ("serve", *applications, "--listen", "127.0.0.1:0", "--work-dir", tmp_path)
    outcome = command_line.run(*arguments)
    first, second = (names[application] for application in applications)
    assert outcome.status != 0
    [line] = outcome.errors
    assert f'the applications "{first}" and "{second}" both define "queue.put' in line
