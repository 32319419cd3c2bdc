"""Bulk calls of the tutorial's queue: put_many, take_many and ack_many."""

from __future__ import annotations

import pytest

from iproto_server import BoxError, ManualClock
from tests.queue_lua_compat.conftest import Client, QueueServer, answered

NOW = 1_600_000_000_000_000_000


def error_of(client: Client, *call: object) -> str:
    """Return the text of the error of a failed call."""
    with pytest.raises(BoxError) as raised:
        client.call(*call)  # type: ignore[arg-type]  # a name and arguments
    return raised.value.message


class TestPutMany:
    def test_each_element_is_the_data_of_a_task(self, client: Client) -> None:
        tasks = client.call("put_many", ["a", {"b": 1}, None])
        assert [(task["id"], task["status"], task["data"]) for task in tasks] == [
            (NOW, "R", "a"),
            (NOW + 1, "R", {"b": 1}),
            (NOW + 2, "R", None),
        ]

    def test_they_are_all_delayed(self, client: Client, clock: ManualClock, server: QueueServer) -> None:
        client.call("put_many", ["a", "b"], {"delay": "1.5"})
        assert server.stats["waiting"] == 2
        clock.advance(1.5)
        assert server.stats["ready"] == 2

    def test_no_task_is_no_change(self, client: Client, server: QueueServer) -> None:
        assert client.call("put_many", []) == []
        assert server.stats["total"] == 0

    @pytest.mark.parametrize("tasks", [(), (None,), ("ab",), ({"a": 1},), (5,)])
    def test_tasks_must_be_a_list(self, client: Client, tasks: tuple[object, ...]) -> None:
        assert error_of(client, "put_many", *tasks) == "tasks must be a list"

    def test_all_are_put_or_none(self, client: Client, server: QueueServer) -> None:
        assert "unsupported" in error_of(client, "put_many", ["a", object()])
        assert server.stats["total"] == 0

    def test_they_wake_as_many_as_can_be_served(self, server: QueueServer, client: Client) -> None:
        waiting = [server.connect().call("take", 60) for _ in range(3)]
        client.call("put_many", ["a", "b"])
        assert [answered(call)["data"] for call in waiting[:2]] == ["a", "b"]
        assert not waiting[2].is_done


class TestTakeMany:
    def test_it_takes_up_to_so_many(self, client: Client) -> None:
        client.call("put_many", ["a", "b", "c"])
        assert [(task["status"], task["data"]) for task in client.call("take_many", 2, 60)] == [
            ("T", "a"),
            ("T", "b"),
        ]
        assert [task["data"] for task in client.call("take_many", "2", 60)] == ["c"]

    def test_without_time_to_wait_there_is_no_value(self, client: Client) -> None:
        assert client.call("take_many", 2) is None
        assert client.call("take_many", 2, 0) is None

    def test_it_waits_for_the_first_only(self, server: QueueServer, client: Client) -> None:
        waiting = server.connect().call("take_many", 3, 60)
        client.call("put", "a")
        assert [task["data"] for task in answered(waiting)] == ["a"]

    def test_woken_it_takes_what_was_put_together(self, server: QueueServer, client: Client) -> None:
        waiting = server.connect().call("take_many", 3, 60)
        client.call("put_many", list("abcd"))
        assert [task["data"] for task in answered(waiting)] == ["a", "b", "c"]
        assert server.stats["ready"] == 1

    def test_it_waits_so_long(self, client: Client, clock: ManualClock) -> None:
        waiting = client.call("take_many", 3, 5)
        clock.advance(5)
        assert answered(waiting) is None

    @pytest.mark.parametrize(
        ("n", "message"),
        [
            (0, "n must be at least 1, not 0"),
            (1.5, "n must be a whole number, not 1.5"),
            (None, "n must be a number, not nil"),
            ("many", 'n must be a number, not "many"'),
            (float("inf"), "n must be a whole number, not inf"),
        ],
    )
    def test_n_must_be_a_whole_number_from_1_on(self, client: Client, n: object, message: str) -> None:
        assert error_of(client, "take_many", n) == message


class TestAckMany:
    def test_all_are_removed(self, server: QueueServer, client: Client) -> None:
        client.call("put_many", ["a", "b"])
        tasks = client.call("take_many", 2)
        assert client.call("ack_many", [tasks[0]["id"], str(tasks[1]["id"])]) == tasks
        assert server.stats["total"] == 0

    def test_none_is_removed_when_one_is_somebody_elses(self, server: QueueServer, client: Client) -> None:
        client.call("put_many", ["mine", "theirs"])
        mine, other = client.call("take"), server.connect()
        theirs = other.call("take")
        assert "Not you" in error_of(client, "ack_many", [mine["id"], theirs["id"]])
        assert server.stats["taken"] == 2
        assert client.call("ack", mine["id"]) == mine
        assert other.call("ack", theirs["id"]) == theirs

    def test_an_id_that_comes_twice_is_refused(self, server: QueueServer, client: Client) -> None:
        client.call("put", "a")
        task = client.call("take")
        assert "was not found" in error_of(client, "ack_many", [task["id"], task["id"]])
        assert server.stats["taken"] == 1

    @pytest.mark.parametrize("ids", [(), (None,), (NOW,)])
    def test_ids_must_be_a_list(self, client: Client, ids: tuple[object, ...]) -> None:
        assert error_of(client, "ack_many", *ids) == "ids must be a list"
