"""No task is lost if another application's code on the queue's space or its sessions fails."""

from __future__ import annotations

import pytest

from iproto_server import BoxError, ManualClock, Tuple
from tests.queue_lua_compat.conftest import Client, QueueServer, answered


class Saboteur:
    """A trigger that fails while it is enabled."""

    def __init__(self, server: QueueServer) -> None:
        self.is_active = False
        server.box.space["queue"].on_replace(self._sabotage)

    def _sabotage(self, old: Tuple | None, new: Tuple | None) -> None:
        if self.is_active:
            raise ZeroDivisionError


@pytest.fixture
def saboteur(server: QueueServer) -> Saboteur:
    return Saboteur(server)


def test_the_tasks_of_a_closed_connection_are_released_as_soon_as_that_works(
    server: QueueServer, client: Client, clock: ManualClock, saboteur: Saboteur
) -> None:
    client.call("put", "data")
    client.call("take")
    saboteur.is_active = True
    client.close()
    assert server.stats["taken"] == 1
    clock.advance(1)
    assert server.stats["taken"] == 1
    saboteur.is_active = False
    clock.advance(2)
    assert server.stats["ready"] == 1


def test_delayed_tasks_become_ready_as_soon_as_that_works(
    server: QueueServer, client: Client, clock: ManualClock, saboteur: Saboteur
) -> None:
    client.call("put", "data", {"delay": 5})
    saboteur.is_active = True
    clock.advance(5)
    assert server.stats["waiting"] == 1
    saboteur.is_active = False
    clock.advance(1)
    assert server.stats["ready"] == 1


def test_a_waiter_that_cannot_take_a_task_leaves_it_to_the_next(server: QueueServer) -> None:
    first, second, other = server.connect(), server.connect(), server.connect()
    waiting = [first.call("take", 60), second.call("take", 60)]
    first.session.become(server.box.access.by_name("guest"))
    other.call("put", "data")
    with pytest.raises(BoxError, match="access to space 'queue' is denied for user 'guest'"):
        answered(waiting[0])
    assert answered(waiting[1])["data"] == "data"


def test_who_has_gone_takes_nothing(server: QueueServer, client: Client, clock: ManualClock) -> None:
    """An async procedure that calls the queue's functions may outlive its client."""
    client.call("put", "data")
    client.close()
    assert client.call("take") is None
    assert answered(client.call("take", 60)) is None
    assert server.stats["ready"] == 1
    assert clock.pending == 0


def test_a_take_that_is_undone_in_part_leaves_the_task_to_others(server: QueueServer, client: Client) -> None:
    """A procedure of another application takes a task, raises, and catches the exception."""
    client.call("put", "data")
    queue, box = server.queue, server.box

    def take_and_fail() -> None:
        queue.take(box)
        raise ZeroDivisionError

    def procedure() -> None:
        with pytest.raises(ZeroDivisionError):
            box.atomic(take_and_fail)

    box.run(client.session, procedure)
    other = server.connect()
    task = other.call("take")
    with pytest.raises(BoxError, match="Not you"):
        client.call("ack", task["id"])
    client.close()
    assert other.call("ack", task["id"]) == task
