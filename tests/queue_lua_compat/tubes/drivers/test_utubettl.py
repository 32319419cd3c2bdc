"""Tubes of the type `utubettl`: priorities, delays, times to live and to run, within sub-queues."""

from __future__ import annotations

import pytest

from iproto_server import ManualClock
from tests.queue_lua_compat.tubes.talk import Talk
from tests.queue_lua_compat.tubes.tubes_server import Client, TubesServer, answered
from tests.queue_lua_compat.tubes.world import World

NOW = 1_600_000_000_000_000
SECOND = 1_000_000
FOR_EVER = 3_153_600_000 * SECOND
MODES = ["default", "ready_buffer"]
JOBS = "queue.tube.jobs:"


@pytest.fixture(params=MODES)
def talk(request: pytest.FixtureRequest, world: World) -> Talk:
    """Create a tube in each storage mode, on each server."""
    return Talk(world, world.create("utubettl", {"storage_mode": request.param}))


@pytest.fixture(params=MODES)
def jobs(request: pytest.FixtureRequest, client: Client) -> str:
    """Create a tube in each storage mode, with a manual clock, and return the prefix of its procedures."""
    client.call("queue.create_tube", "jobs", "utubettl", {"storage_mode": request.param})
    return JOBS


def put(client: Client, name: str, **options: object) -> int:
    """Put a task, and return its id; the first letter of the data names the sub-queue."""
    task_id: int = client.call(JOBS + "put", name, {"utube": name[0], **options})[0]
    return task_id


def take(client: Client) -> str | None:
    """Return the data of the task that is taken, or None."""
    task = client.call(JOBS + "take", 0)
    return None if task is None else str(task[2])


class TestInBothWorlds:
    def test_within_a_sub_queue_the_smaller_priority_comes_first(self, talk: Talk) -> None:
        for pri in (3, 1, 2, 1):
            talk("ann", "put", f"pri {pri}", {"utube": "a", "pri": pri})
        order = []
        for _ in range(4):
            ((task_id, _, data),) = talk("bob", "take", 0)
            order.append((task_id, data))
            talk("bob", "ack", task_id)
        assert order == [(1, "pri 1"), (3, "pri 1"), (2, "pri 2"), (0, "pri 3")]

    def test_of_free_sub_queues_the_smallest_priority_comes_first(self, talk: Talk) -> None:
        talk("ann", "put", "a", {"utube": "a", "pri": 5})
        talk("ann", "put", "b", {"utube": "b", "pri": 4})
        talk("ann", "put", "c", {"utube": "c", "pri": 4})
        assert [talk("bob", "take", 0)[0][2] for _ in "abc"] == ["b", "c", "a"]

    def test_a_released_task_has_its_old_place(self, talk: Talk) -> None:
        talk("ann", "put", "second", {"utube": "a", "pri": 1})
        talk("ann", "put", "first", {"utube": "a", "pri": 0})
        assert talk("bob", "take", 0) == [[1, "t", "first"]]
        talk("bob", "release", 1)
        assert talk("bob", "take", 0) == [[1, "t", "first"]]
        talk("bob", "ack", 1)
        assert talk("bob", "take", 0) == [[0, "t", "second"]]

    def test_a_kicked_task_comes_before_others_of_a_greater_priority(self, talk: Talk) -> None:
        talk("ann", "put", "first", {"utube": "a", "pri": 0})
        talk("ann", "put", "second", {"utube": "a", "pri": 1})
        talk("ann", "bury", 0)
        assert talk("ann", "kick", 1) == [1]
        assert talk("bob", "take", 0) == [[0, "t", "first"]]

    def test_a_delayed_task_leaves_its_sub_queue_to_others(self, talk: Talk) -> None:
        assert talk("ann", "put", "later", {"utube": "a", "delay": 1000}) == [[0, "~", "later"]]
        talk("ann", "put", "now", {"utube": "a"})
        assert talk("bob", "take", 0) == [[1, "t", "now"]]

    def test_who_waits_gets_the_next_when_a_task_is_released_with_a_delay(self, talk: Talk) -> None:
        talk("ann", "put", "x", {"utube": "a"})
        talk("ann", "put", "y", {"utube": "a"})
        talk("bob", "take", 0)
        talk.start("cid", "take", 30)
        assert talk("bob", "release", 0, {"delay": 1000}) == [[0, "~", "x"]]
        assert talk.world.finish("cid") == [[1, "t", "y"]]

    def test_what_takes_too_long_frees_its_sub_queue(self, talk: Talk) -> None:
        talk("ann", "put", "x", {"utube": "a", "ttr": 0.05})
        talk("ann", "put", "y", {"utube": "a"})
        assert talk("bob", "take", 0) == [[0, "t", "x"]]
        assert talk("cid", "take", 10) == [[0, "t", "x"]]
        assert talk("bob", "ack", 0) == (32, "Task was not taken")

    def test_a_delayed_task_wakes_who_waits(self, talk: Talk) -> None:
        talk("ann", "put", "x", {"utube": "a", "delay": 0.05})
        assert talk("bob", "take", 10) == [[0, "t", "x"]]

    @pytest.mark.parametrize(
        ("options", "code", "ours", "theirs"),
        [
            ({"ttl": "x"}, 32, "ttl must be a number of seconds", "attempt to compare string with number"),
            ({"ttr": "x"}, 32, "ttr must be a number of seconds", "attempt to compare string with number"),
            (
                {"delay": "x"},
                32,
                "delay must be a number of seconds",
                "attempt to compare number with string",
            ),
            (
                {"pri": "x"},
                23,
                "pri must be a whole number from 0 to 18446744073709551615",
                "Tuple field 6 type does not match one required by operation: expected unsigned",
            ),
        ],
    )
    def test_times_and_priorities_are_numbers(
        self, talk: Talk, options: object, code: int, ours: str, theirs: str
    ) -> None:
        assert talk("ann", "put", "x", options) == talk.world.error(code, f'{ours}, not "x"', theirs)

    @pytest.mark.parametrize("delay", [10**15, 1e300])
    def test_a_delay_may_be_for_ever(self, talk: Talk, delay: float) -> None:
        talk("ann", "put", "x", {"ttl": 100})
        talk("ann", "take")
        assert talk("ann", "release", 0, {"delay": delay}) == [[0, "~", "x"]]


class TestTimes:
    def test_a_task_has_the_tubes_times_unless_it_has_its_own(
        self, server: TubesServer, client: Client
    ) -> None:
        client.call("queue.create_tube", "jobs", "utubettl", {"ttl": 60, "ttr": 5, "pri": 3})
        put(client, "a")
        put(client, "b", ttl=10, ttr=2, pri=0, delay=1)
        assert server.rows("jobs") == [
            [0, "r", NOW + 60 * SECOND, 60 * SECOND, 5 * SECOND, 3, NOW, "a", "a"],
            [1, "~", NOW + 1 * SECOND, 11 * SECOND, 2 * SECOND, 0, NOW, "b", "b"],
        ]

    def test_a_task_dies_when_its_life_is_over(
        self, server: TubesServer, client: Client, clock: ManualClock, jobs: str
    ) -> None:
        put(client, "a1", ttl=5)
        put(client, "a2")
        clock.advance(5)
        assert server.states("jobs") == {"a2": "r"}
        assert take(client) == "a2"
        assert client.call("queue.statistics", "jobs")["calls"]["ttl"] == 1

    def test_a_buried_task_dies_too(
        self, server: TubesServer, client: Client, clock: ManualClock, jobs: str
    ) -> None:
        client.call(jobs + "bury", put(client, "a", ttl=5))
        clock.advance(5)
        assert server.rows("jobs") == []

    def test_a_taken_task_lives_as_long_as_it_may_run(
        self, server: TubesServer, client: Client, clock: ManualClock, jobs: str
    ) -> None:
        put(client, "a", ttl=5, ttr=20)
        take(client)
        clock.advance(19)
        assert server.states("jobs") == {"a": "t"}
        clock.advance(1)
        assert server.rows("jobs") == []

    def test_a_released_task_lives_as_long_as_it_was_to(
        self, server: TubesServer, client: Client, clock: ManualClock, jobs: str
    ) -> None:
        put(client, "a", ttl=10)
        take(client)
        clock.advance(4)
        client.call(jobs + "release", 0)
        assert server.rows("jobs")[0][2] == NOW + 10 * SECOND
        clock.advance(6)
        assert server.rows("jobs") == []

    def test_a_delayed_release_adds_to_its_life(
        self, server: TubesServer, client: Client, clock: ManualClock, jobs: str
    ) -> None:
        put(client, "a", ttl=10)
        take(client)
        client.call(jobs + "release", 0, {"delay": 4})
        assert server.rows("jobs")[0][1:4] == ["~", NOW + 4 * SECOND, 14 * SECOND]
        clock.advance(4)
        assert server.rows("jobs")[0][1:3] == ["r", NOW + 14 * SECOND]

    def test_what_runs_too_long_is_ready_again(
        self, server: TubesServer, client: Client, clock: ManualClock, jobs: str
    ) -> None:
        put(client, "a1", ttr=3)
        put(client, "a2")
        take(client)
        waiting = server.connect().call(jobs + "take", 60)
        clock.advance(2.9)
        assert not waiting.is_done
        clock.advance(0.1)
        assert list(answered(waiting)) == [0, "t", "a1"]

    def test_a_touch_gives_more_time(
        self, server: TubesServer, client: Client, clock: ManualClock, jobs: str
    ) -> None:
        put(client, "a", ttl=10, ttr=3)
        take(client)
        assert list(client.call(jobs + "touch", 0, 5)) == [0, "t", "a"]
        assert server.rows("jobs")[0][2:5] == [NOW + 8 * SECOND, 15 * SECOND, 8 * SECOND]
        clock.advance(7)
        assert server.states("jobs") == {"a": "t"}
        clock.advance(1)
        assert server.states("jobs") == {"a": "r"}

    def test_a_delay_that_ends_makes_the_task_the_first_of_its_priority(
        self, client: Client, clock: ManualClock, jobs: str
    ) -> None:
        put(client, "a1", delay=5)
        put(client, "a2")
        clock.advance(5)
        assert take(client) == "a1"

    def test_a_task_whose_life_is_over_is_not_taken_though_it_is_still_there(
        self, server: TubesServer, client: Client, clock: ManualClock, jobs: str
    ) -> None:
        """The clock is set forward."""
        put(client, "a1", ttl=5)
        put(client, "a2")
        clock.set_wall_clock((NOW + 6 * SECOND) * 1000)
        assert take(client) == "a2"
        assert server.states("jobs") == {"a2": "t"}

    def test_moments_that_passed_while_the_server_was_down_are_made_up_for(
        self, server: TubesServer, client: Client, clock: ManualClock, jobs: str
    ) -> None:
        put(client, "a1", delay=5)
        put(client, "b1", ttl=5)
        put(client, "c1", ttr=100)
        put(client, "c2")
        assert take(client) == "b1"
        client.call(jobs + "bury", 1)
        assert take(client) == "c1"
        server.clock = ManualClock((NOW + 10 * SECOND) * 1000)
        server.restart()
        assert server.states("jobs") == {"a1": "r", "c1": "r", "c2": "r"}
        assert [take(server.connect()) for _ in range(3)] == ["a1", "c1", None]
