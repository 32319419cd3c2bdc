"""The tutorial's queue: puts, takes, ids and waiting."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from iproto_server import ErrorCode, ManualClock, Waiter
from queue_lua_compat.lua_numbers import shown
from tests.queue_lua_compat.conftest import Client, QueueServer, answered
from tests.queue_lua_compat.tutorial.errors import NOW, error_of


class TestPut:
    def test_a_task_is_a_map_of_its_four_fields(self, client: Client) -> None:
        task = client.call("put", {"to": "somebody"})
        assert task == {"id": NOW, "status": "R", "runat": 0, "data": {"to": "somebody"}}

    def test_a_delayed_task_waits_until_its_time(self, client: Client) -> None:
        task = client.call("put", "later", {"delay": 1.5})
        assert (task["status"], task["runat"]) == ("W", NOW / 1e9 + 1.5)

    @pytest.mark.parametrize("delay", ["1.5", " 1.5 ", b"1.5", 1.5])
    def test_a_delay_may_be_text(self, client: Client, delay: object) -> None:
        assert client.call("put", "x", {"delay": delay})["runat"] == NOW / 1e9 + 1.5

    def test_a_delay_of_zero_still_waits(self, client: Client) -> None:
        assert client.call("put", "x", {"delay": 0})["status"] == "W"

    @pytest.mark.parametrize("options", [None, False, {}, {"delay": None}, {"delay": False}, "text", [1]])
    def test_without_a_delay_it_is_ready(self, client: Client, options: object) -> None:
        assert client.call("put", "x", options)["status"] == "R"

    @pytest.mark.parametrize(
        "options", [7, True, {"delay": "zz"}, {"delay": True}, {"delay": math.nan}, {"delay": [1]}]
    )
    def test_options_that_make_no_sense_are_refused(
        self, server: QueueServer, client: Client, options: object
    ) -> None:
        code, _ = error_of(client, "put", "x", options)
        assert code == ErrorCode.PROC_LUA
        assert server.stats["total"] == 0

    def test_without_data_the_format_says_what_is_missing(self, client: Client) -> None:
        assert error_of(client, "put") == (39, "Tuple field 4 required by space format is missing")

    def test_none_is_data(self, client: Client) -> None:
        assert client.call("put", None)["data"] is None

    def test_more_arguments_than_it_takes_are_ignored_as_in_lua(self, client: Client) -> None:
        assert client.call("put", "x", {}, "extra")["data"] == "x"


class TestIds:
    def test_an_id_is_the_clock_in_nanoseconds(self, clock: ManualClock, client: Client) -> None:
        first = client.call("put", 1)["id"]
        clock.advance(0.25)
        assert client.call("put", 2)["id"] == first + 250_000_000

    def test_ids_rise_while_the_clock_stands(self, client: Client) -> None:
        assert [client.call("put", n)["id"] for n in range(3)] == [NOW, NOW + 1, NOW + 2]

    def test_ids_rise_when_the_clock_steps_back(self, clock: ManualClock, client: Client) -> None:
        client.call("put", 1)
        clock.set_wall_clock(NOW - 10**12)
        assert client.call("put", 2)["id"] == NOW + 1

    def test_ids_rise_over_a_restart_with_a_clock_that_stepped_back(
        self, clock: ManualClock, server: QueueServer, client: Client
    ) -> None:
        client.call("put", 1)
        clock.set_wall_clock(NOW - 10**12)
        server.restart()
        assert server.connect().call("put", 2)["id"] == NOW + 1

    def test_an_id_somebody_inserted_directly_is_passed_over(
        self, server: QueueServer, client: Client
    ) -> None:
        server.direct(lambda space: space.insert([NOW, "R", 0, "theirs"]))
        assert client.call("put", "mine")["id"] == NOW + 1

    @pytest.mark.parametrize(
        "form", [int, str, float, lambda n: f" {n} ", lambda n: f"{n}ULL", hex, lambda n: str(n).encode()]
    )
    def test_an_id_may_come_in_many_forms(self, server: QueueServer, client: Client, form: object) -> None:
        exact_as_float = 2**60
        server.direct(lambda space: space.insert([exact_as_float, "R", 0, "x"]))
        client.call("take")
        assert client.call("ack", form(exact_as_float))["id"] == exact_as_float  # type: ignore[operator]

    def test_a_float_that_is_not_exact_is_another_id(self, server: QueueServer, client: Client) -> None:
        server.direct(lambda space: space.insert([2**60 + 1, "R", 0, "x"]))
        client.call("take")
        assert error_of(client, "ack", float(2**60)) == (32, "Task {1.1529215046068e+18} was not found")

    @pytest.mark.parametrize(
        ("task_id", "shown"),
        [
            *((None, "nil"), ("abc", '"abc"'), ("", '""'), ("1.5", '"1.5"'), ("1e3", '"1e3"')),
            *((True, "true"), ([5], "a list"), ({"a": 1}, "a map"), (Decimal(5), "the Decimal 5")),
            *((b"\xff", '"ÿ"'), ("x" * 50, '"' + "x" * 40 + '…"')),
        ],
    )
    def test_what_is_no_number_is_no_key(self, client: Client, task_id: object, shown: str) -> None:
        expected = (19, f"the id must be a number, or a whole one as a text, not {shown}")
        assert error_of(client, "ack", task_id) == expected
        assert error_of(client, "release", task_id) == expected


class TestTake:
    def test_the_oldest_ready_task_comes_first(self, client: Client) -> None:
        for data in "abc":
            client.call("put", data)
        assert [client.call("take")["data"] for _ in range(3)] == ["a", "b", "c"]

    def test_a_taken_task_says_so(self, client: Client) -> None:
        client.call("put", "x")
        assert client.call("take") == {"id": NOW, "status": "T", "runat": 0, "data": "x"}

    @pytest.mark.parametrize("timeout", [(), (0,), (-1,), (None,), ("0",)])
    def test_no_task_and_no_time_is_no_value(self, client: Client, timeout: tuple[object, ...]) -> None:
        assert client.call("take", *timeout) is None

    @pytest.mark.parametrize("timeout", ["abc", True, [], {}, math.nan])
    def test_a_timeout_that_is_no_number_is_refused(self, client: Client, timeout: object) -> None:
        assert error_of(client, "take", timeout)[0] == ErrorCode.PROC_LUA

    def test_nobody_gets_what_another_has(self, server: QueueServer, client: Client) -> None:
        client.call("put", "x")
        client.call("take")
        assert server.connect().call("take") is None


class TestWaiting:
    def test_a_waiting_take_wakes_at_once(self, server: QueueServer, client: Client) -> None:
        waiting = server.connect().call("take", 10)
        assert not waiting.is_done
        client.call("put", "x")
        assert answered(waiting)["data"] == "x"

    def test_a_take_that_waited_in_vain_answers_no_value(self, clock: ManualClock, client: Client) -> None:
        waiting = client.call("take", 10)
        clock.advance(9.999)
        assert not waiting.is_done
        clock.advance(0.001)
        assert answered(waiting) is None
        assert clock.pending == 0

    def test_first_come_first_served(self, server: QueueServer, client: Client) -> None:
        waiting = [server.connect().call("take", 10) for _ in range(3)]
        for data in "abc":
            client.call("put", data)
        assert [answered(waiter)["data"] for waiter in waiting] == ["a", "b", "c"]

    def test_a_waiter_that_timed_out_is_passed_over(
        self, clock: ManualClock, server: QueueServer, client: Client
    ) -> None:
        early, late = server.connect().call("take", 1), server.connect().call("take", 10)
        clock.advance(2)
        client.call("put", "x")
        assert answered(early) is None
        assert answered(late)["data"] == "x"

    def test_a_waiter_whose_connection_closed_takes_nothing(
        self, server: QueueServer, client: Client
    ) -> None:
        gone = server.connect()
        gone.call("take", 10)
        patient = server.connect().call("take", 10)
        gone.close()
        client.call("put", "x")
        assert answered(patient)["data"] == "x"
        assert server.stats["taken"] == 1

    def test_it_does_not_even_take_what_its_own_connection_gives_back(self, server: QueueServer) -> None:
        gone = server.connect()
        gone.call("put", "x")
        gone.call("take")
        gone.call("take", 10)
        gone.close()
        assert server.stats["ready"] == 1

    def test_one_connection_may_wait_many_times(self, server: QueueServer, client: Client) -> None:
        consumer = server.connect()
        waiting = [consumer.call("take", 10) for _ in range(3)]
        client.call("put", "a")
        assert [waiter.is_done for waiter in waiting] == [True, False, False]

    def test_nothing_remains_of_many_waits(
        self, clock: ManualClock, server: QueueServer, client: Client
    ) -> None:
        for _ in range(100):
            client.call("take", 1)
            clock.advance(1)
        assert len(client.session.on_close) == 0
        assert clock.pending == 0
        assert len(server.queue._waiting.waiters) <= 1

    @pytest.mark.parametrize("way", ["release", "disconnect", "delay", "insert", "update"])
    def test_whatever_makes_a_task_ready_wakes(
        self, clock: ManualClock, server: QueueServer, client: Client, way: str
    ) -> None:
        client.call("put", "x", {"delay": 3} if way == "delay" else None)
        if way != "delay":
            client.call("take")
        waiting = server.connect().call("take", 10)
        assert isinstance(waiting, Waiter)
        if way == "release":
            client.call("release", NOW)
        elif way == "disconnect":
            client.close()
        elif way == "delay":
            clock.advance(3)
        elif way == "insert":
            server.direct(lambda space: space.insert([5, "R", 0, "x"]))
        else:
            server.direct(lambda space: space.update(NOW, [("=", "status", "R")]))
        assert answered(waiting)["data"] == "x"


class TestAckAndRelease:
    def test_an_acknowledged_task_is_gone(self, server: QueueServer, client: Client) -> None:
        client.call("put", "x")
        taken = client.call("take")
        assert client.call("ack", taken["id"]) == taken
        assert server.stats["total"] == 0

    def test_a_released_task_is_ready_again(self, client: Client) -> None:
        client.call("put", "x")
        taken = client.call("take")
        assert client.call("release", taken["id"]) == {**taken, "status": "R"}
        assert client.call("take") == taken

    def test_a_released_task_keeps_its_place(self, client: Client) -> None:
        client.call("put", "a")
        client.call("put", "b")
        client.call("release", client.call("take")["id"])
        assert client.call("take")["data"] == "a"

    def test_a_task_released_with_a_delay_waits(self, clock: ManualClock, client: Client) -> None:
        client.call("put", "x")
        task = client.call("release", client.call("take")["id"], {"delay": 5})
        assert (task["status"], task["runat"]) == ("W", NOW / 1e9 + 5)
        clock.advance(5)
        assert client.call("take")["data"] == "x"

    def test_a_wrong_delay_leaves_the_task_with_its_owner(self, server: QueueServer, client: Client) -> None:
        client.call("put", "x")
        task = client.call("take")
        assert error_of(client, "release", task["id"], {"delay": "abc"})[0] == ErrorCode.PROC_LUA
        assert client.call("ack", task["id"])["data"] == "x"

    @pytest.mark.parametrize("procedure", ["ack", "release"])
    class TestErrors:
        def test_no_id(self, client: Client, procedure: str) -> None:
            assert error_of(client, procedure) == (32, "Task id required")

        def test_no_such_task(self, client: Client, procedure: str) -> None:
            assert error_of(client, procedure, 5) == (32, "Task {5} was not found")
            assert error_of(client, procedure, -5) == (32, "Task {-5} was not found")
            assert error_of(client, procedure, 1.5) == (32, "Task {1.5} was not found")

        def test_not_taken(self, client: Client, procedure: str) -> None:
            client.call("put", "x")
            assert error_of(client, procedure, NOW) == (32, f"Task {NOW}ULL not taken by anybody")

        def test_taken_by_another(self, server: QueueServer, client: Client, procedure: str) -> None:
            other = server.connect()
            client.call("put", "x")
            client.call("take")
            mine, theirs = client.session.id, other.session.id
            assert error_of(other, procedure, NOW) == (
                32,
                f"Task {NOW}ULL taken by {mine}. Not you ({theirs})",
            )

        def test_twice(self, client: Client, procedure: str) -> None:
            client.call("put", "x")
            client.call("take")
            client.call(procedure, NOW)
            assert error_of(client, procedure, NOW)[0] == ErrorCode.PROC_LUA

    def test_ids_in_errors_are_written_as_lua_writes_them(self) -> None:
        assert shown(5) == "5"
        assert shown(2**63) == "9223372036854775808ULL"
        assert shown(-(2**60)) == "-1152921504606846976LL"
        assert shown(1e300) == "1e+300"


def test_two_tasks_that_an_operator_takes_away_at_once_go_to_two_who_wait(
    server: QueueServer, client: Client
) -> None:
    """The next owner has the task from its take on, before the former owner is informed."""
    tasks = [client.call("put", data) for data in "ab"]
    for _ in tasks:
        client.call("take")
    others = [server.connect(), server.connect()]
    waiting = [other.call("take", 60) for other in others]
    server.direct(lambda space: [space.update(task["id"], [("=", 1, "R")]) for task in reversed(tasks)])
    for other, call, task in zip(others, waiting, tasks, strict=True):
        assert answered(call)["id"] == task["id"]
        assert other.call("ack", task["id"])["data"] == task["data"]
    assert server.stats["total"] == 0


AS_TEXT = {"id_as_text": True}


class TestIdsAsText:
    """For clients whose numbers are not exact above 2^53, as JavaScript's."""

    def test_put_take_release_and_ack(self, client: Client) -> None:
        put = client.call("put", "x", AS_TEXT)
        assert put == {**client.call("take"), "id": put["id"], "status": "R"}
        assert type(put["id"]) is str
        assert int(put["id"]) > 2**53
        client.call("release", put["id"])
        taken = client.call("take", 0, AS_TEXT)
        assert taken["id"] == put["id"]
        assert client.call("ack", taken["id"])["id"] == int(put["id"])

    def test_of_bulk_calls(self, server: QueueServer, client: Client) -> None:
        tasks = client.call("put_many", ["a", "b"], AS_TEXT)
        taken = client.call("take_many", 5, 0, AS_TEXT)
        assert [task["id"] for task in taken] == [task["id"] for task in tasks]
        client.call("ack_many", [task["id"] for task in taken])
        assert server.stats["total"] == 0

    def test_of_calls_that_have_waited(self, client: Client) -> None:
        one, many = client.call("take", 10, AS_TEXT), client.call("take_many", 5, 10, AS_TEXT)
        ids = [client.call("put", data, AS_TEXT)["id"] for data in "ab"]
        assert answered(one)["id"] == ids[0]
        assert [task["id"] for task in answered(many)] == [ids[1]]

    def test_of_the_task_that_a_unique_key_has(self, client: Client) -> None:
        options = {"unique_key": "k", "unique_for": 60, **AS_TEXT}
        put = client.call("put", "x", options)["id"]
        assert client.call("put", "x", options)["id"] == put
        client.call("take")
        client.call("ack", put)
        assert client.call("put", "x", options) == {"id": put, "status": "-", "runat": 0, "data": "x"}

    def test_is_known_to_a_strict_queue(self, server: QueueServer, client: Client) -> None:
        [queue] = server.queue.managed(server.box)
        server.box.run(client.session, queue.configure, {"strict_options": True})
        assert type(client.call("put", "x", AS_TEXT)["id"]) is str

    @pytest.mark.parametrize("options", [None, {}, {"id_as_text": False}, {"id_as_text": None}, [], "text"])
    def test_only_where_it_is_asked_for(self, client: Client, options: object) -> None:
        assert type(client.call("put", "x", options)["id"]) is int
        assert type(client.call("take", 0, options)["id"]) is int

    @pytest.mark.parametrize(("wanted", "shown"), [("yes", '"yes"'), (1, "1"), ([], "a list")])
    def test_is_true_or_false(self, server: QueueServer, client: Client, wanted: object, shown: str) -> None:
        text = f"id_as_text must be true or false, not {shown}"
        options = {"id_as_text": wanted}
        for call in (("put", "x", options), ("take", 0, options), ("take_many", 1, 0, options)):
            assert error_of(client, *call) == (32, text)
        assert server.stats["total"] == 0
