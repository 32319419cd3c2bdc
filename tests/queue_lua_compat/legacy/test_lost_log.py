"""A failed log write undoes committed transactions, and loses nothing."""

from __future__ import annotations

import pytest

from iproto_server import ManualClock
from tests.queue_lua_compat.conftest import Client, answered
from tests.queue_lua_compat.legacy.conftest import LegacyServer, data_of, error_of, put, status, take


def test_a_put_is_undone_with_its_space(server: LegacyServer, client: Client) -> None:
    server.journal.is_slow = True
    put(client, "data")
    server.lose_log()
    assert "queue_0" not in server.box.space
    assert server.queue.registry.spaces == {}
    assert client.call("statistics") == []
    put(client, "new")
    assert data_of(client) == ["new"]


def test_a_put_into_a_space_that_stays_is_undone(server: LegacyServer, client: Client) -> None:
    put(client, "stays")
    server.journal.is_slow = True
    put(client, "data")
    server.lose_log()
    assert client.call("statistics")[:2] == ["space0.tube.put", "1"]
    assert data_of(client) == ["stays"]


def test_a_take_is_undone(server: LegacyServer, client: Client, other: Client) -> None:
    task = put(client)
    server.journal.is_slow = True
    take(client)
    server.lose_log()
    assert error_of(client, "ack", 0, task[0]) == "Task is not taken"
    take(other)
    client.close()
    assert other.call("ack", 0, task[0])[2] == "taken"


def test_one_who_waits_gets_the_task_of_a_take_that_is_undone(
    server: LegacyServer, client: Client, other: Client, clock: ManualClock
) -> None:
    put(client, "a")
    server.journal.is_slow = True
    take(client)
    server.journal.is_slow = False
    waiting = other.call("take", 0, "tube", 60)
    server.lose_log()
    clock.advance(0)
    assert answered(waiting)[3] == "a"


@pytest.mark.parametrize("name", ["ack", "release", "requeue", "bury", "done", "delete"])
def test_a_change_is_undone_and_the_task_is_still_its_owners(
    server: LegacyServer, client: Client, name: str
) -> None:
    task = put(client)
    take(client)
    server.journal.is_slow = True
    client.call(name, 0, task[0])
    server.lose_log()
    assert client.call("ack", 0, task[0])[2] == "taken"


def test_the_task_of_an_undone_ack_is_released_when_its_owner_has_gone_meanwhile(
    server: LegacyServer, client: Client, other: Client, clock: ManualClock
) -> None:
    task = put(client)
    take(client)
    server.journal.is_slow = True
    client.call("ack", 0, task[0])
    client.close()
    server.lose_log()
    clock.advance(1)
    assert status(other, task) == "ready"


def test_the_tasks_of_an_undone_truncation_are_still_their_owners(
    server: LegacyServer, client: Client
) -> None:
    task = put(client)
    take(client)
    server.journal.is_slow = True
    server.box.run(server.box.session.background, server.box.space["queue_0"].truncate)
    server.lose_log()
    assert client.call("ack", 0, task[0])[2] == "taken"


def test_what_was_due_is_due_again(server: LegacyServer, client: Client, clock: ManualClock) -> None:
    task = put(client, delay=1)
    server.journal.is_slow = True
    clock.advance(1)
    assert status(client, task) == "ready"
    server.lose_log()
    assert status(client, task) == "delayed"
    clock.advance(1)
    assert status(client, task) == "ready"


def test_a_space_that_was_dropped_is_back(server: LegacyServer, client: Client, clock: ManualClock) -> None:
    put(client, "ready")
    delayed = put(client, "delayed", delay=5)
    server.journal.is_slow = True
    server.box.run(server.box.session.background, server.box.space["queue_0"].drop)
    assert server.queue.registry.spaces == {}
    server.lose_log()
    clock.advance(5)
    assert status(client, delayed) == "ready"
    assert data_of(client) == ["ready", "delayed"]
    waiting = server.connect().call("take", 0, "tube", 60)
    put(client, "new")
    assert answered(waiting)[3] == "new"
