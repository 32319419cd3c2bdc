"""Putting tasks: put, urgent, put_unique, put_many."""

from __future__ import annotations

import re

import pytest

from iproto_server import ManualClock
from tests.queue_lua_compat.conftest import Client, answered
from tests.queue_lua_compat.legacy.conftest import LegacyServer, data_of, error_of, meta, put, take

NOW = 1_600_000_000_000_000
DAY = 86_400


class TestPut:
    def test_a_task_is_answered_as_id_tube_status_and_data(self, client: Client) -> None:
        task = client.call("put", 0, "tube", 0, 10, 20, 30, "first", "second", 3)
        assert task == [task[0], "tube", "ready", "first", "second", 3]

    def test_an_id_has_32_hexadecimal_digits_and_is_the_tasks_own(self, client: Client) -> None:
        ids = {put(client)[0] for _ in range(10)}
        assert len(ids) == 10
        assert all(re.fullmatch("[0-9a-f]{32}", task_id) for task_id in ids)

    def test_a_task_need_not_have_data(self, client: Client) -> None:
        assert client.call("put", 0, "tube", 0, 0, 0, 0)[2:] == ["ready"]

    def test_what_is_not_given_is_the_default(self, client: Client) -> None:
        known = meta(client, client.call("put", 0, "tube"))
        assert (known["status"], known["ttl"], known["ttr"], known["pri"]) == ("ready", 25 * DAY, 60, "127")

    @pytest.mark.parametrize("given", [0, -1, "0", "-0.5", None])
    def test_times_that_are_not_above_zero_are_the_default(self, client: Client, given: object) -> None:
        known = meta(client, client.call("put", 0, "tube", given, given, given, 0))
        assert (known["status"], known["ttl"], known["ttr"]) == ("ready", 25 * DAY, 60)

    @pytest.mark.parametrize(("ttl", "ttr"), [(10, 20), ("10", "20"), (10.0, b"20"), ("0xa", " 20 ")])
    def test_numbers_may_be_text(self, client: Client, ttl: object, ttr: object) -> None:
        known = meta(client, client.call("put", "0", "tube", "0", ttl, ttr, "30"))
        assert (known["ttl"], known["ttr"], known["pri"]) == (10, 20, "157")

    def test_times_may_have_fractions(self, client: Client) -> None:
        task = client.call("put", 0, "tube", 0, 0.5, "0.25", 0)
        known = meta(client, task)
        assert (known["ttl"], known["ttr"]) == (0.5, 0.25)
        assert known["event"] == known["created"] + 500_000

    def test_a_delayed_task_lives_longer_by_its_delay(self, client: Client) -> None:
        task = client.call("put", 0, "tube", 1.5, 10, 0, 0)
        known = meta(client, task)
        assert (known["status"], known["ttl"]) == ("delayed", 11.5)
        assert known["event"] == NOW + 1_500_000

    @pytest.mark.parametrize("forever", [float("inf"), "inf", 1e300])
    def test_a_time_without_end_is_a_hundred_years(self, client: Client, forever: object) -> None:
        assert meta(client, put(client, ttl=forever))["ttl"] == 100 * 366 * DAY

    @pytest.mark.parametrize(("position", "name"), [(2, "delay"), (3, "ttl"), (4, "ttr"), (5, "pri")])
    @pytest.mark.parametrize("given", ["soon", "", True, [1], float("nan")])
    def test_what_is_no_number_is_refused(
        self, server: LegacyServer, client: Client, position: int, name: str, given: object
    ) -> None:
        arguments: list[object] = [0, "tube", 0, 0, 0, 0]
        arguments[position] = given
        assert error_of(client, "put", *arguments).startswith(f"{name} must be a number")
        assert "queue_0" not in server.box.space

    @pytest.mark.parametrize("tube", [None, 5, ["tube"], True])
    def test_a_tube_must_be_a_string(self, client: Client, tube: object) -> None:
        assert error_of(client, "put", 0, tube).startswith("tube must be a string, not ")

    def test_a_tube_may_come_as_bytes(self, client: Client) -> None:
        assert client.call("put", 0, b"tube")[1] == "tube"

    def test_the_rows_fields_are_the_originals(self, server: LegacyServer, client: Client) -> None:
        task = client.call("put", 0, "tube", 0, 10, 20, 30, "data")
        created, life = NOW, 10_000_000
        numbers = [created + life, 127, 98, 0, created, life, 20_000_000, 0, 0]
        assert server.tasks() == [[task[0], "tube", "r", *numbers, "data"]]


class TestOrder:
    def test_first_put_is_first_taken(self, client: Client) -> None:
        for data in "abc":
            put(client, data)
        assert data_of(client) == ["a", "b", "c"]

    def test_higher_priorities_come_first(self, client: Client) -> None:
        for priority in (0, -127, 127, 30, "-1"):
            put(client, str(priority), pri=priority)
        assert data_of(client) == ["127", "30", "0", "-1", "-127"]

    @pytest.mark.parametrize(
        ("given", "shown"), [(-127, "0"), (0, "127"), (127, "254"), (1000, "255"), (-1000, "0")]
    )
    def test_meta_has_priorities_from_0_to_255(self, client: Client, given: int, shown: str) -> None:
        assert meta(client, put(client, pri=given))["pri"] == shown

    def test_tubes_do_not_mix(self, client: Client) -> None:
        put(client, "here", tube="one")
        put(client, "there", tube="two")
        assert data_of(client, "two") == ["there"]

    def test_the_order_stays_while_the_clock_steps_back(self, client: Client, clock: ManualClock) -> None:
        put(client, "first")
        clock.set_wall_clock(clock.time_ns() - 10**12)
        put(client, "second")
        assert data_of(client) == ["first", "second"]

    def test_the_order_stays_over_a_restart_with_a_clock_that_stepped_back(
        self, server: LegacyServer, client: Client, clock: ManualClock
    ) -> None:
        for data, priority in (("first", 5), ("low", -5), ("low, too", -5)):
            put(client, data, pri=priority)
        clock.set_wall_clock(clock.time_ns() - 10**12)
        server.restart()
        client = server.connect()
        put(client, "second", pri=5)
        put(client, "lowest", pri=-5)
        assert data_of(client) == ["first", "second", "low", "low, too", "lowest"]


class TestUrgent:
    def test_it_comes_before_all_others_whatever_their_priority(self, client: Client) -> None:
        put(client, "high", pri=127)
        client.call("urgent", 0, "tube", 0, 0, 0, -127, "urgent")
        assert data_of(client) == ["urgent", "high"]

    def test_it_comes_before_those_that_are_put_later(self, client: Client) -> None:
        client.call("urgent", 0, "tube", 0, 0, 0, 0, "urgent")
        put(client, "high", pri=127)
        assert data_of(client) == ["urgent", "high"]

    def test_the_last_urgent_one_is_the_first(self, client: Client) -> None:
        for number in range(300):
            client.call("urgent", 0, "tube", "0", 0, 0, -number, number)
        assert data_of(client) == list(reversed(range(300)))

    def test_with_a_delay_it_is_put_as_any_other(self, client: Client, clock: ManualClock) -> None:
        client.call("urgent", 0, "tube", "0.5", 0, 0, 0, "urgent")
        put(client, "high", pri=1)
        clock.advance(0.5)
        assert data_of(client) == ["high", "urgent"]

    def test_its_ipri_is_smaller(self, client: Client) -> None:
        usual = put(client)
        urgent = client.call("urgent", 0, "tube")
        assert (meta(client, usual)["ipri"], meta(client, urgent)["ipri"]) == ("127", "126")


class TestPutUnique:
    def test_a_task_with_the_same_data_is_answered_instead(
        self, server: LegacyServer, client: Client
    ) -> None:
        first = client.call("put_unique", 0, "tube", 0, 0, 0, 0, "data", 1)
        assert client.call("put_unique", 0, "tube", 0, 0, 0, 0, "data", 2) == first
        assert len(server.tasks()) == 1

    def test_other_data_other_tubes_and_other_spaces_are_others(self, client: Client) -> None:
        places = [(0, "tube", "data"), (0, "tube", "other"), (0, "other", "data"), (1, "tube", "data")]
        ids = {client.call("put_unique", space, tube, 0, 0, 0, 0, data)[0] for space, tube, data in places}
        assert len(ids) == 4

    def test_a_taken_task_is_another(self, client: Client) -> None:
        first = client.call("put_unique", 0, "tube", 0, 0, 0, 0, "data")
        take(client)
        assert client.call("put_unique", 0, "tube", 0, 0, 0, 0, "data")[0] != first[0]

    def test_a_delayed_one_is_compared_with_delayed_ones(self, client: Client) -> None:
        ready = client.call("put_unique", 0, "tube", 0, 0, 0, 0, "data")
        delayed = client.call("put_unique", 0, "tube", 5, 0, 0, 0, "data")
        assert delayed[0] != ready[0]
        assert client.call("put_unique", 0, "tube", 7, 0, 0, 0, "data") == delayed

    def test_tasks_that_were_there_before_are_seen(self, client: Client) -> None:
        task = put(client, "data")
        put(client)
        assert client.call("put_unique", 0, "tube", 0, 0, 0, 0, "data") == task

    @pytest.mark.parametrize("data", [(), (None,), (None, "more")])
    def test_it_needs_data(self, client: Client, data: tuple[object, ...]) -> None:
        expected = "Can not put unique task without data"
        assert error_of(client, "put_unique", 0, "tube", 0, 0, 0, 0, *data) == expected

    def test_data_that_is_no_scalar_cannot_be_compared(self, client: Client) -> None:
        assert "does not match" in error_of(client, "put_unique", 0, "tube", 0, 0, 0, 0, {"a": 1})


class TestPutMany:
    def test_each_element_is_the_data_of_a_task(self, client: Client) -> None:
        tasks = client.call("put_many", 0, "tube", 0, 10, 20, 30, ["one", ["two", 2], []])
        assert [task[1:] for task in tasks] == [
            ["tube", "ready", "one"],
            ["tube", "ready", "two", 2],
            ["tube", "ready"],
        ]
        assert {meta(client, task)["pri"] for task in tasks} == {"157"}

    def test_tasks_may_come_one_after_the_other(self, client: Client) -> None:
        tasks = client.call("put_many", 0, "tube", 0, 0, 0, 0, "one", "two")
        assert [task[3] for task in tasks] == ["one", "two"]

    def test_they_come_in_their_order(self, client: Client) -> None:
        client.call("put_many", 0, "tube", 0, 0, 0, 0, list(range(100)))
        assert data_of(client) == list(range(100))

    def test_no_task_is_no_change(self, server: LegacyServer, client: Client) -> None:
        assert client.call("put_many", 0, "tube", 0, 0, 0, 0, []) == []
        assert server.tasks() == []

    def test_all_are_put_or_none(self, server: LegacyServer, client: Client) -> None:
        client.call("put_unique", 0, "tube", 0, 0, 0, 0, "unique")
        error_of(client, "put_many", 0, "tube", 0, 0, 0, 0, ["one", [{"no": "scalar"}]])
        assert [row[12] for row in server.tasks()] == ["unique"]

    def test_they_wake_as_many_as_can_be_served(self, server: LegacyServer, client: Client) -> None:
        waiting = [server.connect().call("take", 0, "tube", 60) for _ in range(3)]
        client.call("put_many", 0, "tube", 0, 0, 0, 0, ["a", "b"])
        assert [answered(call)[3] for call in waiting[:2]] == ["a", "b"]
        assert not waiting[2].is_done
