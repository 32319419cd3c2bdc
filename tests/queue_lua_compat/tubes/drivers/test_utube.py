"""Sub-queues of `utube` and `utubettl` in both storage modes, on our server and on the real module."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from iproto_server import BoxError
from queue_lua_compat.tubes.drivers.sub_queues import sub_queue
from tests.queue_lua_compat.tubes.talk import Talk
from tests.queue_lua_compat.tubes.world import World

KINDS = ["utube", "utubettl"]
MODES = ["default", "ready_buffer"]


FIELDS = {
    "utube": ["task_id unsigned", "status string", "utube string", "data *"],
    "utubettl": [
        "task_id unsigned",
        "status string",
        "next_event unsigned",
        "ttl unsigned",
        "ttr unsigned",
        "pri unsigned",
        "created unsigned",
        "utube string",
        "data *",
    ],
}
INDEXES = {
    "utube": {"task_id": [0], "status": [1, 0], "utube": [1, 2, 0]},
    "utubettl": {
        "task_id": [0],
        "status": [1, 5, 0],
        "watch": [1, 2],
        "utube": [1, 7, 0],
        "utube_pri": [1, 7, 5, 0],
    },
}
BUFFER_INDEXES = {
    "utube": {"task_id": [0], "utube": [1]},
    "utubettl": {"task_id": [0], "utube": [1], "pri": [2, 0]},
}


@pytest.fixture(params=[(kind, mode) for kind in KINDS for mode in MODES], ids=" ".join)
def talk(request: pytest.FixtureRequest, world: World) -> Talk:
    """Create a tube of each type, in each storage mode."""
    kind, mode = request.param
    return Talk(world, world.create(kind, {"storage_mode": mode}))


@pytest.fixture(params=KINDS)
def buffered(request: pytest.FixtureRequest, world: World) -> Talk:
    """Create a tube of each type, with a ready buffer."""
    return Talk(world, world.create(request.param, {"storage_mode": "ready_buffer"}))


def put(talk: Talk, *names: str) -> None:
    """Put tasks into sub-queues; their data are the sub-queue's name and a letter of their own: "a1"."""
    for name in names:
        assert talk("ann", "put", name, {"utube": name[:-1]})[0][1:] == ["r", name]


def take(talk: Talk, who: str) -> Any:
    """Return the data of the task that a client takes, or None."""
    taken = talk(who, "take", 0)
    assert isinstance(taken, list), taken
    return taken[0][2] if taken else None


class TestTake:
    def test_of_a_sub_queue_one_task_is_taken_at_a_time(self, talk: Talk) -> None:
        put(talk, "a1", "a2")
        assert take(talk, "bob") == "a1"
        assert take(talk, "bob") is None
        assert take(talk, "cid") is None

    def test_the_oldest_task_of_all_free_sub_queues_comes_first(self, talk: Talk) -> None:
        put(talk, "a1", "a2", "b1", "c1", "b2", "a3")
        assert [take(talk, "bob") for _ in range(4)] == ["a1", "b1", "c1", None]
        talk("bob", "ack", 2)
        talk("bob", "ack", 0)
        assert [take(talk, "cid") for _ in range(3)] == ["a2", "b2", None]

    def test_a_sub_queue_is_first_in_first_out(self, talk: Talk) -> None:
        put(talk, "a1", "b1", "a2", "b2", "a3")
        order = []
        while (name := take(talk, "bob")) is not None:
            order.append(name)
            if len(order) > 1:
                talk("bob", "ack", {"a1": 0, "b1": 1, "a2": 2, "b2": 3, "a3": 4}[order[-2]])
        assert order == ["a1", "b1", "a2", "b2", "a3"]

    def test_tasks_without_a_sub_queue_are_in_one(self, talk: Talk) -> None:
        talk("ann", "put", "x")
        talk("ann", "put", "y", {})
        assert take(talk, "bob") == "x"
        assert take(talk, "bob") is None

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            (1, "1"),
            (-7, "-7"),
            (1.5, "1.5"),
            (1e100, "1e+100"),
            (10**14, "100000000000000ULL"),
            (2**64 - 1, "18446744073709551615ULL"),
            (-(2**60), "-1152921504606846976LL"),
            (True, "true"),
            (False, "false"),
            ("", ""),
        ],
    )
    def test_a_sub_queue_may_be_named_by_anything_that_has_a_text(
        self, talk: Talk, name: object, text: str
    ) -> None:
        talk("ann", "put", "x", {"utube": name})
        talk("ann", "put", "y", {"utube": text})
        (row,) = talk.world.call("operator", f"box.space.{talk.tube}:get", 0)
        assert text in row
        assert take(talk, "bob") == "x"
        assert take(talk, "bob") is None


class TestWhatFreesASubQueue:
    @pytest.mark.parametrize(
        "freeing", ["ack", "bury", "delete", "leave", "delete by another", "bury by another"]
    )
    def test_who_waits_gets_the_next_task(self, talk: Talk, freeing: str) -> None:
        put(talk, "a1", "a2")
        assert take(talk, "bob") == "a1"
        talk.start("cid", "take", 30)
        if freeing == "leave":
            talk.world.leave("bob")
            assert talk.world.finish("cid") == [[0, "t", "a1"]]
            return
        method, _, by = freeing.partition(" by ")
        talk("dan" if by else "bob", method, 0)
        assert talk.world.finish("cid") == [[1, "t", "a2"]]

    def test_a_release_gives_the_same_task_again(self, talk: Talk) -> None:
        put(talk, "a1", "a2")
        take(talk, "bob")
        talk.start("cid", "take", 30)
        assert talk("bob", "release", 0) == [[0, "r", "a1"]]
        assert talk.world.finish("cid") == [[0, "t", "a1"]]

    def test_a_put_does_not(self, talk: Talk) -> None:
        put(talk, "a1")
        take(talk, "bob")
        talk.start("cid", "take", 0.05)
        put(talk, "a2")
        assert talk.world.finish("cid") == []

    def test_the_next_task_is_not_given_twice(self, talk: Talk) -> None:
        put(talk, "a1", "a2", "a3")
        take(talk, "bob")
        talk.start("cid", "take", 30)
        talk("bob", "ack", 0)
        assert take(talk, "dan") is None
        assert talk.world.finish("cid") == [[1, "t", "a2"]]


class TestReadyTasksThatGo:
    def test_a_deleted_task_is_passed_over(self, talk: Talk) -> None:
        put(talk, "a1", "a2", "a3")
        talk("ann", "delete", 0)
        talk("ann", "delete", 1)
        assert take(talk, "bob") == "a3"

    def test_a_buried_task_is_passed_over(self, talk: Talk) -> None:
        put(talk, "a1", "a2")
        talk("ann", "bury", 0)
        assert take(talk, "bob") == "a2"

    def test_tasks_of_a_busy_sub_queue_may_go(self, talk: Talk) -> None:
        put(talk, "a1", "a2", "a3", "a4")
        take(talk, "bob")
        talk("ann", "delete", 1)
        talk("ann", "bury", 2)
        assert take(talk, "bob") is None
        talk("bob", "ack", 0)
        assert take(talk, "bob") == "a4"

    def test_a_truncated_tube_is_as_a_new_one(self, talk: Talk) -> None:
        put(talk, "a1", "b1")
        talk("ann", "truncate")
        assert take(talk, "bob") is None
        put(talk, "c1", "a2")
        assert [take(talk, "bob"), take(talk, "bob")] == ["c1", "a2"]

    def test_all_that_was_taken_is_released(self, talk: Talk) -> None:
        put(talk, "a1", "b1", "a2")
        take(talk, "bob")
        take(talk, "cid")
        talk("ann", "release_all")
        assert [take(talk, "dan") for _ in range(3)] == ["a1", "b1", None]


class TestKick:
    @pytest.mark.parametrize("kind", KINDS)
    def test_a_kicked_task_has_its_old_place(self, world: World, kind: str) -> None:
        """The module loses such tasks in utube's ready buffer."""
        talk = Talk(world, world.create(kind))
        put(talk, "a1", "a2", "b1")
        talk("ann", "bury", 0)
        talk("ann", "bury", 2)
        assert talk("ann", "kick", 1) == [1]
        assert [take(talk, "bob"), take(talk, "bob")] == ["a1", None]
        assert talk("ann", "kick", 1) == [1]
        assert take(talk, "bob") == "b1"


class TestStatistics:
    def test_calls_and_tasks_are_counted(self, talk: Talk) -> None:
        put(talk, "a1", "a2", "a3", "b1")
        take(talk, "bob")
        take(talk, "bob")
        talk("bob", "ack", 0)
        talk("bob", "release", 3)
        talk("ann", "bury", 1)
        talk("ann", "delete", 2)
        tasks, calls = talk.statistics()
        assert tasks == {"ready": 1, "buried": 1, "done": 2, "total": 2}
        assert calls == {"put": 4, "take": 2, "ack": 1, "release": 1, "bury": 1, "delete": 1}


class TestTouch:
    @pytest.mark.parametrize("mode", MODES)
    def test_a_utube_has_no_time(self, world: World, mode: str) -> None:
        talk = Talk(world, world.create("utube", {"storage_mode": mode}))
        put(talk, "a1")
        take(talk, "bob")
        assert talk("bob", "touch", 0, 1) == (32, "utube queue does not support touch")


class TestSpaces:
    @pytest.mark.parametrize("kind", KINDS)
    def test_are_those_of_the_module(self, world: World, kind: str) -> None:
        talk = Talk(world, world.create(kind, {"storage_mode": "ready_buffer"}))
        assert self._fields(talk, "") == FIELDS[kind]
        assert self._indexes(talk, "") == INDEXES[kind]
        buffer = ["task_id unsigned", "utube string", "pri unsigned"][: len(BUFFER_INDEXES[kind])]
        assert self._fields(talk, "_ready_buffer") == buffer
        assert self._indexes(talk, "_ready_buffer") == BUFFER_INDEXES[kind]

    @pytest.mark.parametrize("kind", KINDS)
    def test_there_is_no_buffer_unless_it_is_asked_for(self, world: World, kind: str) -> None:
        for options in ({}, {"storage_mode": "default"}, {"storage_mode": "nonsense"}):
            talk = Talk(world, world.create(kind, options))
            assert self._described(talk, "_ready_buffer") == []

    def test_go_with_the_tube(self, talk: Talk) -> None:
        assert talk("ann", "drop") == [True]
        assert self._described(talk, "") == self._described(talk, "_ready_buffer") == []

    def test_a_temporary_tube_has_a_temporary_buffer(self, world: World) -> None:
        options = {"storage_mode": "ready_buffer", "temporary": True}
        talk = Talk(world, world.create("utube", options))
        assert self._described(talk, "_ready_buffer")[0][5] == {"temporary": True}

    def _described(self, talk: Talk, suffix: str) -> list[Any]:
        (found,) = talk.world.call("operator", "box.space._space.index.name:select", talk.tube + suffix)
        assert isinstance(found, list)
        return found

    def _fields(self, talk: Talk, suffix: str) -> list[str]:
        return [f"{field['name']} {field['type']}" for field in self._described(talk, suffix)[0][6]]

    def _indexes(self, talk: Talk, suffix: str) -> dict[str, list[int]]:
        space_id = self._described(talk, suffix)[0][0]
        (found,) = talk.world.call("operator", "box.space._index:select", space_id)
        return {row[2]: [part[0] for part in row[5]] for row in found}


class TestTheReadyBuffer:
    """Without priorities, its rows are the ids and names of the tasks that can be taken."""

    def test_has_the_first_task_of_each_free_sub_queue(self, buffered: Talk) -> None:
        put(buffered, "a1", "a2", "b1")
        assert self._rows(buffered) == [[0, "a"], [2, "b"]]
        take(buffered, "bob")
        assert self._rows(buffered) == [[2, "b"]]
        put(buffered, "a3", "c1")
        assert self._rows(buffered) == [[2, "b"], [4, "c"]]
        buffered("bob", "ack", 0)
        assert self._rows(buffered) == [[1, "a"], [2, "b"], [4, "c"]]

    def test_follows_what_happens_to_taken_tasks(self, buffered: Talk) -> None:
        put(buffered, "a1", "a2")
        take(buffered, "bob")
        buffered("bob", "release", 0)
        assert self._rows(buffered) == [[0, "a"]]
        take(buffered, "bob")
        buffered("bob", "bury", 0)
        assert self._rows(buffered) == [[1, "a"]]
        take(buffered, "bob")
        buffered("cid", "delete", 1)
        assert self._rows(buffered) == []

    def test_follows_what_happens_to_ready_tasks(self, buffered: Talk) -> None:
        put(buffered, "a1", "a2", "a3")
        buffered("ann", "bury", 0)
        assert self._rows(buffered) == [[1, "a"]]
        buffered("ann", "delete", 2)
        assert self._rows(buffered) == [[1, "a"]]
        buffered("ann", "delete", 1)
        assert self._rows(buffered) == []

    def test_is_empty_when_the_tube_is_truncated(self, buffered: Talk) -> None:
        put(buffered, "a1", "b1")
        buffered("ann", "truncate")
        assert self._rows(buffered) == []
        put(buffered, "a2")
        assert self._rows(buffered) == [[0, "a"]]

    def _rows(self, talk: Talk) -> list[list[Any]]:
        (rows,) = talk.world.call("operator", f"box.space.{talk.tube}_ready_buffer:select")
        return [row[:2] for row in rows]


class TestOptions:
    @pytest.mark.parametrize("kind", KINDS)
    def test_a_tube_that_is_there_is_answered_with_if_not_exists(self, world: World, kind: str) -> None:
        name = world.create(kind)
        assert world.try_to_create(name, kind) == (32, f"Space '{name}' already exists")
        assert world.try_to_create(name, kind, {"if_not_exists": True}) == [True]


@pytest.mark.parametrize(
    ("utube", "stored"),
    [
        (UUID(int=255), "00000000-0000-0000-0000-0000000000ff"),
        (Decimal("1.50"), "1.50"),
        (Decimal("1e30"), "1" + 30 * "0"),
        (Decimal("-0"), "-0"),
        (True, "true"),
        (2**63, "9223372036854775808ULL"),
    ],
)
def test_a_sub_queue_has_the_name_that_lua_makes_of_a_value(utube: object, stored: str) -> None:
    assert sub_queue(utube) == stored


@pytest.mark.parametrize(("utube", "shown"), [([1], "a list"), ({"a": 1}, "a map")])
def test_tables_are_no_names(utube: object, shown: str) -> None:
    with pytest.raises(BoxError, match=f"utube must be a text, a number, a boolean or a UUID, not {shown}"):
        sub_queue(utube)
