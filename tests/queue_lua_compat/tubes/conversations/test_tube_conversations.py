"""Calls about whole tubes and their answers, on our server and on Tarantool with the module."""

from __future__ import annotations

from typing import Any

import pytest

from tests.queue_lua_compat.tubes.conversations.keys import TYPES
from tests.queue_lua_compat.tubes.talk import Talk
from tests.queue_lua_compat.tubes.world import World


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


class TestReleaseAllAndTruncate:
    def test_all_taken_tasks_are_ready_again(self, talk: Talk) -> None:
        for data in "abc":
            talk("ann", "put", data)
        talk("ann", "take")
        talk("bob", "take")
        assert talk("cid", "release_all") == []
        assert talk("ann", "ack", 0) == (32, "Task was not taken")
        assert talk("cid", "take") == [[0, "t", "a"]]

    def test_a_truncated_tube_is_empty(self, talk: Talk) -> None:
        for data in "abc":
            talk("ann", "put", data)
        talk("ann", "take")
        assert talk("ann", "truncate") == []
        assert talk("ann", "take", 0) == []
        assert talk("ann", "ack", 0) == (32, "Task 0 not found")
        assert talk("ann", "put", "d") == [[0, "r", "d"]]
        assert talk("ann", "ack", 0) == (32, "Task was not taken")


class TestDrop:
    def test_a_dropped_tube_is_gone(self, talk: Talk) -> None:
        talk("ann", "put", "x")
        assert talk("ann", "drop") == [True]
        missing = f"queue.tube.{talk.tube}:put"
        assert talk("ann", "put", "x") == (33, f"Procedure '{missing}' is not defined")
        assert talk.world.call("ann", "queue.tube", talk.tube) == [False]
        assert talk.world.create("fifo", name=talk.tube)

    def test_a_tube_with_a_taken_task_stays(self, talk: Talk) -> None:
        talk("ann", "put", "x")
        talk("ann", "take")
        assert talk("bob", "drop") == (32, "There are taken tasks in the tube")
        talk("ann", "ack", 0)
        assert talk("bob", "drop") == [True]

    def test_a_tube_somebody_waits_in_stays(self, talk: Talk) -> None:
        talk.start("ann", "take", 30)
        assert talk("bob", "drop") == (32, "There are consumers connected the tube")
        talk("bob", "put", "x")
        talk.world.finish("ann")
        talk("ann", "ack", 0)
        assert talk("bob", "drop") == [True]


class TestCapacity:
    @pytest.fixture
    def limited(self, world: World) -> Talk:
        return Talk(world, world.create("limfifottl", {"capacity": 2}))

    def test_a_put_without_room_is_answered_nil(self, limited: Talk) -> None:
        limited("ann", "put", "a")
        limited("ann", "put", "b")
        assert limited("ann", "put", "c") == [None]
        assert limited("ann", "put", "c", {"timeout": 0.02}) == [None]
        assert limited.statistics()[1] == {"put": 2}

    def test_tasks_of_any_state_take_room(self, limited: Talk) -> None:
        limited("ann", "put", "a", {"delay": 1000})
        limited("ann", "put", "b")
        limited("ann", "take")
        assert limited("ann", "put", "c") == [None]
        limited("ann", "ack", 1)
        assert limited("ann", "put", "c") == [[1, "r", "c"]]

    def test_a_put_may_wait_for_room(self, limited: Talk) -> None:
        limited("ann", "put", "a")
        limited("ann", "put", "b")
        limited.start("bob", "put", "c", {"timeout": 30})
        limited("ann", "delete", 1)
        assert limited.world.finish("bob") == [[1, "r", "c"]]

    def test_a_truncated_tube_has_room(self, limited: Talk) -> None:
        limited("ann", "put", "a")
        limited("ann", "put", "b")
        limited.start("bob", "put", "c", {"timeout": 30})
        limited("ann", "truncate")
        assert limited.world.finish("bob") == [[0, "r", "c"]]

    @pytest.mark.parametrize(
        ("capacity", "shown", "kind"),
        [("5", '"5"', "string"), (True, "true", "boolean"), ([], "a list", "table")],
    )
    def test_a_capacity_is_a_number_when_it_comes_to_that(
        self, world: World, capacity: object, shown: str, kind: str
    ) -> None:
        talk = Talk(world, world.create("limfifottl", {"capacity": capacity}))
        error = world.error(
            32, f"capacity must be a number, not {shown}", f"attempt to compare number with {kind}"
        )
        assert talk("ann", "put", "x") == error

    @pytest.mark.parametrize(
        ("timeout", "shown", "kind"), [("5", '"5"', "string"), (True, "true", "boolean")]
    )
    def test_a_timeout_is_a_number(self, limited: Talk, timeout: object, shown: str, kind: str) -> None:
        for _ in range(2):
            limited("ann", "put", "x")
        error = limited.world.error(
            32, f"timeout must be a number of seconds, not {shown}", f"attempt to compare {kind} with number"
        )
        assert limited("ann", "put", "x", {"timeout": timeout}) == error

    def test_without_a_capacity_there_is_always_room(self, world: World) -> None:
        talk = Talk(world, world.create("limfifottl"))
        assert [talk("ann", "put", n) for n in range(5)] == [[[n, "r", n]] for n in range(5)]


class TestStatistics:
    def test_everything_is_counted(self, talk: Talk) -> None:
        for data in "abcdef":
            talk("ann", "put", data)
        for _ in range(4):
            talk("ann", "take")
        talk("ann", "ack", 0)
        talk("ann", "release", 1)
        talk("ann", "bury", 2)
        talk("ann", "bury", 4)
        talk("ann", "kick", 1)
        talk("ann", "delete", 5)
        tasks = {"ready": 2, "taken": 1, "buried": 1, "total": 4, "done": 2}
        calls = {"put": 6, "take": 4, "ack": 1, "release": 1, "bury": 2, "kick": 1, "delete": 1}
        assert talk.statistics() == (tasks, calls)

    def test_a_touch_counts_twice(self, fifottl: Talk) -> None:
        fifottl("ann", "put", "x")
        fifottl("ann", "take")
        fifottl("ann", "touch", 0, 1)
        assert fifottl.statistics()[1]["touch"] == 2

    def test_a_task_whose_life_ends_is_deleted_and_done(self, fifottl: Talk) -> None:
        fifottl("ann", "put", "x", {"ttl": 0.05})
        fifottl("bob", "take", 0)
        # The owner keeps it until it expires; then it has none.
        assert fifottl("ann", "take", 0.2) == []
        assert fifottl.statistics() == ({"done": 1}, {"put": 1, "take": 1, "ttr": 1, "ttl": 1, "delete": 1})

    def test_all_there_is_to_count_is_named(self, talk: Talk) -> None:
        (statistics,) = talk.world.call("ann", "queue.statistics", talk.tube)
        assert statistics == {
            "tasks": dict.fromkeys(["ready", "taken", "done", "buried", "delayed", "total"], 0),
            "calls": dict.fromkeys(
                [
                    *("put", "take", "touch", "ack", "release", "bury", "kick", "delete"),
                    "ttl",
                    "ttr",
                    "delay",
                ],
                0,
            ),
        }
        assert talk.world.call("ann", "queue.stats", talk.tube) == [statistics]
        (of_all,) = talk.world.call("ann", "queue.statistics")
        assert of_all[talk.tube] == statistics

    def test_there_are_none_of_no_tube(self, world: World) -> None:
        assert world.call("ann", "queue.statistics", "nosuch") == (32, "attempt to index a nil value")

    def test_a_new_tube_of_the_same_name_starts_from_zero(self, talk: Talk) -> None:
        talk("ann", "put", "x")
        talk("ann", "drop")
        talk.world.create("fifo", name=talk.tube)
        assert talk.statistics() == ({}, {})


class TestNames:
    def test_the_queue_knows_its_tubes(self, talk: Talk) -> None:
        (names,) = talk.world.call("ann", "queue.tube")
        assert talk.tube in names
        assert talk.world.call("ann", "queue.tube", talk.tube) == [True]
        assert talk.world.call("ann", "queue.tube", "nosuch") == [False]
        assert talk.world.call("ann", "queue.tube", 1) == (32, "argument #1 should be string or nil")

    def test_the_queue_is_running(self, world: World) -> None:
        assert world.call("ann", "queue.state") == ["RUNNING"]

    @pytest.mark.parametrize(
        "name", ["{}:puts", "{}:put:", "nosuch:put", "nosuch", "{}:name", ":put", "{}.puts"]
    )
    def test_there_are_no_other_procedures(self, talk: Talk, name: str) -> None:
        called = "queue.tube." + name.format(talk.tube)
        assert talk.world.call("ann", called) == (33, f"Procedure '{called}' is not defined")

    def test_a_tube_itself_is_no_procedure(self, talk: Talk) -> None:
        assert talk.world.call("ann", f"queue.tube.{talk.tube}") == (32, "attempt to call a table value")

    @pytest.mark.parametrize(
        ("arguments", "error"),
        [
            ((), "attempt to index local 'self' (a nil value)"),
            ((1,), "attempt to index local 'self' (a number value)"),
            ((True, 1), "attempt to index local 'self' (a boolean value)"),
            ((None, 1), "'void *' has no member named 'raw'"),
            (("x", 1), "attempt to index field 'raw' (a nil value)"),
            (([], 1), "attempt to index field 'raw' (a nil value)"),
        ],
    )
    def test_with_a_dot_the_first_argument_is_no_tube(
        self, talk: Talk, arguments: tuple[object, ...], error: str
    ) -> None:
        assert talk.world.call("ann", f"queue.tube.{talk.tube}.put", *arguments) == (32, error)


class TestCreate:
    def test_a_type_must_be_known(self, world: World) -> None:
        assert world.try_to_create("nosuch", "lifo") == (32, "Unknown tube type lifo")

    def test_a_name_must_be_free(self, talk: Talk) -> None:
        error = (32, f"Space '{talk.tube}' already exists")
        assert talk.world.try_to_create(talk.tube, "fifo") == error
        assert talk.world.try_to_create(talk.tube, "fifo", {"if_not_exists": False}) == error

    def test_a_tube_that_is_there_stays_as_it_is(self, talk: Talk) -> None:
        talk("ann", "put", "x")
        assert talk.world.try_to_create(talk.tube, "fifo", {"if_not_exists": True}) == [True]
        assert talk("ann", "take") == [[0, "t", "x"]]

    def test_a_space_that_is_there_becomes_a_tube_if_it_fits(self, world: World) -> None:
        talk = Talk(world, world.create("fifo"))
        talk("ann", "put", "x")
        queue = world.call("operator", "box.space._queue:get", talk.tube)[0]
        assert queue[2:4] == [talk.tube, "fifo"]
        other = f"{talk.tube}other"
        world.call("operator", "box.schema.space.create", other)
        world.call("operator", f"box.space.{other}:create_index", "task_id")
        error = (32, f'space "{other}" does not have "status" index')
        assert world.try_to_create(other, "fifo", {"if_not_exists": True}) == error

    @pytest.mark.parametrize("options", [5, "text", True])
    def test_options_are_a_map(self, world: World, options: Any) -> None:
        kinds = {int: "number", str: "string", bool: "boolean"}
        error = (32, f"attempt to index local 'opts' (a {kinds[type(options)]} value)")
        assert world.try_to_create("nosuch", "fifo", options) == error

    @pytest.mark.parametrize(
        ("kind", "given", "stored"),
        [
            ("fifo", {}, {"if_not_exists": False}),
            ("fifo", {"temporary": True, "own": 1}, {"if_not_exists": False, "temporary": True, "own": 1}),
            (
                "fifottl",
                {"if_not_exists": True},
                {"if_not_exists": True, "ttl": 3153600000, "ttr": 3153600000, "pri": 0},
            ),
            ("fifottl", {"ttl": 5}, {"if_not_exists": False, "ttl": 5, "ttr": 5, "pri": 0}),
            (
                "limfifottl",
                {"capacity": 3, "pri": 2, "ttr": 1},
                {"if_not_exists": False, "capacity": 3, "ttl": 3153600000, "ttr": 1, "pri": 2},
            ),
        ],
    )
    def test_options_are_stored_with_their_defaults(
        self, world: World, kind: str, given: dict[str, Any], stored: dict[str, Any]
    ) -> None:
        name = world.create(kind, given)
        row = world.call("operator", "box.space._queue:get", name)[0]
        assert [row[0], *row[2:]] == [name, name, kind, stored]

    @pytest.mark.parametrize("kind", TYPES)
    @pytest.mark.parametrize("temporary", [False, True])
    def test_the_space_and_its_indexes(self, world: World, kind: str, temporary: bool) -> None:
        name = world.create(kind, {"temporary": temporary})
        space = world.call("operator", "box.space._space.index.name:get", name)[0]
        assert space[3:6] == ["memtx", 0, {"temporary": True} if temporary else {}]
        times = [] if kind == "fifo" else ["next_event", "ttl", "ttr", "pri", "created"]
        assert space[6] == [
            {"name": "task_id", "type": "unsigned"},
            {"name": "status", "type": "string"},
            *({"name": each, "type": "unsigned"} for each in times),
            {"name": "data", "type": "*"},
        ]
        indexes = world.call("operator", "box.space._index:select", [space[0]])[0]
        by_status = [[1, "string"], [0, "unsigned"]]
        timed = [[1, "string"], [5, "unsigned"], [0, "unsigned"]]
        expected = [
            [0, "task_id", "tree", {"unique": True}, [[0, "unsigned"]]],
            [1, "status", "tree", {"unique": True}, by_status if kind == "fifo" else timed],
            [2, "watch", "tree", {"unique": False}, [[1, "string"], [2, "unsigned"]]],
        ]
        assert [row[1:] for row in indexes] == expected[: 2 if kind == "fifo" else 3]

    def test_vinyl_is_not_for_limited_tubes(self, world: World) -> None:
        error = (32, "limfifottl queue does not support vinyl engine")
        assert world.try_to_create("nosuch", "limfifottl", {"engine": "vinyl"}) == error
