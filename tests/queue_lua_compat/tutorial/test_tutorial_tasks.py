"""The tutorial's queue: connections, starts, delays and counters."""

from __future__ import annotations

import logging
import math

import pytest

from iproto_server import BoxError, ManualClock
from tests.queue_lua_compat.conftest import Client, QueueServer
from tests.queue_lua_compat.tutorial.errors import NOW, error_of


class TestConnections:
    def test_tasks_of_a_closed_connection_go_back(self, server: QueueServer) -> None:
        consumer = server.connect()
        for data in "abc":
            consumer.call("put", data)
        consumer.call("take")
        consumer.call("take")
        consumer.close()
        assert server.stats == {"total": 3, "ready": 3, "waiting": 0, "taken": 0}

    def test_tasks_of_other_connections_stay(self, server: QueueServer, client: Client) -> None:
        client.call("put", "x")
        client.call("take")
        server.connect().close()
        assert server.stats["taken"] == 1

    def test_what_was_acknowledged_does_not_come_back(self, server: QueueServer, client: Client) -> None:
        client.call("put", "x")
        client.call("ack", client.call("take")["id"])
        client.close()
        assert server.stats["total"] == 0

    def test_a_task_that_another_took_over_is_not_given_back(
        self, server: QueueServer, client: Client
    ) -> None:
        first, second = server.connect(), server.connect()
        client.call("put", "x")
        first.call("take")
        server.direct(lambda space: space.update(NOW, [("=", "status", "R")]))
        second.call("take")
        first.close()
        assert server.stats["taken"] == 1
        assert second.call("ack", NOW)["data"] == "x"

    def test_a_connection_remembers_its_peer(self, client: Client) -> None:
        assert client.session.storage.peer == "127.0.0.1:50000"


class TestStart:
    def test_taken_tasks_are_released(
        self, server: QueueServer, client: Client, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        for _ in range(20):
            client.call("put", "x")
            client.call("take")
        server.restart()
        assert server.stats == {"total": 20, "ready": 20, "waiting": 0, "taken": 0}
        assert [text for text in caplog.messages if "at start" in text] == ["released tasks at start: 20"]

    def test_delayed_tasks_are_still_delayed(
        self, clock: ManualClock, server: QueueServer, client: Client
    ) -> None:
        client.call("put", "x", {"delay": 5})
        server.restart()
        assert server.stats["waiting"] == 1
        clock.advance(5)
        assert server.stats["ready"] == 1

    def test_tasks_that_came_due_meanwhile_are_ready(
        self, clock: ManualClock, server: QueueServer, client: Client
    ) -> None:
        client.call("put", "x", {"delay": 5})
        clock.set_wall_clock(NOW + 6 * 10**9)
        server.restart()
        assert server.stats["ready"] == 1


class TestDelay:
    def test_a_task_is_ready_on_time(self, clock: ManualClock, server: QueueServer, client: Client) -> None:
        client.call("put", "x", {"delay": 2})
        clock.advance(1.999)
        assert client.call("take") is None
        clock.advance(0.001)
        assert client.call("take") == {"id": NOW, "status": "T", "runat": 0, "data": "x"}

    def test_there_is_no_polling(self, clock: ManualClock, client: Client) -> None:
        assert clock.pending == 0
        client.call("put", "x", {"delay": 2})
        client.call("put", "x", {"delay": 3})
        assert clock.pending == 1
        clock.advance(3)
        assert clock.pending == 0

    def test_a_task_that_is_due_earlier_moves_the_timer(self, clock: ManualClock, client: Client) -> None:
        client.call("put", "late", {"delay": 50})
        client.call("put", "soon", {"delay": 1})
        clock.advance(1)
        assert client.call("take")["data"] == "soon"

    def test_a_delay_in_the_past_is_due_at_once(self, client: Client) -> None:
        client.call("put", "x", {"delay": -3})
        assert client.call("take")["data"] == "x"

    def test_an_endless_delay_never_comes_due(self, clock: ManualClock, client: Client) -> None:
        client.call("put", "x", {"delay": math.inf})
        clock.advance(10**6)
        assert client.call("take") is None
        assert clock.pending == 0

    def test_a_wall_clock_that_steps_is_noticed_within_a_minute(
        self, clock: ManualClock, client: Client
    ) -> None:
        client.call("put", "x", {"delay": 3600})
        clock.set_wall_clock(NOW + 3600 * 10**9)
        clock.advance(60)
        assert client.call("take")["data"] == "x"

    def test_many_tasks_due_together_are_done_a_part_at_a_time(
        self, clock: ManualClock, server: QueueServer, client: Client
    ) -> None:
        for number in range(2500):
            client.call("put", number, {"delay": 1})
        clock.advance(1)
        assert server.stats["ready"] == 2500

    def test_a_ready_task_with_a_time_to_run_loses_it(self, clock: ManualClock, server: QueueServer) -> None:
        server.direct(lambda space: space.insert([5, "R", NOW / 1e9 + 1, "odd"]))
        server.direct(lambda space: space.insert([6, "W", NOW / 1e9 + 1, "x"]))
        clock.advance(1)
        assert [task["runat"] for task in server.box.space["queue"].pairs()] == [0, 0]


class TestCounters:
    def test_every_status_is_counted(self, server: QueueServer, client: Client) -> None:
        for data in "abc":
            client.call("put", data)
        client.call("put", "later", {"delay": 5})
        client.call("take")
        assert server.stats == {"total": 4, "ready": 2, "waiting": 1, "taken": 1}

    def test_direct_changes_are_counted(self, server: QueueServer) -> None:
        server.direct(lambda space: space.insert([1, "R", 0, "x"]))
        server.direct(lambda space: space.replace([1, "W", 5, "x"]))
        server.direct(lambda space: space.insert([2, "R", 0, "x"]))
        server.direct(lambda space: space.update(2, [("=", 1, "T")]))
        server.direct(lambda space: space.upsert([3, "R", 0, "x"], [("=", 1, "T")]))
        assert server.stats == {"total": 3, "ready": 2, "waiting": 0, "taken": 1}
        server.direct(lambda space: space.delete(2))
        assert server.stats["taken"] == 0

    def test_a_status_nobody_knows_does_no_harm(self, server: QueueServer) -> None:
        server.direct(lambda space: space.insert([1, "X", 0, "x"]))
        server.direct(lambda space: space.delete(1))
        assert server.stats["total"] == 0

    def test_truncation_is_counted(self, server: QueueServer, client: Client) -> None:
        client.call("put", "x")
        client.call("take")
        client.call("put", "y")
        server.direct(lambda space: space.truncate())
        assert server.stats == {"total": 0, "ready": 0, "waiting": 0, "taken": 0}
        assert error_of(client, "ack", NOW) == (32, f"Task {{{NOW}ULL}} was not found")

    def test_what_was_rolled_back_is_not_counted(self, server: QueueServer, client: Client) -> None:
        client.call("put", "x")

        def fail(space: object) -> None:
            space.truncate()  # type: ignore[attr-defined]
            space.insert([1, "R", 0, "x"])  # type: ignore[attr-defined]
            space.update(1, [("=", 1, "T")])  # type: ignore[attr-defined]
            raise RuntimeError("changed my mind")

        with pytest.raises(RuntimeError):
            server.direct(fail)
        assert server.stats == {"total": 1, "ready": 1, "waiting": 0, "taken": 0}

    def test_a_trigger_that_refuses_a_change_leaves_the_counters_right(
        self, server: QueueServer, client: Client
    ) -> None:
        def refuse(old: object, new: object) -> None:
            raise BoxError.procedure("not today")

        client.call("put", "x")
        server.box.space["queue"].on_replace(refuse)
        assert error_of(client, "take") == (32, "not today")
        server.box.space["queue"].on_replace(None, refuse)
        assert server.stats["ready"] == 1
        task = client.call("take")
        server.box.space["queue"].on_replace(refuse)
        assert error_of(client, "ack", task["id"]) == (32, "not today")
        server.box.space["queue"].on_replace(None, refuse)
        assert client.call("ack", task["id"])["data"] == "x"
