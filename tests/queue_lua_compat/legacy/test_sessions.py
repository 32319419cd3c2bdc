"""Disconnects, rollbacks, restarts and reloads: no task is lost."""

from __future__ import annotations

import pytest

from iproto_server import Application, ManualClock
from iproto_server.box.api.generation import CodeGeneration
from queue_lua_compat.legacy import LegacyQueue
from tests.queue_lua_compat.conftest import Client, answered
from tests.queue_lua_compat.legacy.conftest import (
    LegacyServer,
    data_of,
    error_of,
    meta,
    put,
    status,
    take,
)


def counted(client: Client, name: str) -> int:
    """Return a counter of the tube."""
    rows = client.call("statistics", 0, "tube")
    return int(rows[rows.index(f"space0.tube.{name}") + 1])


class TestADisconnect:
    def test_its_tasks_are_ready_again(self, client: Client, other: Client) -> None:
        for data in "ab":
            put(client, data)
        task = take(client)
        assert task is not None
        client.close()
        known = meta(other, task)
        assert (known["status"], known["cid"]) == ("ready", 0)
        assert counted(other, "ready_by_disconnect") == 1
        assert data_of(other) == ["a", "b"]

    def test_those_in_all_spaces(self, client: Client, other: Client) -> None:
        for space in (0, 1, "jobs"):
            client.call("put", space, "tube", 0, 0, 0, 0, space)
            client.call("take", space, "tube", 0)
        client.close()
        assert [other.call("take", space, "tube", 0)[3] for space in (0, 1, "jobs")] == [0, 1, "jobs"]

    def test_they_wake_who_waits(self, client: Client, other: Client) -> None:
        task = put(client)
        take(client)
        waiting = other.call("take", 0, "tube", 60)
        client.close()
        assert answered(waiting)[0] == task[0]

    def test_buried_and_done_tasks_stay_what_they_are(self, client: Client, other: Client) -> None:
        tasks = [put(client) for _ in range(2)]
        for task, name in zip(tasks, ("bury", "done"), strict=True):
            take(client)
            client.call(name, 0, task[0])
        client.close()
        assert [status(other, task) for task in tasks] == ["buried", "done"]


class TestARestart:
    def test_taken_tasks_are_ready_again(self, server: LegacyServer, client: Client) -> None:
        put(client, "a")
        put(client, "elsewhere", tube="other")
        take(client)
        take(client, "other")
        server.restart()
        client = server.connect()
        assert counted(client, "ready_by_restart") == 1
        assert data_of(client) == ["a"]
        assert data_of(client, "other") == ["elsewhere"]

    def test_what_was_due_in_between_is_done(
        self, server: LegacyServer, client: Client, clock: ManualClock
    ) -> None:
        task = put(client, "delayed", delay=5)
        put(client, "dead", ttl=5)
        clock.set_wall_clock(clock.time_ns() + 6 * 10**9)
        server.restart()
        assert status(server.connect(), task) == "ready"
        assert len(server.tasks()) == 1

    def test_what_is_due_later_is_done_then(
        self, server: LegacyServer, client: Client, clock: ManualClock
    ) -> None:
        task = put(client, "delayed", delay=5)
        server.restart()
        clock.advance(5)
        assert status(server.connect(), task) == "ready"


class TestAFailure:
    def test_an_undone_take_leaves_the_task_to_others(
        self, server: LegacyServer, client: Client, other: Client
    ) -> None:
        task = put(client)
        take_procedure = server.application.procedures["queue.take"].function

        def take_and_fail() -> None:
            take_procedure(server.box, 0, "tube", 0)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            server.box.run(client.session, server.box.atomic, take_and_fail)
        assert take(other) is not None
        client.close()
        assert other.call("ack", 0, task[0])[0] == task[0]

    @pytest.mark.parametrize("name", ["ack", "release", "requeue", "bury", "done"])
    def test_an_undone_change_leaves_the_task_with_its_owner(
        self, server: LegacyServer, client: Client, name: str
    ) -> None:
        task = put(client)
        take(client)
        procedure = server.application.procedures[f"queue.{name}"].function

        def change_and_fail() -> None:
            procedure(server.box, 0, task[0])
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            server.box.run(client.session, server.box.atomic, change_and_fail)
        assert client.call("ack", 0, task[0])[2] == "taken"

    def test_a_waiter_that_cannot_take_a_task_leaves_it_to_the_next(
        self, server: LegacyServer, client: Client
    ) -> None:
        put(client, tube="other")
        first, second = server.connect(), server.connect()
        waiting = [first.call("take", 0, "tube", 60), second.call("take", 0, "tube", 60)]
        first.session.become(server.box.access.by_name("guest"))
        put(client, "data")
        assert waiting[0].error is not None
        assert answered(waiting[1])[3] == "data"

    def test_who_has_gone_takes_nothing(self, client: Client, other: Client, clock: ManualClock) -> None:
        put(client, "data")
        client.close()
        assert take(client) is None
        assert client.call("take", 0, "tube", 60).result is None
        assert data_of(other) == ["data"]


class TestAReload:
    def test_owners_waiters_and_counters_live_on(
        self, server: LegacyServer, client: Client, other: Client, clock: ManualClock
    ) -> None:
        task = put(client, "taken", ttr=50)
        delayed = put(client, "delayed", tube="other", delay=5)
        take(client)
        waiting = other.call("take_many", 0, "tube", 2, 60)
        reload(server)
        new = server.connect()
        assert status(new, task) == "taken"
        put(new, "for who waits")
        assert [each[3] for each in answered(waiting)] == ["for who waits"]
        assert clock.pending == 1
        clock.advance(5)
        assert status(new, delayed) == "ready"
        assert counted(new, "put") == 2
        assert error_of(new, "ack", 0, task[0]) == "Only consumer that took the task can it ack"
        client.close()
        assert data_of(new) == ["taken"]


def reload(server: LegacyServer) -> None:
    """Reload the application as the server does."""
    generation = CodeGeneration(server.box)
    old = server.application
    server.application = Application("legacy queue")
    server.queue = LegacyQueue(server.application)
    for setup in server.application.setups:
        server.box.run(server.box.session.background, setup, server.box)
    generation.complete()
    for replaced in old.reloads:
        replaced(server.box)
