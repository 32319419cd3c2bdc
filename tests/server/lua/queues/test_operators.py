"""Operators see and repair the queues that Lua code keeps as they do those of Python."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.command_line import run
from tests.iproto_client import IprotoClient
from tests.server.lua.queues.conftest import TUTORIAL, LuaQueue


def figures(client: IprotoClient, queue: LuaQueue) -> dict[str, Any]:
    """The figures of the queue."""
    [described] = client.call("operator.queue", queue.name).data
    return dict(described)


def states(client: IprotoClient, queue: LuaQueue) -> dict[Any, str]:
    """The states of all tasks by their ids."""
    [tasks] = client.call("operator.tasks", queue.name).data
    return {task["id"]: task["state"] for task in tasks}


def wait_for_a_consumer(client: IprotoClient, queue: LuaQueue) -> None:
    """Ask until a consumer waits."""
    while figures(client, queue)["waiting"] == 0:
        pass


def test_there_is_one_queue(client: IprotoClient, queue: LuaQueue) -> None:
    [queues] = client.call("operator.queues").data
    [described] = queues
    assert described["name"] == queue.name
    assert described["dialect"] == ("tutorial" if queue.kind == TUTORIAL else "tube")
    assert described["kind"] == ("tutorial" if queue.kind == TUTORIAL else "fifo")
    assert (described["state"], described["settings"], described["suspicious"]) == ("running", {}, [])


def test_tasks_are_counted(client: IprotoClient, queue: LuaQueue) -> None:
    for number in range(3):
        queue.put(client, number)
    queue.take(client)
    described = figures(client, queue)
    assert {state: count for state, count in described["tasks"].items() if count} == {"ready": 2, "taken": 1}
    if queue.kind == TUTORIAL:
        assert described["oldest_ready"] >= 0
    else:
        assert described["calls"] == {"put": 3, "take": 1}


def test_a_task_has_its_data_and_its_owner(client: IprotoClient, queue: LuaQueue) -> None:
    first, second = queue.put(client, {"to": "ann"}), queue.put(client, [1, 2])
    queue.take(client)
    [session] = client.call("box.session.id").data
    [tasks] = client.call("operator.tasks", queue.name).data
    assert [(task["id"], task["state"], task["data"], task["session"]) for task in tasks] == [
        (first, "taken", {"to": "ann"}, session),
        (second, "ready", [1, 2], None),
    ]
    [sessions] = client.call("operator.sessions").data
    assert [(each["id"], each["taken"]) for each in sessions] == [(session, 1)]


def test_a_consumer_that_waits_is_seen_and_gets_what_an_operator_puts(
    client: IprotoClient, queue: LuaQueue
) -> None:
    with IprotoClient.at(queue.server.address) as consumer, ThreadPoolExecutor(1) as threads:
        taken = threads.submit(consumer.call, *queue.take_request(60))
        wait_for_a_consumer(client, queue)
        [task] = client.call("operator.put", queue.name, "by hand").data
        assert taken.result().data
        assert states(client, queue) == {task["id"]: "taken"}


def test_a_consumer_that_waits_gets_what_an_operator_releases(client: IprotoClient, queue: LuaQueue) -> None:
    task_id = queue.put(client, "data")
    queue.take(client)
    with IprotoClient.at(queue.server.address) as consumer, ThreadPoolExecutor(1) as threads:
        taken = threads.submit(consumer.call, *queue.take_request(60))
        wait_for_a_consumer(client, queue)
        [[released]] = client.call("operator.release", queue.name, [task_id]).data
        assert (released["id"], released["state"]) == (task_id, "ready")
        assert taken.result().data
        [[task]] = client.call("operator.tasks", queue.name).data
        assert task["state"] == "taken"
        assert task["session"] != client.call("box.session.id").data[0]


def test_a_task_is_deleted(client: IprotoClient, queue: LuaQueue) -> None:
    task_id, other = queue.put(client, 1), queue.put(client, 2)
    queue.take(client)
    client.call("operator.delete", queue.name, [task_id])
    assert states(client, queue) == {other: "ready"}
    assert not client.call("operator.delete", queue.name, [task_id]).ok


def test_tasks_are_buried_and_kicked(client: IprotoClient, queue: LuaQueue) -> None:
    task_id = queue.put(client, 1)
    if queue.kind == TUTORIAL:
        assert client.call("operator.bury", queue.name, [task_id]).failure == (
            32,
            'the queue "queue" has no bury; its actions: delete, move, put, release',
        )
        return
    client.call("operator.bury", queue.name, [task_id])
    assert states(client, queue) == {task_id: "buried"}
    assert client.call("operator.kick", queue.name, 5).data == [1]
    assert states(client, queue) == {task_id: "ready"}


def test_a_queue_of_lua_is_not_paused(client: IprotoClient, queue: LuaQueue) -> None:
    code, message = client.call("operator.pause", queue.name).failure
    assert (code, message.split(";")[0]) == (32, f'the queue "{queue.name}" has no pause')


def test_commands_show_it(client: IprotoClient, queue: LuaQueue) -> None:
    task_id = queue.put(client, "data")
    queue.take(client)
    address = queue.server.address
    [backlog] = [json.loads(line) for line in run("backlog", address, "--json").output.splitlines()]
    assert (backlog["name"], backlog["tasks"]["taken"]) == (queue.name, 1)
    [task] = [json.loads(line) for line in run("tasks", address, queue.name, "--json").output.splitlines()]
    assert (task["id"], task["state"]) == (task_id, "taken")
    assert run("release", address, queue.name, task_id).status == 0
    assert states(client, queue) == {task_id: "ready"}
