"""The tutorial's queue across reloads of its code."""

from __future__ import annotations

import pytest

from iproto_server import Application, ManualClock
from iproto_server.box.api.generation import CodeGeneration
from queue_lua_compat.tutorial import TutorialQueue
from tests.queue_lua_compat.conftest import Client, QueueServer, answered


class Refusal(Exception):
    """What a bad version raises."""


def reload(server: QueueServer, *, is_bad: bool = False) -> None:
    """Reload the code as the server does, in one transaction."""
    box, old = server.box, server.application
    application = Application("queue")
    queue = TutorialQueue(application)
    generations: list[CodeGeneration] = []

    def set_up() -> None:
        box.on_commit(lambda: generations[0].complete())
        box.on_rollback(lambda: generations[0].revert())
        generations.append(CodeGeneration(box))
        for setup in application.setups:
            setup(box)
        if is_bad:
            raise Refusal

    box.run(box.session.background, set_up)
    server.application, server.queue = application, queue
    for replaced in old.reloads:
        box.run(box.session.background, replaced, box)


def test_taken_tasks_stay_with_those_who_have_taken_them(server: QueueServer, client: Client) -> None:
    task = client.call("put", "data")
    client.call("take")
    reload(server)
    new = server.connect()
    assert server.stats["taken"] == 1
    with pytest.raises(Exception, match="Not you"):
        new.call("ack", task["id"])
    client._application = server.application
    assert client.call("ack", task["id"])["data"] == "data"


def test_tasks_of_a_connection_that_closes_later_are_ready_again(server: QueueServer, client: Client) -> None:
    client.call("put", "data")
    client.call("take")
    reload(server)
    client.close()
    assert server.stats["ready"] == 1


def test_calls_that_wait_go_on_waiting(server: QueueServer, client: Client) -> None:
    waiting = client.call("take", 60)
    reload(server)
    reload(server)
    server.connect().call("put", "data")
    assert answered(waiting)["data"] == "data"
    assert server.stats["taken"] == 1


def test_calls_that_wait_still_end_in_time(server: QueueServer, client: Client, clock: ManualClock) -> None:
    waiting = client.call("take", 60)
    reload(server)
    clock.advance(60)
    assert answered(waiting) is None


def test_delayed_tasks_become_ready_by_one_timer(
    server: QueueServer, client: Client, clock: ManualClock
) -> None:
    client.call("put", "data", {"delay": 5})
    for _ in range(3):
        reload(server)
    assert clock.pending == 1
    clock.advance(5)
    assert server.stats["ready"] == 1
    assert clock.pending == 0


def test_ids_go_on_rising_although_the_clock_was_set_back(
    server: QueueServer, client: Client, clock: ManualClock
) -> None:
    first = client.call("put", "data")["id"]
    server.direct(lambda space: space.delete(first))
    clock.set_wall_clock(clock.time_ns() - 10**9)
    reload(server)
    assert server.connect().call("put", "data")["id"] > first


def test_tasks_are_counted_once(server: QueueServer, client: Client) -> None:
    client.call("put", "one")
    for _ in range(3):
        reload(server)
    server.connect().call("put", "two")
    server.direct(lambda space: space.truncate())
    server.connect().call("put", "three")
    assert server.stats == {"total": 1, "ready": 1, "waiting": 0, "taken": 0}


def test_a_bad_version_changes_nothing(server: QueueServer, client: Client, clock: ManualClock) -> None:
    client.call("put", "delayed", {"delay": 5})
    waiting = client.call("take", 60)
    with pytest.raises(Refusal):
        reload(server, is_bad=True)
    assert clock.pending == 2
    client.call("put", "now")
    assert answered(waiting)["data"] == "now"
    clock.advance(5)
    assert server.stats == {"total": 2, "ready": 1, "waiting": 0, "taken": 1}
