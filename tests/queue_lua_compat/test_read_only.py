"""The queue during a read-only phase: nothing is lost, and due events happen later."""

from __future__ import annotations

import pytest

from iproto_server import BoxError, ManualClock, Waiter
from tests.queue_lua_compat.conftest import Client, QueueServer, answered

REFUSED = "^Can't modify data because this instance is in read-only mode.$"


def test_procedures_that_change_a_task_are_refused(server: QueueServer, client: Client) -> None:
    client.call("put", "mine")
    client.call("put", "ready")
    task = client.call("take")
    server.box.cfg(read_only=True)
    for call in (("put", "data"), ("take",), ("ack", task["id"]), ("release", task["id"])):
        with pytest.raises(BoxError, match=REFUSED):
            client.call(*call)
    assert server.stats == {"total": 2, "ready": 1, "waiting": 0, "taken": 1}
    server.box.cfg(read_only=False)
    assert client.call("ack", task["id"])["data"] == "mine"
    assert client.call("take")["data"] == "ready"


def test_tasks_that_became_due_are_ready_soon_after_it_has_ended(
    server: QueueServer, client: Client, clock: ManualClock
) -> None:
    client.call("put", "data", {"delay": 5})
    waiting = client.call("take", 60)
    server.box.cfg(read_only=True)
    clock.advance(10)
    assert isinstance(waiting, Waiter)
    assert not waiting.is_done
    assert server.stats["waiting"] == 1
    server.box.cfg(read_only=False)
    clock.advance(1)
    assert answered(waiting)["data"] == "data"


def test_the_tasks_of_a_closed_connection_are_released_soon_after_it_has_ended(
    server: QueueServer, client: Client, clock: ManualClock
) -> None:
    client.call("put", "data")
    client.call("take")
    server.box.cfg(read_only=True)
    client.close()
    clock.advance(10)
    assert server.stats["taken"] == 1
    server.box.cfg(read_only=False)
    clock.advance(1)
    assert server.stats["ready"] == 1
