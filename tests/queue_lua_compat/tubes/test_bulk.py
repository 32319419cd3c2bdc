"""Bulk calls of tubes of every type: `put_many`, `take_many` and `ack_many`."""

from __future__ import annotations

from typing import Any

import pytest

from iproto_server import ManualClock, Tuple, Waiter
from queue_lua_compat.tubes.driver import Options
from queue_lua_compat.tubes.drivers.fifo import FifoDriver
from tests.queue_lua_compat.tubes.tubes_server import Client, TubesServer, answered

KINDS = ["fifo", "fifottl", "limfifottl", "utube", "utubettl", "last in, first out"]


class Stack(FifoDriver):
    """A driver of an application: the newest task comes first."""

    def take(self) -> Tuple | None:
        last = self.space.index["status"].max(["r"])
        return None if last is None else self._change(last[0], (("=", 1, "t"),), "take")


@pytest.fixture(params=KINDS)
def jobs(request: pytest.FixtureRequest, server: TubesServer, client: Client) -> str:
    """Create a tube of each type; return the prefix of its procedures. Each task has its own sub-queue."""
    server.queue.register_driver("last in, first out", Stack)
    client.call("queue.create_tube", "jobs", request.param)
    return "queue.tube.jobs:"


@pytest.fixture
def is_stack(jobs: str, server: TubesServer) -> bool:
    return isinstance(server.tube("jobs").raw, Stack)


@pytest.fixture
def looks_at_options(request: pytest.FixtureRequest, jobs: str) -> bool:
    """Whether the type of the tube reads options of a put; others take anything, as in the queue module."""
    return request.node.callspec.params["jobs"] not in ("fifo", "last in, first out")


def tasks(*data: object) -> list[list[object]]:
    """Create the argument of `put_many`, with a sub-queue for each task."""
    return [[each, {"utube": str(each)}] for each in data]


def plain(result: object) -> list[list[Any]]:
    """Return the tasks of an answer."""
    assert isinstance(result, list)
    return [list(task) for task in result]


class TestPutMany:
    def test_all_are_put_in_their_order(self, server: TubesServer, client: Client, jobs: str) -> None:
        assert plain(client.call(jobs + "put_many", tasks("a", "b", "c"))) == [
            [0, "r", "a"],
            [1, "r", "b"],
            [2, "r", "c"],
        ]
        assert server.states("jobs") == {"a": "r", "b": "r", "c": "r"}

    def test_options_may_be_left_out(self, client: Client, jobs: str) -> None:
        assert plain(client.call(jobs + "put_many", [["a"], [["b", "c"], None], [None, {}]])) == [
            [0, "r", "a"],
            [1, "r", ["b", "c"]],
            [2, "r", None],
        ]

    def test_options_are_those_of_a_put(self, server: TubesServer, client: Client) -> None:
        client.call("queue.create_tube", "timed", "utubettl")
        client.call("queue.tube.timed:put_many", [["a", {"delay": 5, "utube": "x"}], ["b", {"pri": 7}]])
        assert [[row[1], row[5], row[7]] for row in server.rows("timed")] == [["~", 0, "x"], ["r", 7, "nil"]]

    def test_none_is_an_empty_list(self, client: Client, jobs: str) -> None:
        assert client.call(jobs + "put_many", []) == []

    @pytest.mark.parametrize(
        ("given", "error"),
        [
            (None, "tasks must be a list"),
            ("text", "tasks must be a list"),
            ({"data": 1}, "tasks must be a list"),
            ([["a"], "b"], "task 2 must be [data] or [data, options]"),
            ([["a"], []], "task 2 must be [data] or [data, options]"),
            ([["a", {}, 1]], "task 1 must be [data] or [data, options]"),
            ([["a"], ["b"], {"data": 1}], "task 3 must be [data] or [data, options]"),
        ],
    )
    def test_when_one_is_wrong_none_is_put(
        self, server: TubesServer, client: Client, jobs: str, given: object, error: str
    ) -> None:
        assert client.refused(jobs + "put_many", given) == error
        assert server.rows("jobs") == []
        assert client.call("queue.statistics", "jobs")["calls"]["put"] == 0

    def test_when_options_are_no_table_none_is_put(
        self, server: TubesServer, client: Client, jobs: str, looks_at_options: bool
    ) -> None:
        if not looks_at_options:
            assert len(client.call(jobs + "put_many", [["a"], ["b", 7]])) == 2
            return
        error = client.refused(jobs + "put_many", [["a"], ["b", 7]])
        assert error == "task 2: attempt to index local 'opts' (a number value)"
        assert server.rows("jobs") == []

    def test_when_the_driver_refuses_one_none_is_put(self, server: TubesServer, client: Client) -> None:
        client.call("queue.create_tube", "timed", "fifottl")
        error = client.refused("queue.tube.timed:put_many", [["a"], ["b", {"ttl": "x"}]])
        assert error == 'task 2: ttl must be a number of seconds, not "x"'
        assert server.rows("timed") == []

    @pytest.mark.parametrize("options", [{}, {"timeout": 60}])
    def test_a_limited_tube_takes_all_or_none(
        self, server: TubesServer, client: Client, clock: ManualClock, options: Options
    ) -> None:
        client.call("queue.create_tube", "small", "limfifottl", {"capacity": 2})
        given = [[data, options] for data in "abc"]
        assert client.refused("queue.tube.small:put_many", given) == "task 3: there is no room for it"
        assert server.rows("small") == []
        clock.advance(0)
        assert clock.pending == 0, "nobody waits for room"
        assert len(client.call("queue.tube.small:put_many", given[:2])) == 2

    def test_those_who_wait_are_woken(self, server: TubesServer, client: Client, jobs: str) -> None:
        waiting = [server.connect().call(jobs + "take", 60) for _ in range(3)]
        client.call(jobs + "put_many", tasks("a", "b"))
        assert {answered(waiter)[2] for waiter in waiting[:2]} == {"a", "b"}
        assert not waiting[2].is_done


class TestTakeMany:
    def test_there_are_as_many_as_are_asked_for(self, client: Client, jobs: str, is_stack: bool) -> None:
        client.call(jobs + "put_many", tasks("a", "b", "c"))
        expected = [[0, "t", "a"], [1, "t", "b"], [2, "t", "c"]]
        if is_stack:
            expected.reverse()
        assert plain(client.call(jobs + "take_many", 2)) == expected[:2]
        assert plain(client.call(jobs + "take_many", 2)) == expected[2:]

    def test_it_does_not_wait_for_more(self, client: Client, jobs: str) -> None:
        client.call(jobs + "put_many", tasks("a"))
        assert len(plain(client.call(jobs + "take_many", 10, 60))) == 1

    @pytest.mark.parametrize("timeout", [0, -1, 0.0])
    def test_without_tasks_and_time_there_is_no_value(
        self, client: Client, jobs: str, timeout: object
    ) -> None:
        assert client.call(jobs + "take_many", 10, timeout) is None

    def test_it_waits_for_the_first(self, server: TubesServer, client: Client, jobs: str) -> None:
        waiting = server.connect().call(jobs + "take_many", 2, 60)
        assert isinstance(waiting, Waiter)
        client.call(jobs + "put_many", tasks("a", "b", "c"))
        assert len(plain(answered(waiting))) == 2
        assert [row[1] for row in server.rows("jobs")].count("t") == 2

    def test_without_a_timeout_it_waits_for_ever(
        self, server: TubesServer, client: Client, clock: ManualClock, jobs: str
    ) -> None:
        waiting = server.connect().call(jobs + "take_many", 2)
        clock.advance(365 * 86400)
        assert not waiting.is_done
        client.call(jobs + "put", "a")
        assert plain(answered(waiting)) == [[0, "t", "a"]]

    def test_in_vain_there_is_no_value(
        self, server: TubesServer, client: Client, clock: ManualClock, jobs: str
    ) -> None:
        waiting = client.call(jobs + "take_many", 2, 5)
        assert len(server.rows("_queue_consumers")) == 1
        clock.advance(5)
        assert answered(waiting) is None
        assert server.rows("_queue_consumers") == []

    def test_of_a_sub_queue_there_is_one(self, client: Client) -> None:
        client.call("queue.create_tube", "grouped", "utube")
        given = [[f"{name}{number}", {"utube": name}] for number in range(3) for name in "ab"]
        client.call("queue.tube.grouped:put_many", given)
        assert plain(client.call("queue.tube.grouped:take_many", 10)) == [[0, "t", "a0"], [1, "t", "b0"]]
        client.call("queue.tube.grouped:ack_many", [0, 1])
        assert plain(client.call("queue.tube.grouped:take_many", 10)) == [[2, "t", "a1"], [3, "t", "b1"]]

    @pytest.mark.parametrize("count", [None, 0, -1, 1.5, "2", True, [2], float("inf"), float("nan")])
    def test_a_count_is_a_whole_number(self, client: Client, jobs: str, count: object) -> None:
        client.call(jobs + "put", "a")
        error = client.refused(jobs + "take_many", count, 0)
        assert error == "the number of tasks must be a whole number above zero"

    def test_a_timeout_is_a_number(self, server: TubesServer, client: Client, jobs: str) -> None:
        client.call(jobs + "put", "a")
        assert client.refused(jobs + "take_many", 1, "x") == 'timeout must be a number of seconds, not "x"'
        assert server.states("jobs") == {"a": "r"}

    def test_who_leaves_gives_them_all_back(self, server: TubesServer, client: Client, jobs: str) -> None:
        client.call(jobs + "put_many", tasks("a", "b"))
        other = server.connect()
        other.call(jobs + "take_many", 2)
        other.close()
        assert server.states("jobs") == {"a": "r", "b": "r"}

    def test_one_who_waits_after_a_reload_gets_many(self, server: TubesServer, client: Client) -> None:
        client.call("queue.create_tube", "jobs", "utube")
        waiting = server.connect().call("queue.tube.jobs:take_many", 2, 60)
        server.reload()
        server.connect().call("queue.tube.jobs:put_many", tasks("a", "b", "c"))
        assert len(plain(answered(waiting))) == 2


class TestAckMany:
    @pytest.fixture(autouse=True)
    def taken(self, client: Client, jobs: str) -> None:
        """Take three tasks as the client."""
        client.call(jobs + "put_many", tasks("a", "b", "c"))
        client.call(jobs + "take_many", 3)

    def test_all_are_done(self, server: TubesServer, client: Client, jobs: str) -> None:
        assert plain(client.call(jobs + "ack_many", [2, 0])) == [[2, "-", "c"], [0, "-", "a"]]
        assert server.states("jobs") == {"b": "t"}
        assert client.call("queue.statistics", "jobs")["calls"]["ack"] == 2

    @pytest.mark.parametrize(
        ("ids", "error"),
        [
            (None, "ids must be a list"),
            (0, "ids must be a list"),
            ([0, 7], "task 7: Task was not taken"),
            ([0, 1, 0], "task 0: Task was not taken"),
            (
                [0, "1"],
                "task 1: Supplied key type of part 1 does not match index part type: expected unsigned",
            ),
        ],
    )
    def test_when_one_is_wrong_all_stay_taken(
        self, server: TubesServer, client: Client, jobs: str, ids: object, error: str
    ) -> None:
        assert client.refused(jobs + "ack_many", ids) == error
        assert server.states("jobs") == {"a": "t", "b": "t", "c": "t"}
        assert client.call("queue.statistics", "jobs")["calls"]["ack"] == 0
        assert len(client.call(jobs + "ack_many", [0, 1, 2])) == 3

    def test_only_who_has_taken_them_acknowledges(
        self, server: TubesServer, client: Client, jobs: str
    ) -> None:
        assert server.connect().refused(jobs + "ack_many", [0]) == "task 0: Task was not taken"

    def test_an_empty_list_is_one(self, client: Client, jobs: str) -> None:
        assert client.call(jobs + "ack_many", []) == []


class TestWithinAnApplication:
    def test_a_part_that_fails_changes_nothing(self, server: TubesServer, client: Client, jobs: str) -> None:
        """An application that catches the error continues its transaction."""
        tube = server.tube("jobs")

        def procedure() -> None:
            tube.put("mine")
            with pytest.raises(Exception, match="task 2"):
                tube.put_many([["a"], 7])
            with pytest.raises(Exception, match="task 2"):
                tube.put_many([["a"], ["b", {}, 7]])

        server.box.run(client.session, procedure)
        assert server.states("jobs") == {"mine": "r"}


def test_nothing_is_answered_while_the_instance_is_read_only(server: TubesServer, client: Client) -> None:
    client.call("queue.create_tube", "jobs", "fifo")
    server.box.set_read_only(True)
    assert client.call("queue.tube.jobs:put_many", [["a"]]) == (None,)
    assert client.call("queue.tube.jobs:take_many", 1, 0) is None
    assert client.call("queue.tube.jobs:ack_many", [0]) == (None,)
