"""Events of tasks: the ends of delays, times to run and times to live."""

from __future__ import annotations

import pytest

from iproto_server import ManualClock, Tuple
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


def test_a_delayed_task_is_ready_at_its_time(client: Client, clock: ManualClock) -> None:
    task = put(client, delay=1.5)
    assert take(client) is None
    clock.advance(1.25)
    assert status(client, task) == "delayed"
    clock.advance(0.25)
    assert status(client, task) == "ready"


def test_a_delayed_task_wakes_who_waits_for_it(client: Client, clock: ManualClock) -> None:
    put(client, "data", delay=1.5)
    waiting = client.call("take", 0, "tube", 60)
    clock.advance(1.5)
    assert answered(waiting)[3] == "data"


def test_delayed_tasks_come_in_their_order_not_in_that_of_their_moments(
    client: Client, clock: ManualClock
) -> None:
    for data, delay in (("a", 3), ("b", 1), ("c", 2)):
        put(client, data, delay=delay)
    clock.advance(3)
    assert data_of(client) == ["a", "b", "c"]


def test_a_task_that_was_not_finished_in_time_is_ready_again(
    client: Client, other: Client, clock: ManualClock
) -> None:
    task = put(client, ttr=0.5)
    take(client)
    clock.advance(0.5)
    known = meta(client, task)
    assert (known["status"], known["cid"], known["ctaken"]) == ("ready", 0, 1)
    assert error_of(client, "ack", 0, task[0]) == "Task is not taken"
    take(other)
    assert error_of(client, "ack", 0, task[0]) == "Only consumer that took the task can it ack"
    assert other.call("ack", 0, task[0])[0] == task[0]


def test_the_time_to_run_begins_when_the_task_is_taken(client: Client, clock: ManualClock) -> None:
    task = put(client, ttr=5)
    clock.advance(60)
    take(client)
    clock.advance(4)
    assert status(client, task) == "taken"
    clock.advance(1)
    assert status(client, task) == "ready"


def test_two_who_wait_get_two_tasks_whose_time_to_run_is_over(
    server: LegacyServer, client: Client, clock: ManualClock
) -> None:
    tasks = [put(client, data, ttr=1, pri=priority) for data, priority in (("low", 0), ("high", 5))]
    client.call("take_many", 0, "tube", 2, 0)
    others = [server.connect(), server.connect()]
    waiting = [other.call("take", 0, "tube", 60) for other in others]
    clock.advance(1)
    for other, call, task in zip(others, waiting, reversed(tasks), strict=True):
        assert answered(call)[0] == task[0]
        assert other.call("ack", 0, task[0])[0] == task[0]


@pytest.mark.parametrize("what", ["ready", "delayed", "taken", "buried", "done"])
def test_a_task_of_any_status_is_deleted_when_its_time_to_live_is_over(
    server: LegacyServer, client: Client, clock: ManualClock, what: str
) -> None:
    task = put(client, ttl=2)
    if what != "ready":
        take(client)
    if what in ("buried", "done"):
        client.call({"buried": "bury", "done": "done"}[what], 0, task[0])
    if what == "delayed":
        client.call("release", 0, task[0], 10)
    assert status(client, task) == what
    clock.advance(1.75)
    assert len(server.tasks()) == 1
    clock.advance(0.25)
    assert server.tasks() == []
    counted = client.call("statistics", 0, "tube")
    assert counted[counted.index("space0.tube.ttl.total") + 1] == "1"
    assert counted[counted.index(f"space0.tube.ttl.{what}") + 1] == "1"


def test_who_has_a_task_whose_time_to_live_is_over_has_it_no_more(client: Client, clock: ManualClock) -> None:
    task = put(client, ttl=2)
    take(client)
    clock.advance(2)
    assert error_of(client, "ack", 0, task[0]) == "Task not found"
    client.close()


def test_there_is_one_timer_for_all_tasks_of_a_space(client: Client, clock: ManualClock) -> None:
    for number in range(50):
        put(client, number, tube=f"tube {number}", delay=1 + number, ttl=100 + number)
    assert clock.pending == 1


def test_many_tasks_that_are_due_at_once_are_all_dealt_with(
    server: LegacyServer, client: Client, clock: ManualClock
) -> None:
    client.call("put_many", 0, "tube", 1, 0, 0, 0, list(range(1500)))
    clock.advance(1)
    assert {row[2] for row in server.tasks()} == {"r"}


def test_a_clock_that_steps_forward_is_noticed_within_a_minute(client: Client, clock: ManualClock) -> None:
    task = put(client, delay=3600)
    clock.set_wall_clock(clock.time_ns() + 3600 * 10**9)
    clock.advance(60)
    assert status(client, task) == "ready"


def test_a_moment_that_a_client_has_set_itself_counts(
    server: LegacyServer, client: Client, clock: ManualClock
) -> None:
    task = put(client, delay=3600)
    soon = clock.time_ns() // 1000 + 1_000_000
    server.box.run(
        server.box.session.background,
        server.box.space["queue_0"].update,
        task[0],
        [("=", "next_event", soon)],
    )
    clock.advance(1)
    assert status(client, task) == "ready"


def test_an_event_of_a_ready_task_before_its_end_is_put_right(
    server: LegacyServer, client: Client, clock: ManualClock
) -> None:
    task = put(client, ttl=10)
    server.box.run(
        server.box.session.background, server.box.space["queue_0"].update, task[0], [("=", "next_event", 1)]
    )
    known = meta(client, task)
    assert known["event"] == known["created"] + 10_000_000


class TestFaults:
    """Another application's trigger, or a read-only instance, prevents due events."""

    def test_it_is_tried_again(self, server: LegacyServer, client: Client, clock: ManualClock) -> None:
        task = put(client, delay=5)
        server.box.cfg(read_only=True)
        clock.advance(10)
        assert status(client, task) == "delayed"
        server.box.cfg(read_only=False)
        clock.advance(1)
        assert status(client, task) == "ready"

    def test_the_tasks_of_a_closed_connection_are_released_as_soon_as_that_works(
        self, server: LegacyServer, client: Client, other: Client, clock: ManualClock
    ) -> None:
        task = put(client)
        take(client)
        is_failing = True

        def fail(old: Tuple | None, new: Tuple | None) -> None:
            if is_failing:
                raise ZeroDivisionError

        server.box.space["queue_0"].on_replace(fail)
        client.close()
        assert status(other, task) == "taken"
        is_failing = False
        clock.advance(1)
        assert status(other, task) == "ready"
