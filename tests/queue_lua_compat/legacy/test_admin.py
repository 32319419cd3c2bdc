"""Administration of tubes: dig, kick, delete, truncate, meta, peek, statistics."""

from __future__ import annotations

import pytest

from iproto_server import ManualClock
from iproto_server.codec.number64 import Float64, Number64
from tests.queue_lua_compat.conftest import Client, answered
from tests.queue_lua_compat.legacy.conftest import (
    META,
    LegacyServer,
    data_of,
    error_of,
    meta,
    put,
    status,
    take,
)

NOW = 1_600_000_000_000_000


def bury(client: Client, *data: object) -> list[object]:
    """Put a task, take it and bury it."""
    put(client, *data)
    task = take(client)
    assert task is not None
    buried: list[object] = client.call("bury", 0, task[0])
    return buried


@pytest.mark.parametrize("name", ["dig", "unbury"])
class TestDig:
    def test_the_task_is_ready_again(self, client: Client, other: Client, name: str) -> None:
        task = bury(client, "data")
        assert other.call(name, 0, task[0]) == [task[0], "tube", "ready", "data"]
        assert data_of(other) == ["data"]

    def test_only_a_buried_one_can_be_dug_up(self, client: Client, name: str) -> None:
        assert error_of(client, name, 0, put(client)[0]) == "Task is not buried"

    def test_there_must_be_such_a_task(self, client: Client, name: str) -> None:
        assert error_of(client, name, 0, "0" * 32) == "Task not found"

    def test_it_wakes_who_waits(self, client: Client, other: Client, name: str) -> None:
        task = bury(client)
        waiting = other.call("take", 0, "tube", 60)
        client.call(name, 0, task[0])
        assert answered(waiting)[0] == task[0]


class TestKick:
    def test_it_digs_up_one_task(self, client: Client) -> None:
        first, second = bury(client, "a"), bury(client, "b")
        assert client.call("kick", 0, "tube") == 1
        assert (status(client, first), status(client, second)) == ("ready", "buried")

    @pytest.mark.parametrize(("count", "kicked"), [(2, 2), ("2", 2), (9, 3), (10**30, 3), (0, 0), (-1, 0)])
    def test_it_digs_up_so_many(self, client: Client, count: object, kicked: int) -> None:
        for data in "abc":
            bury(client, data)
        assert client.call("kick", 0, "tube", count) == kicked
        assert data_of(client) == list("abc")[:kicked]

    @pytest.mark.parametrize("count", ["all", 1.5, True, [1]])
    def test_the_count_must_be_a_whole_number(self, client: Client, count: object) -> None:
        assert error_of(client, "kick", 0, "tube", count).startswith("count must be a ")

    def test_it_wakes_who_waits(self, server: LegacyServer, client: Client) -> None:
        bury(client, "a")
        bury(client, "b")
        waiting = [server.connect().call("take", 0, "tube", 60) for _ in range(2)]
        client.call("kick", 0, "tube", 5)
        assert [answered(call)[3] for call in waiting] == ["a", "b"]


class TestDelete:
    def test_the_task_is_answered_as_it_was(self, server: LegacyServer, client: Client) -> None:
        task = put(client, "data")
        assert client.call("delete", 0, task[0]) == task
        assert server.tasks() == []

    def test_a_taken_task_can_be_deleted_by_anybody(self, client: Client, other: Client) -> None:
        task = put(client)
        take(client)
        assert other.call("delete", 0, task[0])[2] == "taken"
        assert error_of(client, "ack", 0, task[0]) == "Task not found"

    def test_there_must_be_such_a_task(self, client: Client) -> None:
        assert error_of(client, "delete", 0, "0" * 32) == "Task not found"


class TestTruncate:
    def test_all_tasks_of_the_tube_are_deleted(self, server: LegacyServer, client: Client) -> None:
        bury(client)
        put(client)
        take(client)
        put(client)
        put(client, delay=5)
        put(client, "elsewhere", tube="other")
        assert client.call("truncate", 0, "tube") == 4
        assert [row[12] for row in server.tasks()] == ["elsewhere"]
        assert client.call("truncate", 0, "tube") == 0


class TestSlices:
    """Calls for many tasks let other clients in between."""

    MANY = 1000

    def put_many(self, client: Client, count: int = MANY) -> None:
        client.call("put_many", 0, "tube", 0, 0, 0, 0, list(range(count)))

    def test_truncate_is_answered_when_all_are_gone(self, server: LegacyServer, client: Client) -> None:
        self.put_many(client)
        waiter = client.call("truncate", 0, "tube")
        assert not waiter.is_done
        assert 0 < len(server.tasks()) < self.MANY
        server.clock.advance(0)
        assert answered(waiter) == self.MANY
        assert server.tasks() == []

    def test_tasks_put_meanwhile_stay(self, server: LegacyServer, client: Client, other: Client) -> None:
        self.put_many(client)
        waiter = client.call("truncate", 0, "tube")
        put(other, "new")
        urgent = other.call("urgent", 0, "tube", 0, 0, 0, 0, "urgent")
        server.clock.advance(0)
        assert answered(waiter) == self.MANY
        assert data_of(client) == ["urgent", "new"]
        assert urgent is not None

    def test_tasks_that_change_their_status_meanwhile_are_deleted(
        self, server: LegacyServer, client: Client, other: Client
    ) -> None:
        self.put_many(client)
        taken = [take(other) for _ in range(50)]
        waiter = client.call("truncate", 0, "tube")
        for task in taken:
            assert task is not None
            other.call("release", 0, task[0])
        server.clock.advance(0)
        assert answered(waiter) == self.MANY
        assert server.tasks() == []

    def test_a_crash_in_the_middle_leaves_the_rest(self, server: LegacyServer, client: Client) -> None:
        self.put_many(client)
        client.call("truncate", 0, "tube")
        left = len(server.tasks())
        server.restart()
        assert 0 < left < self.MANY
        assert len(server.tasks()) == left
        again = server.connect()
        waiter = again.call("truncate", 0, "tube")
        server.clock.advance(0)
        assert answered(waiter) == left

    def test_kick_and_take_many(self, server: LegacyServer, client: Client) -> None:
        self.put_many(client)
        waiter = client.call("take_many", 0, "tube", self.MANY, 0)
        server.clock.advance(0)
        for task in answered(waiter):
            client.call("bury", 0, task[0])
        waiter = client.call("kick", 0, "tube", self.MANY - 1)
        assert not waiter.is_done
        server.clock.advance(0)
        assert answered(waiter) == self.MANY - 1
        assert client.call("kick", 0, "tube", 10) == 1

    def test_a_bulk_take_ends_with_its_connection(self, server: LegacyServer, client: Client) -> None:
        self.put_many(client)
        client.call("take_many", 0, "tube", self.MANY, 0)
        client.close()
        server.clock.advance(0)
        assert {row[2] for row in server.tasks()} == {"r"}


class TestMeta:
    def test_it_has_thirteen_fields(self, client: Client, clock: ManualClock) -> None:
        task = client.call("put", 0, "tube", 0, 10, 20, 30, "data")
        take(client)
        clock.advance(2)
        assert client.call("meta", 0, task[0]) == [
            *(task[0], "tube", "taken", NOW + 10_000_000, "127", "157", client.session.id),
            *(NOW, 10, 20, 0, 1, NOW + 2_000_000),
        ]

    def test_moments_times_and_counts_are_64_bits_long_in_the_protocol_of_1_5(self, client: Client) -> None:
        answer = dict(zip(META, client.call("meta", 0, put(client, ttl=1.5)[0]), strict=True))
        assert type(answer.pop("ttl")) is Float64
        wide = {name for name, value in answer.items() if type(value) is Number64}
        assert wide == {"event", "created", "ttr", "cbury", "ctaken", "now"}

    def test_there_must_be_such_a_task(self, client: Client) -> None:
        assert error_of(client, "meta", 0, "0" * 32) == "Task not found"


class TestPeek:
    def test_it_answers_a_task_of_any_status(self, client: Client) -> None:
        for task in (put(client, "a"), put(client, "b", delay=5), bury(client, "c")):
            assert client.call("peek", 0, task[0])[:2] == [task[0], "tube"]

    def test_there_must_be_such_a_task(self, client: Client) -> None:
        assert error_of(client, "peek", 0, "0" * 32) == "Task not found"


def statistics(client: Client, *arguments: object) -> dict[str, str]:
    """Return the statistics as a dict."""
    rows = client.call("statistics", *arguments)
    return dict(zip(rows[::2], rows[1::2], strict=True))


class TestStatistics:
    def test_there_are_none_before_something_was_done(self, client: Client) -> None:
        assert client.call("statistics") == []

    def test_names_and_values_take_turns(self, client: Client) -> None:
        put(client)
        assert client.call("statistics") == [
            *("space0.tube.put", "1", "space0.tube.tasks.total", "1", "space0.tube.tasks.ready", "1"),
            *("space0.tube.tasks.delayed", "0", "space0.tube.tasks.taken", "0"),
            *("space0.tube.tasks.buried", "0", "space0.tube.tasks.done", "0"),
        ]

    def test_statistic_is_the_same(self, client: Client) -> None:
        put(client)
        assert client.call("statistic") == client.call("statistics")

    def test_each_function_has_its_counter(self, client: Client) -> None:
        client.call("put_many", 0, "tube", 0, 0, 0, 0, [1, 2, 3])
        client.call("put_unique", 0, "tube", 0, 0, 0, 0, "data")
        client.call("urgent", 0, "tube")
        for name in ("touch", "release", "requeue", "bury", "meta", "peek"):
            task = take(client)
            assert task is not None
            client.call(name, 0, task[0])
        client.call("kick", 0, "tube")
        task = take(client)
        assert task is not None
        client.call("delete", 0, task[0])
        found = client.call("take_many", 0, "tube", 5, 0)
        assert found
        client.call("done", 0, found[0][0])
        take(client)
        counted = statistics(client)
        assert {name.removeprefix("space0.tube."): int(value) for name, value in counted.items()} == {
            **{"put": 4, "urgent": 1, "take": 8, "take_timeout": 1, "touch": 1, "release": 1, "requeue": 1},
            **{"bury": 1, "meta": 1, "peek": 1, "dig": 1, "delete": 1, "done": 1},
            **{"tasks.total": 4, "tasks.ready": 0, "tasks.delayed": 0, "tasks.taken": 3},
            **{"tasks.buried": 0, "tasks.done": 1},
        }

    def test_a_call_that_has_waited_in_vain_is_counted(self, client: Client, clock: ManualClock) -> None:
        client.call("take", 0, "tube", 5)
        clock.advance(5)
        assert statistics(client)["space0.tube.take_timeout"] == "1"

    def test_what_was_undone_is_not_counted(self, client: Client) -> None:
        error_of(client, "ack_many", 0, [put(client)[0]])
        assert "space0.tube.ack" not in statistics(client)

    def test_those_of_a_space_or_a_tube_can_be_asked_for(self, client: Client) -> None:
        put(client, tube="one")
        put(client, tube="two")
        client.call("put", 7, "one", 0, 0, 0, 0)
        client.call("put", "jobs", "one", 0, 0, 0, 0)
        number = client.box.space["jobs"].id

        def tubes(*arguments: object) -> set[str]:
            return {name.rsplit(".", 1)[0] for name in statistics(client, *arguments) if "tasks" not in name}

        assert tubes() == {"space0.one", "space0.two", "space7.one", f"space{number}.one"}
        assert tubes("0") == {"space0.one", "space0.two"}
        assert tubes(0, "two") == {"space0.two"}
        assert tubes(None, "one") == {"space0.one", "space7.one", f"space{number}.one"}
        assert tubes("jobs") == {f"space{number}.one"}
        assert tubes(99) == tubes("nowhere") == set()

    def test_graphite_gets_them_as_numbers(self, server: LegacyServer, client: Client) -> None:
        put(client)
        [source] = server.application.metric_sources
        assert source(server.box)["space0.tube.tasks.ready"] == 1
        assert {name: str(value) for name, value in source(server.box).items()} == statistics(client)


def test_a_dug_up_task_keeps_its_place(client: Client) -> None:
    task = bury(client, "a")
    put(client, "b")
    client.call("dig", 0, task[0])
    assert data_of(client) == ["a", "b"]
    assert meta(client, task)["cbury"] == 1
