"""Calls of clients for tasks and their answers, on our server and on Tarantool with the module."""

from __future__ import annotations

import pytest

from tests.queue_lua_compat.tubes.conversations.keys import TYPES
from tests.queue_lua_compat.tubes.talk import Talk
from tests.queue_lua_compat.tubes.world import World

NO_KEY = (19, "Invalid key part count in an exact match (expected 1, got 0)")
NO_TAKEN_KEY = (19, "Invalid key part count in an exact match (expected 2, got 1)")
NIL_KEY = (18, "Supplied key type of part 0 does not match index part type: expected unsigned")
NIL_TAKEN_KEY = (18, "Supplied key type of part 1 does not match index part type: expected unsigned")


@pytest.fixture(params=TYPES)
def talk(request: pytest.FixtureRequest, world: World) -> Talk:
    """Create a tube of each type."""
    return Talk(world, world.create(request.param))


@pytest.fixture
def fifo(world: World) -> Talk:
    return Talk(world, world.create("fifo"))


@pytest.fixture
def fifottl(world: World) -> Talk:
    return Talk(world, world.create("fifottl"))


class TestPut:
    @pytest.mark.parametrize("data", ["text", "", -1, 1.5, [1, [2]], {"k": {"v": [None]}}, None, 2**63])
    def test_a_task_is_its_id_its_state_and_its_data(self, talk: Talk, data: object) -> None:
        assert talk("ann", "put", data) == [[0, "r", data]]
        assert talk("ann", "put", data) == [[1, "r", data]]

    @pytest.mark.parametrize("options", [{}, [], False, "text", {"unknown": 1}])
    def test_options_may_be_missing_or_unknown(self, talk: Talk, options: object) -> None:
        assert talk("ann", "put", "x", options) == [[0, "r", "x"]]

    def test_more_arguments_than_it_takes_are_ignored(self, talk: Talk) -> None:
        assert talk("ann", "put", "x", {}, "extra") == [[0, "r", "x"]]

    def test_without_data_the_format_says_what_is_missing(self, world: World) -> None:
        fifo, timed = Talk(world, world.create("fifo")), Talk(world, world.create("fifottl"))
        assert fifo("ann", "put") == (39, "Tuple field 3 required by space format is missing")
        assert timed("ann", "put") == (39, "Tuple field 8 required by space format is missing")

    def test_an_id_is_one_more_than_the_greatest_there_is(self, talk: Talk) -> None:
        for data in "abc":
            talk("ann", "put", data)
        talk("ann", "delete", 1)
        assert talk("ann", "put", "d") == [[3, "r", "d"]]
        talk("ann", "delete", 3)
        talk("ann", "delete", 2)
        assert talk("ann", "put", "e") == [[1, "r", "e"]]

    @pytest.mark.parametrize(
        ("name", "value", "shown", "theirs"),
        [
            ("ttl", "x", '"x"', "attempt to compare string with number"),
            ("ttl", True, "true", "attempt to compare boolean with number"),
            ("ttl", [1], "a list", "attempt to compare table with number"),
            ("ttr", "x", '"x"', "attempt to compare string with number"),
            ("delay", "x", '"x"', "attempt to compare number with string"),
            ("delay", True, "true", "attempt to compare number with boolean"),
        ],
    )
    def test_times_are_numbers(
        self, fifottl: Talk, name: str, value: object, shown: str, theirs: str
    ) -> None:
        error = fifottl.world.error(32, f"{name} must be a number of seconds, not {shown}", theirs)
        assert fifottl("ann", "put", "x", {name: value}) == error

    @pytest.mark.parametrize(("options", "kind"), [(7, "number"), (True, "boolean")])
    def test_options_are_a_map(self, fifottl: Talk, options: object, kind: str) -> None:
        error = (32, f"attempt to index local 'opts' (a {kind} value)")
        assert fifottl("ann", "put", "x", options) == error

    @pytest.mark.parametrize("options", [7, True])
    def test_where_no_options_are_read_they_may_be_anything(
        self, world: World, fifo: Talk, options: object
    ) -> None:
        assert fifo("ann", "put", "x", options) == [[0, "r", "x"]]
        for talk in (fifo, Talk(world, world.create("utube"))):
            talk("ann", "put", "y")
            talk("ann", "take")
            assert talk("ann", "release", 0, options)[0][:2] == [0, "r"]

    @pytest.mark.parametrize(
        ("pri", "shown"), [("x", '"x"'), (-1, "-1"), (1.5, "1.5"), ([1], "a list"), (1e300, "1e+300")]
    )
    def test_a_priority_is_an_unsigned_number(self, fifottl: Talk, pri: object, shown: str) -> None:
        error = fifottl.world.error(
            23,
            f"pri must be a whole number from 0 to 18446744073709551615, not {shown}",
            "Tuple field 6 type does not match one required by operation: expected unsigned",
        )
        assert fifottl("ann", "put", "x", {"pri": pri}) == error

    def test_times_are_checked_before_the_priority(self, fifottl: Talk) -> None:
        error = fifottl.world.error(
            32, "ttl must be a number of seconds, not true", "attempt to compare boolean with number"
        )
        assert fifottl("ann", "put", "x", {"ttl": True, "pri": True}) == error

    def test_priorities_have_64_bits(self, fifottl: Talk) -> None:
        assert fifottl("ann", "put", "x", {"pri": 2**64 - 1}) == [[0, "r", "x"]]
        assert fifottl("ann", "put", "y", {"pri": 1e19}) == [[1, "r", "y"]]


class TestTake:
    def test_the_oldest_ready_task_comes_first(self, talk: Talk) -> None:
        for data in "abc":
            talk("ann", "put", data)
        assert [talk("bob", "take") for _ in "abc"] == [[[n, "t", data]] for n, data in enumerate("abc")]

    @pytest.mark.parametrize("timeout", [0, 0.0, -1, 0.01])
    def test_none_is_no_value(self, talk: Talk, timeout: float) -> None:
        assert talk("ann", "take", timeout) == []

    @pytest.mark.parametrize(
        ("timeout", "shown", "kind"),
        [
            *(("0", '"0"', "string"), (True, "true", "boolean")),
            *(([], "a list", "table"), ({"a": 1}, "a map", "table")),
        ],
    )
    def test_a_timeout_is_a_number(self, talk: Talk, timeout: object, shown: str, kind: str) -> None:
        error = talk.world.error(
            32,
            f"timeout must be a number of seconds, not {shown}",
            f"attempt to compare {kind} with number",
        )
        assert talk("ann", "take", timeout) == error

    def test_a_put_wakes_one_who_waits(self, talk: Talk) -> None:
        talk.start("bob", "take", 30)
        assert talk("ann", "put", "x") == [[0, "r", "x"]]
        assert talk.world.finish("bob") == [[0, "t", "x"]]

    @pytest.mark.parametrize("timeout", [(), (None,), (False,)])
    def test_without_a_timeout_it_waits_for_ever(self, talk: Talk, timeout: tuple[object, ...]) -> None:
        talk.start("bob", "take", *timeout)
        talk("ann", "put", "x")
        assert talk.world.finish("bob") == [[0, "t", "x"]]

    @pytest.mark.parametrize("freeing", ["release", "bury and kick", "leave", "release_all"])
    def test_whatever_makes_a_task_ready_wakes_one_who_waits(self, talk: Talk, freeing: str) -> None:
        talk("ann", "put", "x")
        talk("ann", "take")
        talk.start("bob", "take", 30)
        if freeing == "release":
            talk("ann", "release", 0)
        elif freeing == "bury and kick":
            talk("ann", "bury", 0)
            talk("ann", "kick", 1)
        elif freeing == "leave":
            talk.world.leave("ann")
        else:
            talk("cid", "release_all")
        assert talk.world.finish("bob") == [[0, "t", "x"]]

    def test_one_who_leaves_takes_nothing(self, talk: Talk) -> None:
        talk.start("bob", "take", 30)
        talk.world.call("ann", "queue.state")
        talk.world.leave("bob")
        talk.world.call("ann", "queue.state")
        talk("ann", "put", "x")
        assert talk("ann", "take", 10) == [[0, "t", "x"]]

    def test_those_with_a_smaller_priority_come_first(self, fifottl: Talk) -> None:
        for pri in (5, 1, 3, 0, 1):
            fifottl("ann", "put", f"pri {pri}", {"pri": pri})
        taken = [fifottl("bob", "take", 0) for _ in range(5)]
        assert taken == [
            [[3, "t", "pri 0"]],
            [[1, "t", "pri 1"]],
            [[4, "t", "pri 1"]],
            [[2, "t", "pri 3"]],
            [[0, "t", "pri 5"]],
        ]

    def test_a_delayed_task_is_not_taken(self, fifottl: Talk) -> None:
        assert fifottl("ann", "put", "later", {"delay": 1000}) == [[0, "~", "later"]]
        assert fifottl("ann", "take", 0) == []
        assert fifottl("ann", "put", "now", {"delay": 0}) == [[1, "r", "now"]]
        assert fifottl("ann", "take", 0) == [[1, "t", "now"]]

    def test_a_delayed_task_becomes_ready(self, fifottl: Talk) -> None:
        fifottl("ann", "put", "soon", {"delay": 0.05})
        assert fifottl("bob", "take", 10) == [[0, "t", "soon"]]

    def test_a_task_that_takes_too_long_is_given_to_the_next(self, fifottl: Talk) -> None:
        fifottl("ann", "put", "x", {"ttr": 0.05})
        fifottl("ann", "take")
        assert fifottl("bob", "take", 10) == [[0, "t", "x"]]
        assert fifottl("ann", "ack", 0) == (32, "Task was not taken")
        assert fifottl.statistics()[1] == {"put": 1, "take": 2, "ttr": 1}


class TestAck:
    def test_the_task_is_done_and_gone(self, talk: Talk) -> None:
        talk("ann", "put", "x")
        talk("ann", "take")
        assert talk("ann", "ack", 0) == [[0, "-", "x"]]
        assert talk("ann", "peek", 0) == (32, "Task 0 not found")
        assert talk("ann", "ack", 0) == (32, "Task was not taken")

    def test_only_who_has_taken_it_acknowledges(self, talk: Talk) -> None:
        talk("ann", "put", "x")
        assert talk("ann", "ack", 0) == (32, "Task was not taken")
        talk("ann", "take")
        assert talk("bob", "ack", 0) == (32, "Task was not taken")
        assert talk("ann", "ack", 0) == [[0, "-", "x"]]


class TestRelease:
    def test_the_task_is_ready_again(self, talk: Talk) -> None:
        for data in "ab":
            talk("ann", "put", data)
        talk("ann", "take")
        assert talk("ann", "release", 0) == [[0, "r", "a"]]
        assert talk("bob", "take") == [[0, "t", "a"]]
        assert talk("ann", "release", 0) == (32, "Task was not taken")

    def test_a_delay_makes_it_wait(self, fifottl: Talk) -> None:
        fifottl("ann", "put", "x")
        fifottl("ann", "take")
        assert fifottl("ann", "release", 0, {"delay": 1000}) == [[0, "~", "x"]]
        assert fifottl("ann", "take", 0) == []

    def test_without_times_a_delay_is_nothing(self, fifo: Talk) -> None:
        fifo("ann", "put", "x")
        fifo("ann", "take")
        assert fifo("ann", "release", 0, {"delay": 1000}) == [[0, "r", "x"]]

    @pytest.mark.parametrize(("delay", "shown", "kind"), [("1", '"1"', "string"), (True, "true", "boolean")])
    def test_a_delay_is_a_number(self, fifottl: Talk, delay: object, shown: str, kind: str) -> None:
        fifottl("ann", "put", "x")
        fifottl("ann", "take")
        error = fifottl.world.error(
            32, f"delay must be a number of seconds, not {shown}", f"attempt to compare number with {kind}"
        )
        assert fifottl("ann", "release", 0, {"delay": delay}) == error

    @pytest.mark.parametrize("delay", [10**15, 1e300, 2**63])
    def test_a_delay_may_be_for_ever(self, fifottl: Talk, delay: float) -> None:
        fifottl("ann", "put", "x", {"ttl": 100})
        fifottl("ann", "take")
        assert fifottl("ann", "release", 0, {"delay": delay}) == [[0, "~", "x"]]


@pytest.mark.parametrize("method", ["ack", "release"])
class TestTheIdOfATakenTask:
    def test_must_be_given(self, talk: Talk, method: str) -> None:
        assert talk("ann", method) == NO_TAKEN_KEY
        assert talk("ann", method, None) == NIL_TAKEN_KEY

    @pytest.mark.parametrize("task_id", ["0", -1, 1.5, [0], True])
    def test_must_be_a_number(self, talk: Talk, method: str, task_id: object) -> None:
        assert talk("ann", method, task_id) == NIL_TAKEN_KEY


@pytest.mark.parametrize("method", ["peek", "bury", "delete"])
class TestTheIdOfATask:
    def test_must_be_given(self, talk: Talk, method: str) -> None:
        assert talk("ann", method) == NO_KEY
        assert talk("ann", method, None) == NIL_KEY

    @pytest.mark.parametrize("task_id", ["0", -1, 1.5, [0], True])
    def test_must_be_a_number(self, talk: Talk, method: str, task_id: object) -> None:
        assert talk("ann", method, task_id) == NIL_KEY

    @pytest.mark.parametrize(("task_id", "shown"), [(7, "7"), (2**53, "9007199254740992ULL"), (7.0, "7")])
    def test_must_be_that_of_a_task(self, talk: Talk, method: str, task_id: object, shown: str) -> None:
        assert talk("ann", method, task_id) == (32, f"Task {shown} not found")


class TestBuryAndKick:
    def test_a_buried_task_is_not_taken_until_it_is_kicked(self, talk: Talk) -> None:
        talk("ann", "put", "x")
        assert talk("ann", "bury", 0) == [[0, "!", "x"]]
        assert talk("ann", "bury", 0) == [[0, "!", "x"]]
        assert talk("ann", "take", 0) == []
        assert talk("ann", "kick") == [1]
        assert talk("ann", "take", 0) == [[0, "t", "x"]]

    def test_who_has_a_task_may_bury_it(self, talk: Talk) -> None:
        talk("ann", "put", "x")
        talk("ann", "take")
        assert talk("ann", "bury", 0) == [[0, "!", "x"]]
        assert talk("ann", "ack", 0) == (32, "Task was not taken")

    def test_anybody_may_bury_a_taken_task(self, talk: Talk) -> None:
        talk("ann", "put", "x")
        talk("ann", "take")
        assert talk("bob", "bury", 0) == [[0, "!", "x"]]
        assert talk("ann", "ack", 0) == (32, "Task was not taken")

    def test_a_kick_wakes_as_many_as_it_says(self, talk: Talk) -> None:
        for data in "abc":
            talk("ann", "put", data)
        for task_id in (2, 0, 1):
            talk("ann", "bury", task_id)
        assert talk("ann", "kick", 2) == [2]
        assert talk("ann", "peek", 2) == [[2, "!", "c"]]
        assert talk("ann", "kick", 99) == [1]
        assert talk("ann", "kick", 99) == [0]
        assert talk("ann", "kick", 0) == [0]

    @pytest.mark.parametrize(
        ("count", "shown"),
        [("x", '"x"'), ("", '""'), ("1_0", '"1_0"'), (True, "true"), ([1], "a list"), (2**60, str(2**60))],
    )
    def test_a_count_is_a_number(self, talk: Talk, count: object, shown: str) -> None:
        ours = f"count must be a number below 100000000000000, not {shown}"
        error = talk.world.error(32, ours, "'for' limit must be a number")
        assert talk("ann", "kick", count) == error

    @pytest.mark.parametrize("count", ["2", " 2 ", "0x2", "2e0"])
    def test_a_count_may_be_a_text(self, talk: Talk, count: str) -> None:
        for data in "abc":
            talk("ann", "put", data)
        for task_id in range(3):
            talk("ann", "bury", task_id)
        assert talk("ann", "kick", count) == ([count] if talk.world.is_real else [2])
        assert talk("ann", "peek", 2) == [[2, "!", "c"]]
        assert talk("ann", "kick", count) == [1]


class TestPeekAndDelete:
    def test_a_peek_changes_nothing(self, talk: Talk) -> None:
        talk("ann", "put", "x")
        assert talk("ann", "peek", 0) == [[0, "r", "x"]]
        assert talk("ann", "take") == [[0, "t", "x"]]
        assert talk("bob", "peek", 0) == [[0, "t", "x"]]

    def test_a_delete_removes_a_task_whoever_has_it(self, talk: Talk) -> None:
        talk("ann", "put", "x")
        talk("ann", "take")
        assert talk("bob", "delete", 0) == [[0, "-", "x"]]
        assert talk("ann", "ack", 0) == (32, "Task was not taken")


class TestTouch:
    def test_a_task_gets_more_time(self, fifottl: Talk) -> None:
        fifottl("ann", "put", "x", {"ttr": 1000, "ttl": 2000})
        fifottl("ann", "take")
        assert fifottl("ann", "touch", 0, 500) == [[0, "t", "x"]]
        row = fifottl.world.call("operator", f"box.space.{fifottl.tube}:get", 0)[0]
        assert row[3:5] == [2500_000_000, 1500_000_000]

    @pytest.mark.parametrize("delta", [(), (None,), (0,), (-1,)])
    def test_without_more_time_nothing_happens(self, talk: Talk, delta: tuple[object, ...]) -> None:
        assert talk("ann", "touch", 0, *delta) == []

    def test_only_who_has_it_touches_a_task(self, fifottl: Talk) -> None:
        fifottl("ann", "put", "x")
        assert fifottl("ann", "touch", 0, 1) == (32, "Task was not taken")
        fifottl("ann", "take")
        assert fifottl("bob", "touch", 0, 1) == (32, "Task was not taken")

    def test_a_tube_without_times_has_none_to_give(self, fifo: Talk) -> None:
        fifo("ann", "put", "x")
        fifo("ann", "take")
        assert fifo("ann", "touch", 0, 1) == (32, "fifo queue does not support touch")

    @pytest.mark.parametrize(("delta", "shown", "kind"), [("1", '"1"', "string"), (True, "true", "boolean")])
    def test_the_time_is_a_number(self, talk: Talk, delta: object, shown: str, kind: str) -> None:
        error = talk.world.error(
            32, f"delta must be a number of seconds, not {shown}", f"attempt to compare {kind} with number"
        )
        assert talk("ann", "touch", 0, delta) == error
