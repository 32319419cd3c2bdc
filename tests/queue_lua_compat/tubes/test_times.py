"""Due times: delays, times to live, times to run, and timeouts of waiting calls."""

from __future__ import annotations

import pytest

from iproto_server import ManualClock, Waiter
from tests.queue_lua_compat.tubes.tubes_server import Client, TubesServer, answered

NOW = 1_600_000_000_000_000
"""The initial time of the clock, in microseconds."""

SECOND = 1_000_000
FOR_EVER = 3_153_600_000 * SECOND


@pytest.fixture(autouse=True)
def tube(client: Client) -> None:
    """Create a tube."""
    client.call("queue.create_tube", "jobs", "fifottl")


def put(client: Client, data: str, **options: object) -> int:
    """Put a task, and return its id."""
    task_id: int = client.call("queue.tube.jobs:put", data, options)[0]
    return task_id


def row(server: TubesServer, task_id: int = 0) -> list[object]:
    """Return a task's state, next event, ttl, ttr, priority and creation time; times in seconds from now."""
    _, state, next_event, ttl, ttr, pri, created, _ = server.rows("jobs")[task_id]
    return [state, (next_event - NOW) / SECOND, ttl / SECOND, ttr / SECOND, pri, (created - NOW) / SECOND]


class TestRows:
    def test_without_times_a_task_lives_and_runs_for_a_hundred_years(
        self, server: TubesServer, client: Client
    ) -> None:
        put(client, "x")
        assert server.rows("jobs") == [[0, "r", NOW + FOR_EVER, FOR_EVER, FOR_EVER, 0, NOW, "x"]]

    def test_times_and_priority_are_stored(self, server: TubesServer, client: Client) -> None:
        put(client, "x", ttl=10, ttr=2.5, pri=7)
        assert row(server) == ["r", 10, 10, 2.5, 7, 0]

    def test_a_delay_is_added_to_the_life(self, server: TubesServer, client: Client) -> None:
        put(client, "x", ttl=10, delay=3)
        assert row(server)[:3] == ["~", 3, 13]

    def test_a_life_beyond_a_hundred_years_has_no_end(self, server: TubesServer, client: Client) -> None:
        put(client, "x", ttl=float("inf"), ttr=1e300, delay=1e300)
        never = 2**64 - 1
        assert server.rows("jobs")[0][1:5] == ["~", never, never, never]

    def test_the_time_to_run_of_a_task_is_never_longer_than_its_life(
        self, server: TubesServer, client: Client, clock: ManualClock
    ) -> None:
        put(client, "x", ttl=10, ttr=4)
        clock.advance(1)
        client.call("queue.tube.jobs:take")
        assert row(server)[:2] == ["t", 5]
        client.call("queue.tube.jobs:release", 0)
        clock.advance(7)
        client.call("queue.tube.jobs:take")
        assert row(server)[:2] == ["t", 10]

    def test_a_touch_moves_everything(self, server: TubesServer, client: Client) -> None:
        put(client, "x", ttl=10, ttr=4)
        client.call("queue.tube.jobs:take")
        client.call("queue.tube.jobs:touch", 0, 1.5)
        assert row(server)[:4] == ["t", 5.5, 11.5, 5.5]

    def test_a_touch_cannot_go_beyond_all_time(self, client: Client) -> None:
        put(client, "x")
        client.call("queue.tube.jobs:take")
        assert "Integer overflow" in client.refused("queue.tube.jobs:touch", 0, 1e12)

    def test_a_released_task_lives_longer_by_its_delay(
        self, server: TubesServer, client: Client, clock: ManualClock
    ) -> None:
        put(client, "x", ttl=10)
        client.call("queue.tube.jobs:take")
        clock.advance(2)
        client.call("queue.tube.jobs:release", 0, {"delay": 5})
        assert row(server)[:3] == ["~", 7, 15]

    def test_the_tubes_options_are_the_defaults(self, server: TubesServer, client: Client) -> None:
        client.call("queue.create_tube", "own", "fifottl", {"ttl": 100, "ttr": 20, "pri": 3})
        client.call("queue.tube.own:put", "x")
        client.call("queue.tube.own:put", "y", {"ttl": 5, "ttr": False, "pri": 0})
        assert [each[3:6] for each in server.rows("own")] == [
            [100 * SECOND, 20 * SECOND, 3],
            [5 * SECOND, 20 * SECOND, 0],
        ]


class TestDelay:
    def test_a_task_is_ready_at_its_moment(
        self, server: TubesServer, client: Client, clock: ManualClock
    ) -> None:
        put(client, "x", delay=5)
        waiting = client.call("queue.tube.jobs:take")
        clock.advance(4.999)
        assert not waiting.is_done
        clock.advance(0.001)
        assert answered(waiting) == [0, "t", "x"]
        assert client.call("queue.statistics", "jobs")["calls"]["delay"] == 1

    def test_tasks_become_ready_in_the_order_of_their_moments(
        self, client: Client, clock: ManualClock
    ) -> None:
        for seconds in (30, 10, 20):
            put(client, f"after {seconds}", delay=seconds)
        got = []
        for _ in range(3):
            waiting = client.call("queue.tube.jobs:take")
            clock.advance(10)
            got.append(answered(waiting)[2])
        assert got == ["after 10", "after 20", "after 30"]

    def test_a_buried_task_may_be_delayed_no_more(
        self, server: TubesServer, client: Client, clock: ManualClock
    ) -> None:
        put(client, "x", delay=5)
        client.call("queue.tube.jobs:bury", 0)
        clock.advance(10)
        assert server.states("jobs") == {"x": "!"}


class TestTimeToLive:
    @pytest.mark.parametrize("state", ["ready", "buried", "delayed"])
    def test_a_task_is_removed_when_its_life_is_over(
        self, server: TubesServer, client: Client, clock: ManualClock, state: str
    ) -> None:
        put(client, "x", ttl=10, delay=5 if state == "delayed" else 0)
        if state == "buried":
            client.call("queue.tube.jobs:bury", 0)
        clock.advance(15 if state == "delayed" else 10)
        assert server.rows("jobs") == []
        statistics = client.call("queue.statistics", "jobs")
        assert (statistics["calls"]["ttl"], statistics["tasks"]["done"]) == (1, 1)

    def test_a_taken_task_lives_until_then(
        self, server: TubesServer, client: Client, clock: ManualClock
    ) -> None:
        put(client, "x", ttl=10)
        client.call("queue.tube.jobs:take")
        clock.advance(10)
        assert server.rows("jobs") == server.rows("_queue_taken_2") == []
        assert client.refused("queue.tube.jobs:ack", 0) == "Task was not taken"

    def test_a_task_whose_life_is_over_is_not_taken_even_if_it_is_still_there(
        self, server: TubesServer, client: Client, clock: ManualClock
    ) -> None:
        put(client, "x", ttl=10)
        put(client, "y")
        clock.set_wall_clock((NOW + 10 * SECOND) * 1000)
        assert client.call("queue.tube.jobs:take") == [1, "t", "y"]

    def test_a_wall_clock_that_steps_is_noticed_within_a_minute(
        self, server: TubesServer, client: Client, clock: ManualClock
    ) -> None:
        put(client, "x", ttl=3600)
        clock.set_wall_clock((NOW + 3600 * SECOND) * 1000)
        clock.advance(60)
        assert server.rows("jobs") == []

    def test_many_that_are_due_together_go_together(
        self, server: TubesServer, client: Client, clock: ManualClock
    ) -> None:
        for number in range(2500):
            put(client, str(number), ttl=10)
        clock.advance(10)
        assert server.rows("jobs") == []


class TestTimeToRun:
    def test_a_task_is_ready_again_when_it_takes_too_long(
        self, server: TubesServer, client: Client, clock: ManualClock
    ) -> None:
        put(client, "x", ttr=5)
        client.call("queue.tube.jobs:take")
        waiting = server.connect().call("queue.tube.jobs:take")
        clock.advance(5)
        assert answered(waiting) == [0, "t", "x"]
        assert client.refused("queue.tube.jobs:ack", 0) == "Task was not taken"
        assert client.call("queue.statistics", "jobs")["calls"]["ttr"] == 1

    def test_a_touched_task_has_longer(self, server: TubesServer, client: Client, clock: ManualClock) -> None:
        put(client, "x", ttr=5)
        client.call("queue.tube.jobs:take")
        clock.advance(4)
        client.call("queue.tube.jobs:touch", 0, 5)
        clock.advance(5)
        assert server.states("jobs") == {"x": "t"}
        clock.advance(1)
        assert server.states("jobs") == {"x": "r"}

    def test_a_buried_task_has_left_its_time_to_run_behind(
        self, server: TubesServer, client: Client, clock: ManualClock
    ) -> None:
        put(client, "x", ttr=5, ttl=100)
        client.call("queue.tube.jobs:take")
        client.call("queue.tube.jobs:bury", 0)
        clock.advance(50)
        assert server.states("jobs") == {"x": "!"}
        client.call("queue.tube.jobs:kick")
        clock.advance(49)
        assert server.states("jobs") == {"x": "r"}
        clock.advance(1)
        assert server.states("jobs") == {}


class TestTimers:
    def test_a_tube_has_one_timer_however_many_tasks(self, client: Client, clock: ManualClock) -> None:
        assert clock.pending == 0
        for number in range(50):
            put(client, "x", ttl=100 + number, delay=number)
        assert clock.pending == 1

    def test_a_tube_without_tasks_has_none(self, client: Client, clock: ManualClock) -> None:
        put(client, "x", ttl=5)
        clock.advance(5)
        assert clock.pending == 0

    def test_a_dropped_tube_has_none(self, client: Client, clock: ManualClock) -> None:
        put(client, "x", ttl=5)
        client.call("queue.tube.jobs:drop")
        assert clock.pending == 0

    def test_a_task_that_a_client_inserts_itself_is_due_as_others(
        self, server: TubesServer, client: Client, clock: ManualClock
    ) -> None:
        values = [7, "~", NOW + 5 * SECOND, FOR_EVER, FOR_EVER, 0, NOW, "x"]
        server.as_server(server.box.space["jobs"].insert, values)
        waiting = client.call("queue.tube.jobs:take")
        clock.advance(5)
        assert answered(waiting) == [7, "t", "x"]


class TestWaiting:
    def test_a_take_waits_as_long_as_it_says(
        self, server: TubesServer, client: Client, clock: ManualClock
    ) -> None:
        waiting = client.call("queue.tube.jobs:take", 5)
        connection, number, tube, until, since = server.rows("_queue_consumers")[0]
        assert (connection, number, tube, until - since) == (client.session.id, 1, 0, 5 * SECOND)
        clock.advance(4.9)
        assert not waiting.is_done
        clock.advance(0.1)
        assert answered(waiting) is None
        assert server.rows("_queue_consumers") == []

    def test_those_who_wait_are_served_first_come_first(self, server: TubesServer, client: Client) -> None:
        clients = [server.connect() for _ in range(3)]
        waiting = [
            each.call("queue.tube.jobs:take", seconds)
            for each, seconds in zip(clients, (30, 10, 20), strict=True)
        ]
        for data in "abc":
            put(client, data)
        assert [answered(each)[2] for each in waiting] == ["a", "b", "c"]

    def test_a_put_waits_for_room_as_long_as_it_says(
        self, server: TubesServer, client: Client, clock: ManualClock
    ) -> None:
        client.call("queue.create_tube", "small", "limfifottl", {"capacity": 1})
        client.call("queue.tube.small:put", "x", {"ttl": 100})
        waiting = client.call("queue.tube.small:put", "y", {"timeout": 5})
        clock.advance(4.9)
        assert isinstance(waiting, Waiter)
        assert not waiting.is_done
        clock.advance(0.1)
        assert answered(waiting) == (None,)
        waiting = client.call("queue.tube.small:put", "z", {"timeout": 500})
        clock.advance(95)
        assert answered(waiting) == [0, "r", "z"]

    def test_those_who_wait_for_room_are_served_first_come_first(
        self, server: TubesServer, client: Client
    ) -> None:
        client.call("queue.create_tube", "small", "limfifottl", {"capacity": 1})
        client.call("queue.tube.small:put", "x")
        waiting = [client.call("queue.tube.small:put", data, {"timeout": 9}) for data in "abc"]
        for data in "xab":
            assert client.call("queue.tube.small:take")[2] == data
            client.call("queue.tube.small:ack", 0)
        assert [answered(each)[2] for each in waiting] == ["a", "b", "c"]

    def test_who_waits_for_room_in_a_tube_that_is_dropped_is_told(
        self, server: TubesServer, client: Client
    ) -> None:
        client.call("queue.create_tube", "small", "limfifottl", {"capacity": 1})
        client.call("queue.tube.small:put", "x")
        waiting = client.call("queue.tube.small:put", "y", {"timeout": 9})
        client.call("queue.tube.small:drop")
        assert waiting.error.message == "Space 'small' does not exist"

    def test_one_who_closes_the_connection_waits_no_more(
        self, server: TubesServer, client: Client, clock: ManualClock
    ) -> None:
        other = server.connect()
        other.call("queue.tube.jobs:take", 5)
        other.close()
        assert server.rows("_queue_consumers") == []
        assert clock.pending == 0
        put(client, "x")
        assert server.states("jobs") == {"x": "r"}
