"""Tubes across restarts, reloads of the code, and read-only phases of the instance."""

from __future__ import annotations

import pytest

from iproto_server import ManualClock, Waiter
from tests.queue_lua_compat.tubes.tubes_server import Client, TubesServer, answered
from tests.queue_lua_compat.tubes.world import World

TYPES = ["fifo", "fifottl", "limfifottl"]


@pytest.fixture(params=TYPES, autouse=True)
def tube(request: pytest.FixtureRequest, client: Client) -> None:
    """Create a tube of each type with three tasks, the first taken and the second buried."""
    client.call("queue.create_tube", "jobs", request.param)
    for data in ("taken", "buried", "ready"):
        client.call("queue.tube.jobs:put", data)
    client.call("queue.tube.jobs:take")
    client.call("queue.tube.jobs:bury", 1)


class TestRestart:
    def test_what_was_taken_is_ready_again(self, server: TubesServer) -> None:
        server.restart()
        assert server.states("jobs") == {"taken": "r", "buried": "!", "ready": "r"}
        client = server.connect()
        assert client.call("queue.tube.jobs:take") == [0, "t", "taken"]
        assert client.call("queue.tube.jobs:ack", 0) == [0, "-", "taken"]

    def test_nobody_waits_and_nobody_has_a_session(self, server: TubesServer, client: Client) -> None:
        client.call("queue.create_tube", "empty", "fifo")
        client.call("queue.tube.empty:take")
        server.restart()
        spaces = ("_queue_consumers", "_queue_taken_2", "_queue_session_ids", "_queue_shared_sessions")
        assert [server.rows(space) for space in spaces] == [[], [], [], []]

    def test_options_stay(self, server: TubesServer, client: Client) -> None:
        client.call("queue.create_tube", "small", "limfifottl", {"capacity": 1, "ttl": 50})
        server.restart()
        client = server.connect()
        assert client.call("queue.tube.small:put", "x") == [0, "r", "x"]
        assert client.call("queue.tube.small:put", "y") == (None,)
        server.clock.advance(50)
        assert server.rows("small") == []

    def test_the_tasks_of_a_temporary_tube_are_gone(self, server: TubesServer, client: Client) -> None:
        client.call("queue.create_tube", "passing", "fifo", {"temporary": True})
        client.call("queue.tube.passing:put", "x")
        server.restart()
        client = server.connect()
        assert client.call("queue.tube.passing:take", 0) is None
        assert client.call("queue.tube.passing:put", "y") == [0, "r", "y"]

    def test_what_became_due_meanwhile_is_done_at_once(
        self, server: TubesServer, client: Client, clock: ManualClock
    ) -> None:
        client.call("queue.create_tube", "timed", "fifottl")
        client.call("queue.tube.timed:put", "delayed", {"delay": 5})
        client.call("queue.tube.timed:put", "short", {"ttl": 5})
        clock.set_wall_clock(clock.time_ns() + 10**11)
        server.restart()
        assert server.states("timed") == {"delayed": "r"}

    def test_the_time_to_run_of_a_task_ends_with_its_session(
        self, server: TubesServer, client: Client, clock: ManualClock
    ) -> None:
        client.call("queue.create_tube", "timed", "fifottl")
        client.call("queue.tube.timed:put", "x", {"ttr": 5})
        client.call("queue.tube.timed:take")
        server.restart()
        server.connect().call("queue.tube.timed:take")
        clock.advance(4)
        assert server.states("timed") == {"x": "t"}

    def test_statistics_begin_anew(self, server: TubesServer) -> None:
        server.restart()
        statistics = server.connect().call("queue.statistics", "jobs")
        assert statistics["tasks"]["total"] == 3
        # The taken tasks have been released.
        assert {name: times for name, times in statistics["calls"].items() if times} == {"release": 1}

    def test_in_a_replica_set_sessions_and_what_they_have_outlive_it(
        self, server: TubesServer, client: Client, clock: ManualClock
    ) -> None:
        settings: dict[str, object] = {"ttr": 10, "in_replicaset": True}
        client.call("queue.cfg", settings)
        session = client.call("queue.identify")
        server.restart(settings)
        assert server.states("jobs")["taken"] == "t"
        again = server.connect()
        assert again.call("queue.identify", session) == session
        clock.advance(100)
        assert again.call("queue.tube.jobs:ack", 0) == [0, "-", "taken"]

    def test_in_a_replica_set_they_end_when_nobody_comes_back(
        self, server: TubesServer, client: Client, clock: ManualClock
    ) -> None:
        settings: dict[str, object] = {"ttr": 10, "in_replicaset": True}
        client.call("queue.cfg", settings)
        server.restart(settings)
        clock.advance(9)
        assert server.states("jobs")["taken"] == "t"
        clock.advance(1)
        assert server.states("jobs")["taken"] == "r"
        assert server.rows("_queue_shared_sessions") == []


class TestReload:
    def test_taken_tasks_stay_taken(self, server: TubesServer, client: Client) -> None:
        server.reload()
        assert client.call("queue.tube.jobs:ack", 0) == [0, "-", "taken"]

    def test_calls_that_wait_go_on_waiting(self, server: TubesServer, client: Client) -> None:
        client.call("queue.tube.jobs:take")
        other = server.connect()
        waiting = other.call("queue.tube.jobs:take", 100)
        server.reload()
        client.call("queue.tube.jobs:put", "new")
        assert answered(waiting) == [3, "t", "new"]
        assert server.rows("_queue_consumers") == []
        assert other.call("queue.tube.jobs:ack", 3) == [3, "-", "new"]

    def test_puts_that_wait_for_room_go_on_waiting(self, server: TubesServer, client: Client) -> None:
        client.call("queue.create_tube", "small", "limfifottl", {"capacity": 1})
        client.call("queue.tube.small:put", "x")
        waiting = client.call("queue.tube.small:put", "y", {"timeout": 100})
        server.reload()
        client.call("queue.tube.small:delete", 0)
        assert answered(waiting) == [0, "r", "y"]

    def test_counters_and_settings_live_on(self, server: TubesServer, client: Client) -> None:
        client.call("queue.cfg", {"ttr": 10})
        before = client.call("queue.statistics")
        server.reload()
        assert client.call("queue.statistics") == before
        client.close()
        assert server.states("jobs")["taken"] == "t"

    def test_timers_are_taken_over_not_doubled(
        self, server: TubesServer, client: Client, clock: ManualClock
    ) -> None:
        client.call("queue.cfg", {"ttr": 10})
        client.call("queue.create_tube", "timed", "fifottl")
        client.call("queue.tube.timed:put", "x", {"delay": 5})
        client.close()
        before = clock.pending
        for _ in range(3):
            server.reload()
        assert clock.pending == before
        clock.advance(10)
        assert server.states("timed") == {"x": "r"}
        assert server.states("jobs")["taken"] == "r"
        assert server.connect().call("queue.statistics", "timed")["calls"]["delay"] == 1

    def test_callbacks_with_a_name_live_on(self, server: TubesServer, client: Client) -> None:
        seen: list[object] = []
        server.queue.callbacks["note"] = lambda task, event: seen.append("old")
        client.call("queue.create_tube", "noted", "fifo", {"on_task_change": "note"})

        def with_the_new_code() -> None:
            server.queue.callbacks["note"] = lambda task, event: seen.append("new")

        server.when_made = with_the_new_code
        server.reload()
        client.call("queue.tube.noted:put", "x")
        assert seen == ["new"]


class TestReadOnly:
    def test_nothing_can_be_done_and_nothing_is_lost(self, server: TubesServer, client: Client) -> None:
        server.box.cfg(read_only=True)
        assert client.call("queue.state") == "WAITING"
        for method in ("put", "ack", "release", "peek", "bury", "kick", "delete", "drop"):
            assert client.call(f"queue.tube.jobs:{method}", 0) == (None,)
        assert client.call("queue.tube.jobs:take") is None
        server.box.cfg(read_only=False)
        assert client.call("queue.state") == "RUNNING"
        assert len(server.rows("jobs")) == 3

    def test_what_was_taken_is_ready_afterwards(self, server: TubesServer, client: Client) -> None:
        server.box.cfg(read_only=True)
        server.box.cfg(read_only=False)
        assert server.states("jobs")["taken"] == "r"
        assert client.refused("queue.tube.jobs:ack", 0) == "Task was not taken"

    def test_with_a_ttr_a_session_may_be_taken_up_again(
        self, server: TubesServer, client: Client, clock: ManualClock
    ) -> None:
        client.call("queue.cfg", {"ttr": 10})
        session = client.call("queue.identify")
        server.box.cfg(read_only=True)
        clock.advance(100)
        server.box.cfg(read_only=False)
        clock.advance(9)
        client.call("queue.identify", session)
        assert client.call("queue.tube.jobs:ack", 0) == [0, "-", "taken"]

    def test_the_tasks_of_one_who_left_meanwhile_are_ready_afterwards(
        self, server: TubesServer, client: Client
    ) -> None:
        server.box.cfg(read_only=True)
        client.close()
        assert server.states("jobs")["taken"] == "t"
        server.box.cfg(read_only=False)
        assert server.states("jobs")["taken"] == "r"

    def test_what_is_due_comes_afterwards(
        self, server: TubesServer, client: Client, clock: ManualClock
    ) -> None:
        client.call("queue.create_tube", "timed", "fifottl")
        client.call("queue.tube.timed:put", "x", {"delay": 5})
        waiting = client.call("queue.tube.timed:take")
        server.box.cfg(read_only=True)
        clock.advance(50)
        assert isinstance(waiting, Waiter)
        assert not waiting.is_done
        server.box.cfg(read_only=False)
        assert answered(waiting) == [0, "t", "x"]


@pytest.mark.parametrize("temporary", ["yes", "", 0, 1, [], {}])
def test_temporary_is_a_boolean(world: World, temporary: object) -> None:
    error = (1, "Illegal parameters, options parameter 'temporary' should be of type boolean")
    for kind in ("fifo", "fifottl", "limfifottl", "utube", "utubettl"):
        assert world.try_to_create("temporary", kind, {"temporary": temporary}) == error
    assert "temporary" not in world.call("ann", "queue.statistics")[0]
