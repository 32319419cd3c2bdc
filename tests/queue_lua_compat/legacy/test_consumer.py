"""Taking, completing and releasing tasks."""

from __future__ import annotations

import pytest

from iproto_server import ManualClock
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

OF_THE_OWNER = ("touch", "ack", "release", "requeue", "bury", "done")


class TestTake:
    def test_a_taken_task_says_so(self, client: Client) -> None:
        task = put(client, "data", 1)
        assert take(client) == [task[0], "tube", "taken", "data", 1]
        known = meta(client, task)
        assert (known["status"], known["cid"], known["ctaken"]) == ("taken", client.session.id, 1)

    def test_without_time_to_wait_there_is_no_value(self, client: Client) -> None:
        assert client.call("take", 0, "tube", 0) is None
        assert client.call("take", 0, "tube", "0") is None

    def test_it_waits_for_a_task(self, client: Client, other: Client) -> None:
        waiting = client.call("take", 0, "tube", 60)
        put(other, "elsewhere", tube="other")
        assert not waiting.is_done
        task = put(other, "data")
        assert answered(waiting)[0] == task[0]
        assert error_of(other, "ack", 0, task[0]) == "Only consumer that took the task can it ack"
        assert client.call("ack", 0, task[0])[3] == "data"

    @pytest.mark.parametrize("timeout", [2.5, "2.5"])
    def test_it_waits_so_long(self, client: Client, clock: ManualClock, timeout: object) -> None:
        waiting = client.call("take", 0, "tube", timeout)
        clock.advance(2.25)
        assert not waiting.is_done
        clock.advance(0.25)
        assert answered(waiting) is None

    @pytest.mark.parametrize("timeout", [(), (None,), (-1,), ("-1",)])
    def test_it_waits_as_long_as_it_takes(
        self, client: Client, other: Client, clock: ManualClock, timeout: tuple[object, ...]
    ) -> None:
        waiting = client.call("take", 0, "tube", *timeout)
        clock.advance(366 * 86_400)
        put(other, "data")
        assert answered(waiting)[3] == "data"

    def test_first_come_first_served(self, server: LegacyServer, client: Client) -> None:
        waiting = [server.connect().call("take", 0, "tube", 60) for _ in range(3)]
        for data in "abc":
            put(client, data)
        assert [answered(call)[3] for call in waiting] == ["a", "b", "c"]

    def test_who_has_gone_gets_nothing(self, client: Client, other: Client) -> None:
        waiting = client.call("take", 0, "tube", 60)
        client.close()
        put(other, "data")
        assert answered(waiting) is None
        assert data_of(other) == ["data"]

    def test_tubes_that_are_waited_for_no_more_are_forgotten(
        self, server: LegacyServer, client: Client, other: Client, clock: ManualClock
    ) -> None:
        waiting = client.call("take", 0, "tube", 60)
        for number in range(1500):
            other.call("take", 0, f"tube {number}", 1)
            if number % 100 == 99:
                clock.advance(1)
        [queue_space] = server.queue.registry.spaces.values()
        assert len(queue_space.wait_queues) < 1000
        put(other, "data")
        assert answered(waiting)[3] == "data"

    @pytest.mark.parametrize("timeout", ["soon", True, [1], float("nan")])
    def test_a_timeout_must_be_a_number(self, client: Client, timeout: object) -> None:
        put(client)
        assert error_of(client, "take", 0, "tube", timeout).startswith("timeout must be a number")
        assert take(client) is not None

    def test_a_task_whose_time_to_live_is_over_is_not_given(
        self, server: LegacyServer, client: Client, clock: ManualClock
    ) -> None:
        put(client, "old", ttl=1)
        put(client, "new", ttl=9)
        clock.set_wall_clock(clock.time_ns() + 2 * 10**9)  # no timer has fired yet
        assert data_of(client) == ["new"]
        assert len(server.tasks()) == 1


class TestTakeMany:
    def test_it_takes_up_to_so_many(self, client: Client) -> None:
        client.call("put_many", 0, "tube", 0, 0, 0, 0, ["a", "b", "c"])
        assert [task[2:] for task in client.call("take_many", 0, "tube", 2, 60)] == [
            ["taken", "a"],
            ["taken", "b"],
        ]
        assert [task[3] for task in client.call("take_many", 0, "tube", "2", 60)] == ["c"]

    def test_without_time_to_wait_there_is_no_value(self, client: Client) -> None:
        assert client.call("take_many", 0, "tube", 2, 0) is None

    def test_it_waits_for_the_first_only(self, client: Client, other: Client) -> None:
        waiting = client.call("take_many", 0, "tube", 3, 60)
        put(other, "a")
        assert [task[3] for task in answered(waiting)] == ["a"]

    def test_woken_it_takes_what_was_put_together(self, client: Client, other: Client) -> None:
        waiting = client.call("take_many", 0, "tube", 3, 60)
        other.call("put_many", 0, "tube", 0, 0, 0, 0, list("abcd"))
        assert [task[3] for task in answered(waiting)] == ["a", "b", "c"]
        assert data_of(other) == ["d"]

    def test_it_waits_so_long(self, client: Client, clock: ManualClock) -> None:
        waiting = client.call("take_many", 0, "tube", 3, 5)
        clock.advance(5)
        assert answered(waiting) is None

    @pytest.mark.parametrize(
        ("n", "message"),
        [
            (0, "n must be at least 1, not 0"),
            ("-3", "n must be at least 1, not -3"),
            (1.5, "n must be a whole number, not 1.5"),
            (None, "n must be a number, not nil"),
            ("many", 'n must be a number, not "many"'),
        ],
    )
    def test_n_must_be_a_whole_number_from_1_on(self, client: Client, n: object, message: str) -> None:
        assert error_of(client, "take_many", 0, "tube", n, 0) == message


class TestTheOwnersRight:
    """The common checks of touch, ack, release, requeue, bury and done."""

    @pytest.mark.parametrize("name", OF_THE_OWNER)
    def test_there_must_be_such_a_task(self, client: Client, name: str) -> None:
        assert error_of(client, name, 0, "0" * 32) == "Task not found"

    @pytest.mark.parametrize("name", OF_THE_OWNER)
    def test_it_must_be_taken(self, client: Client, name: str) -> None:
        assert error_of(client, name, 0, put(client)[0]) == "Task is not taken"

    @pytest.mark.parametrize("name", OF_THE_OWNER)
    def test_only_who_has_taken_it_may(self, client: Client, other: Client, name: str) -> None:
        task = put(client)
        take(other)
        assert error_of(client, name, 0, task[0]) == f"Only consumer that took the task can it {name}"
        assert other.call(name, 0, task[0])[0] == task[0]

    @pytest.mark.parametrize("name", OF_THE_OWNER)
    @pytest.mark.parametrize("task_id", [None, 7, ["id"]])
    def test_an_id_must_be_a_string(self, client: Client, name: str, task_id: object) -> None:
        assert error_of(client, name, 0, task_id).startswith("task id must be a string, not ")

    @pytest.mark.parametrize("name", [name for name in OF_THE_OWNER if name != "touch"])
    def test_he_may_only_once(self, client: Client, name: str) -> None:
        task = put(client)
        take(client)
        client.call(name, 0, task[0])
        expected = "Task not found" if name == "ack" else "Task is not taken"
        assert error_of(client, "ack", 0, task[0]) == expected


class TestAck:
    def test_the_task_is_deleted_and_answered_as_it_was(self, server: LegacyServer, client: Client) -> None:
        task = put(client, "data")
        take(client)
        assert client.call("ack", 0, task[0]) == [task[0], "tube", "taken", "data"]
        assert server.tasks() == []


class TestAckMany:
    def test_all_are_deleted(self, server: LegacyServer, client: Client) -> None:
        client.call("put_many", 0, "tube", 0, 0, 0, 0, ["a", "b"])
        tasks = client.call("take_many", 0, "tube", 2, 0)
        assert client.call("ack_many", 0, [task[0] for task in tasks]) == tasks
        assert server.tasks() == []

    def test_ids_may_come_one_after_the_other(self, client: Client) -> None:
        client.call("put_many", 0, "tube", 0, 0, 0, 0, ["a", "b"])
        tasks = client.call("take_many", 0, "tube", 2, 0)
        assert client.call("ack_many", 0, tasks[1][0], tasks[0][0]) == [tasks[1], tasks[0]]

    def test_none_is_deleted_when_one_is_somebody_elses(self, client: Client, other: Client) -> None:
        client.call("put_many", 0, "tube", 0, 0, 0, 0, ["mine", "theirs"])
        mine, theirs = take(client), take(other)
        assert mine is not None
        assert theirs is not None
        ids = [mine[0], theirs[0]]
        assert error_of(client, "ack_many", 0, ids) == "Only consumer that took the task can it ack"
        assert client.call("ack", 0, mine[0]) == mine
        assert other.call("ack", 0, theirs[0]) == theirs

    def test_an_id_that_comes_twice_is_refused(self, client: Client) -> None:
        task = put(client)
        take(client)
        assert error_of(client, "ack_many", 0, [task[0], task[0]]) == "Task not found"
        assert status(client, task) == "taken"

    def test_no_id_is_no_change(self, client: Client) -> None:
        assert client.call("ack_many", 0, []) == []


class TestRelease:
    def test_the_task_is_ready_at_its_old_place(self, client: Client) -> None:
        for data in "abc":
            put(client, data)
        task = take(client)
        assert task is not None
        assert client.call("release", 0, task[0]) == [task[0], "tube", "ready", "a"]
        assert meta(client, task)["cid"] == 0
        assert data_of(client) == ["a", "b", "c"]

    @pytest.mark.parametrize("delay", [0.5, "0.5"])
    def test_it_may_be_delayed(self, client: Client, clock: ManualClock, delay: object) -> None:
        task = put(client)
        take(client)
        assert client.call("release", 0, task[0], delay)[2] == "delayed"
        clock.advance(0.5)
        assert status(client, task) == "ready"

    def test_it_gets_a_new_time_to_live_from_now_on_and_the_delay(
        self, client: Client, clock: ManualClock
    ) -> None:
        task = put(client, ttl=10)
        take(client)
        clock.advance(4)
        client.call("release", 0, task[0], 1, "20")
        assert meta(client, task)["ttl"] == 4 + 20 + 1

    @pytest.mark.parametrize("ttl", [0, None, -5, "0"])
    def test_without_one_it_lives_no_longer(self, client: Client, clock: ManualClock, ttl: object) -> None:
        task = put(client, ttl=10)
        take(client)
        clock.advance(4)
        client.call("release", 0, task[0], 100, ttl)
        known = meta(client, task)
        assert known["ttl"] == 10
        assert known["event"] == known["created"] + 10_000_000

    def test_it_wakes_who_waits(self, client: Client, other: Client) -> None:
        task = put(client)
        take(client)
        waiting = other.call("take", 0, "tube", 60)
        client.call("release", 0, task[0])
        assert answered(waiting)[0] == task[0]

    @pytest.mark.parametrize("arguments", [("soon",), (0, "long")])
    def test_what_is_no_number_is_refused(self, client: Client, arguments: tuple[object, ...]) -> None:
        task = put(client)
        take(client)
        assert "must be a number of seconds" in error_of(client, "release", 0, task[0], *arguments)
        assert client.call("ack", 0, task[0])[2] == "taken"


class TestRequeue:
    def test_the_task_comes_after_all_that_are_ready(self, client: Client) -> None:
        put(client, "again", pri=127)
        for priority in (5, -127):
            put(client, str(priority), pri=priority)
        task = take(client)
        assert task is not None
        assert client.call("requeue", 0, task[0]) == [task[0], "tube", "ready", "again"]
        assert data_of(client) == ["5", "-127", "again"]

    def test_many_come_in_the_order_in_which_they_were_requeued(self, client: Client) -> None:
        put(client, "last in line", pri=-127)
        tasks = [put(client, number, pri=number % 3) for number in range(300)]
        client.call("take_many", 0, "tube", 300, 0)
        for task in tasks:
            client.call("requeue", 0, task[0])
        assert data_of(client) == ["last in line", *range(300)]

    def test_its_ipri_is_greater(self, client: Client) -> None:
        task = put(client)
        put(client)
        take(client)
        client.call("requeue", 0, task[0])
        assert meta(client, task)["ipri"] == "128"

    def test_alone_it_is_as_any_other(self, client: Client) -> None:
        task = client.call("urgent", 0, "tube")
        take(client)
        client.call("requeue", 0, task[0])
        assert meta(client, task)["ipri"] == "127"

    def test_it_wakes_who_waits(self, client: Client, other: Client) -> None:
        task = put(client)
        take(client)
        waiting = other.call("take", 0, "tube", 60)
        client.call("requeue", 0, task[0])
        assert answered(waiting)[0] == task[0]


class TestBury:
    def test_nobody_is_given_a_buried_task(self, client: Client) -> None:
        task = put(client, "data")
        take(client)
        assert client.call("bury", 0, task[0]) == [task[0], "tube", "buried", "data"]
        assert take(client) is None
        known = meta(client, task)
        assert (known["cbury"], known["cid"]) == (1, 0)

    def test_it_is_counted(self, client: Client) -> None:
        task = put(client)
        for _ in range(3):
            take(client)
            client.call("bury", 0, task[0])
            client.call("dig", 0, task[0])
        assert meta(client, task)["cbury"] == 3


class TestDone:
    def test_the_task_stays_with_other_data(self, client: Client) -> None:
        task = put(client, "data", "more")
        take(client)
        assert client.call("done", 0, task[0], "result", 1, 2) == [task[0], "tube", "done", "result", 1, 2]
        assert client.call("peek", 0, task[0]) == [task[0], "tube", "done", "result", 1, 2]
        assert take(client) is None

    def test_it_may_have_none(self, client: Client) -> None:
        task = put(client, "data")
        take(client)
        assert client.call("done", 0, task[0]) == [task[0], "tube", "done"]


class TestTouch:
    def test_the_time_to_run_begins_anew(self, client: Client, clock: ManualClock) -> None:
        task = put(client, ttr=1)
        take(client)
        clock.advance(0.75)
        assert client.call("touch", 0, task[0]) == [task[0], "tube", "taken"]
        clock.advance(0.75)
        assert status(client, task) == "taken"
        clock.advance(0.25)
        assert status(client, task) == "ready"

    def test_the_time_to_live_does_not(
        self, server: LegacyServer, client: Client, clock: ManualClock
    ) -> None:
        task = put(client, ttl=2, ttr=9)
        take(client)
        client.call("touch", 0, task[0])
        clock.advance(2)
        assert server.tasks() == []
