"""Sequences: values, numbered rows, privileges and rollbacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from iproto_server import Box, BoxError, ErrorCode, Space
from iproto_server.box.catalog.loading.loader import Loader
from iproto_server.box.memtx.read_view import ReadView
from tests.box.boxes import new_box, refused, rows
from tests.box.refusal import refusal

INT64_MAX, INT64_MIN = 2**63 - 1, -(2**63)


@pytest.fixture
def box() -> Box:
    return new_box()[0]


@pytest.fixture
def orders(box: Box) -> Space:
    """A space whose rows get their ids from the sequence `ids`; words are unique."""
    box.schema.sequence.create("ids", max=100)
    space = box.schema.create_space("orders")
    space.create_index("pk", sequence="ids")
    space.create_index("word", parts=[(1, "string")])
    return space


def draw(box: Box, name: str, count: int) -> list[int]:
    return [box.sequence[name].next() for _ in range(count)]


class TestValues:
    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({}, [1, 2, 3, 4]),
            ({"start": 5, "step": 10}, [5, 15, 25, 35]),
            ({"step": -1}, [-1, -2, -3, -4]),
            ({"step": -5, "max": 12}, [12, 7, 2, -3]),
            ({"min": 7}, [7, 8, 9, 10]),
            ({"min": 2, "max": 3, "cycle": True}, [2, 3, 2, 3]),
            ({"min": 2, "max": 4, "start": 3, "step": -2, "cycle": True}, [3, 4, 2, 4]),
            ({"min": INT64_MIN, "step": INT64_MAX, "start": INT64_MIN}, [INT64_MIN, -1, INT64_MAX - 1]),
        ],
    )
    def test_follow_each_other(self, box: Box, options: dict[str, Any], expected: list[int]) -> None:
        box.schema.sequence.create("s", **options)
        assert draw(box, "s", len(expected)) == expected
        assert box.sequence.s.current() == expected[-1]

    @pytest.mark.parametrize("options", [{"max": 2}, {"min": -2, "step": -1}, {"start": INT64_MAX - 1}])
    def test_end_at_the_bounds(self, box: Box, options: dict[str, Any]) -> None:
        box.schema.sequence.create("s", **options)
        last = draw(box, "s", 2)[-1]
        assert refused(box.sequence.s.next) == (147, "Sequence 's' has overflowed")
        assert box.sequence.s.current() == last

    def test_begin_only_when_one_is_drawn(self, box: Box) -> None:
        box.schema.sequence.create("s", start=5)
        assert refused(box.sequence.s.current) == (212, "Sequence 's' is not started")
        draw(box, "s", 2)
        box.sequence.s.reset()
        assert refused(box.sequence.s.current) == (212, "Sequence 's' is not started")
        assert box.sequence.s.next() == 5

    @pytest.mark.parametrize(("value", "following"), [(7, 8), (-50, 1), (100, None), (INT64_MAX, None)])
    def test_can_be_set_out_of_bounds(self, box: Box, value: int, following: int | None) -> None:
        box.schema.sequence.create("s", max=100)
        box.sequence.s.set(value)
        assert box.sequence.s.current() == value
        if following is None:
            with refusal(ErrorCode.SEQUENCE_OVERFLOW):
                box.sequence.s.next()
        else:
            assert box.sequence.s.next() == following

    @pytest.mark.parametrize("value", [None, "1", 1.0, True, [], INT64_MAX + 1, INT64_MIN - 1])
    def test_are_integers_of_64_bits(self, box: Box, value: Any) -> None:
        box.schema.sequence.create("s")
        assert refused(box.sequence.s.set, value) == (32, "expected int64_t as 2 argument")
        with refusal(ErrorCode.SEQUENCE_NOT_STARTED):
            box.sequence.s.current()

    def test_are_rows_of_sequence_data_when_drawn_by_name(self, box: Box) -> None:
        box.schema.sequence.create("s")
        draw(box, "s", 3)
        assert rows(box.space._sequence_data) == [[1, 3]]
        box.sequence.s.reset()
        assert rows(box.space._sequence_data) == []


class TestDefinitions:
    def test_can_be_altered_renamed_and_dropped(self, box: Box) -> None:
        sequence = box.schema.sequence.create("s", cache=4)
        draw(box, "s", 2)
        sequence.alter(step=10, name="t")
        assert sequence.next() == 12
        assert (sequence.name, sequence.definition.cache, "s" in box.sequence) == ("t", 4, False)
        assert [each.name for each in box.sequence] == ["t"]
        sequence.drop()
        assert refused(sequence.next) == (145, "Sequence '1' does not exist")
        assert rows(box.space._sequence) == rows(box.space._sequence_data) == []

    def test_are_made_once(self, box: Box) -> None:
        made = box.schema.sequence.create("s")
        assert box.schema.sequence.create("s", if_not_exists=True, step=5).id == made.id
        assert made.definition.step == 1
        assert refused(box.schema.sequence.create, "s") == (146, "Sequence 's' already exists")

    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            ({"step": 0}, "step option must be non-zero"),
            ({"min": 3, "max": 2}, "max must be greater than or equal to min"),
            ({"start": 0}, "start must be between min and max"),
        ],
    )
    def test_must_make_sense(self, box: Box, options: dict[str, Any], reason: str) -> None:
        text = f"Failed to create sequence 's': {reason}"
        assert refused(box.schema.sequence.create, "s", **options) == (142, text)
        assert "s" not in box.sequence
        sequence = box.schema.sequence.create("s", start=2)
        assert refused(sequence.alter, **{"max": 1, **options})[0] == 143
        assert sequence.definition.max == INT64_MAX

    @pytest.mark.parametrize(
        ("function", "expected"),
        [
            (lambda box: box.schema.sequence.create(5), (1, "Illegal parameters, name should be a string")),
            (lambda box: box.schema.sequence.create("")[0], (70, "Invalid identifier '' ")),
            (lambda box: box.schema.sequence.create("s", max=2**63), (23, "Tuple field 6 type does not")),
            (
                lambda box: box.schema.sequence.create("s", min=1.5, max=9),
                (23, "Tuple field 5 type does not"),
            ),
            (lambda box: box.schema.sequence.alter("none", step=2), (145, "Sequence 'none' does not exist")),
            (
                lambda box: box.schema.sequence.alter("none", steps=2),
                (1, "Illegal parameters, unexpected option"),
            ),
            (lambda box: box.schema.sequence.drop("none"), (145, "Sequence 'none' does not exist")),
            (lambda box: box.schema.sequence.drop(None), (145, "Sequence 'nil' does not exist")),
            (lambda box: box.sequence["none"], (145, "Sequence 'none' does not exist")),
            (lambda box: box.sequence[77], (145, "Sequence '77' does not exist")),
        ],
    )
    def test_are_named_in_errors(
        self, box: Box, function: Callable[[Box], Any], expected: tuple[int, str]
    ) -> None:
        code, text = refused(function, box)
        assert (code, text[: len(expected[1])]) == expected

    def test_stay_while_they_are_needed(self, box: Box, orders: Space) -> None:
        with refusal(ErrorCode.DROP_SEQUENCE, "the sequence is in use"):
            box.sequence.ids.drop()
        draw(box, "ids", 1)
        with refusal(ErrorCode.DROP_SEQUENCE, "the sequence has data"):
            box.space._sequence.delete(box.sequence.ids.id)
        with refusal(ErrorCode.ALTER_SPACE, "can not drop primary key while space sequence exists"):
            orders.index.word.drop()
            box.space._index.delete([orders.id, 0])

    def test_go_with_their_owner(self, box: Box) -> None:
        box.schema.user.create("ann")
        box.schema.user.grant("ann", "read,write,create", "universe")
        with box.session.su("ann"):
            box.schema.sequence.create("hers").next()
        box.schema.user.drop("ann")
        assert "hers" not in box.sequence


class TestRows:
    def test_get_the_next_value_for_a_nil(self, box: Box, orders: Space) -> None:
        assert list(orders.insert([None, "a"])) == [1, "a"]
        assert list(orders.replace((None, "b", {"c": 1}))) == [2, "b", {"c": 1}]
        assert rows(orders) == [[1, "a"], [2, "b", {"c": 1}]]
        assert rows(orders, 1) == rows(orders)
        assert rows(box.space._sequence_data) == []

    def test_move_the_sequence_forward_by_explicit_values(self, box: Box, orders: Space) -> None:
        orders.insert([50, "a"])
        orders.insert([3, "b"])
        assert orders.insert([None, "c"])[0] == 51
        orders.upsert([70, "d"], [("=", 1, "e")])
        orders.update(3, [("=", 1, "f")])
        assert orders.insert([None, "g"])[0] == 52

    def test_that_are_refused_have_used_their_value(self, box: Box, orders: Space) -> None:
        orders.insert([None, "a"])
        with refusal(ErrorCode.TUPLE_FOUND):
            orders.insert([None, "a"])
        with refusal(ErrorCode.FIELD_TYPE):
            orders.insert([None, 5])
        assert orders.insert([None, "b"])[0] == 4

    def test_upserted_get_none(self, orders: Space) -> None:
        with refusal(ErrorCode.FIELD_TYPE):
            orders.upsert([None, "a"], [])

    @pytest.mark.parametrize("row", [[], [None], ["x", "a"], [True, "a"], [[], "a"], [1.5, "a"], [-1, "a"]])
    def test_of_any_shape_are_refused_for_what_they_are(self, orders: Space, row: list[Any]) -> None:
        with pytest.raises(BoxError) as caught:
            orders.insert(row)
        assert caught.value.code in (ErrorCode.FIELD_TYPE, ErrorCode.FIELD_MISSING)
        assert len(orders) == 0

    def test_may_be_numbered_in_any_part_of_the_key(self, box: Box) -> None:
        space = box.schema.create_space("s")
        space.create_index("pk", parts=[(0, "string"), (2, "integer")], sequence={"field": 2})
        assert list(space.insert(["a", [1, 2], None, "tail"])) == ["a", [1, 2], 1, "tail"]
        assert list(space.insert(["b" * 300, {}, None])) == ["b" * 300, {}, 2]
        assert rows(box.space._space_sequence) == [[space.id, 1, True, 2, ""]]

    def test_may_be_numbered_inside_a_field(self, box: Box) -> None:
        space = box.schema.create_space("s")
        space.create_index("pk", parts=[{"field": 1, "type": "unsigned", "path": "a.b"}], sequence=True)
        assert list(space.insert([0, {"x": 1, "a": {"b": None}}])) == [0, {"x": 1, "a": {"b": 1}}]
        assert rows(space) == [[0, {"x": 1, "a": {"b": 1}}]]

    def test_of_long_tuples_keep_their_bytes(self, orders: Space) -> None:
        row = [None, "a", *range(70_000)]
        assert list(orders.insert(row)) == [1, *row[1:]]

    def test_of_several_spaces_share_a_sequence(self, box: Box, orders: Space) -> None:
        other = box.schema.create_space("other")
        other.create_index("pk", sequence="ids")
        assert [orders.insert([None, "a"])[0], other.insert([None])[0], orders.insert([None, "b"])[0]] == [
            1,
            2,
            3,
        ]

    def test_see_what_before_replace_makes_of_them_with_their_value(self, orders: Space) -> None:
        seen: list[Any] = []
        orders.before_replace(lambda old, new: seen.append(list(new)))
        orders.insert([None, "a"])
        assert seen == [[1, "a"]]


class TestIndexes:
    @pytest.mark.parametrize("end", [lambda box: box.space.s.drop(), lambda box: box.space.s.index.pk.drop()])
    def test_with_a_sequence_of_their_own_take_it_along(self, box: Box, end: Callable[[Box], None]) -> None:
        space = box.schema.create_space("s")
        space.create_index("pk", sequence=True)
        assert space.insert([None])[0] == 1
        assert [each.name for each in box.sequence] == ["s_seq"]
        other = box.schema.create_space("t")
        with refusal(ErrorCode.ALTER_SPACE, "can not attach generated sequence"):
            other.create_index("pk", sequence="s_seq")
        end(box)
        assert list(box.sequence) == []
        assert rows(box.space._sequence) == rows(box.space._space_sequence) == []

    @pytest.mark.parametrize(
        ("options", "code"),
        [
            ({"sequence": "none"}, ErrorCode.NO_SUCH_SEQUENCE),
            ({"sequence": 99}, ErrorCode.NO_SUCH_SEQUENCE),
            ({"sequence": {"id": "none"}}, ErrorCode.NO_SUCH_SEQUENCE),
            ({"sequence": {"field": 1}}, ErrorCode.MODIFY_INDEX),
            ({"sequence": {"field": "none"}}, ErrorCode.ILLEGAL_PARAMS),
            ({"sequence": True, "parts": [(0, "string")]}, ErrorCode.MODIFY_INDEX),
            ({"sequence": True, "parts": [(0, "number")]}, ErrorCode.MODIFY_INDEX),
            ({"sequence": True, "id": 1}, ErrorCode.MODIFY_INDEX),
        ],
    )
    def test_that_cannot_have_one_are_not_made(
        self, box: Box, options: dict[str, Any], code: ErrorCode
    ) -> None:
        space = box.schema.create_space("s")
        with refusal(code):
            space.create_index("pk", **options)
        assert (len(space.index), list(box.sequence)) == (0, [])

    def test_must_keep_the_part_that_is_numbered(self, box: Box, orders: Space) -> None:
        with refusal(ErrorCode.MODIFY_INDEX, "sequence cannot be used with a non-integer key"):
            box.space._index.update([orders.id, 0], [("=", 5, [[0, "scalar"]])])
        with refusal(ErrorCode.MODIFY_INDEX, "sequence field must be a part of the index"):
            box.space._index.update([orders.id, 0], [("=", 5, [[1, "unsigned"]])])
        assert orders.insert([None, "a"])[0] == 1


class TestRollback:
    def test_takes_no_value_back(self, box: Box, orders: Space) -> None:
        box.schema.sequence.create("s")
        box.begin()
        orders.insert([None, "a"])
        draw(box, "s", 2)
        box.sequence.ids.set(40)
        box.rollback()
        assert rows(orders) == rows(box.space._sequence_data) == []
        assert (box.sequence.s.next(), orders.insert([None, "a"])[0]) == (3, 41)

    def test_takes_definitions_back(self, box: Box, orders: Space) -> None:
        draw(box, "ids", 3)
        before = [rows(box.space[name]) for name in ("_sequence", "_sequence_data", "_space_sequence")]
        box.begin()
        box.sequence.ids.alter(step=-4)
        box.schema.sequence.create("made").next()
        orders.drop()
        box.sequence.ids.drop()
        box.rollback()
        assert [
            rows(box.space[name]) for name in ("_sequence", "_sequence_data", "_space_sequence")
        ] == before
        assert [each.name for each in box.sequence] == ["ids"]
        assert box.space.orders.insert([None, "a"])[0] == 4

    def test_of_an_attachment_detaches(self, box: Box) -> None:
        space = box.schema.create_space("s")
        space.create_index("pk")
        box.schema.sequence.create("s")
        box.begin()
        box.space._space_sequence.insert([space.id, 1, True, 0, ""])
        assert space.insert([None])[0] == 1
        box.rollback()
        with refusal(ErrorCode.FIELD_TYPE):
            space.insert([None])
        box.space._space_sequence.insert([space.id, 1, False, 0, ""])
        assert space.insert([None])[0] == 2


class TestRights:
    def test_are_needed_by_who_inserts_unless_the_sequence_is_the_space_s_own(
        self, box: Box, orders: Space
    ) -> None:
        own = box.schema.create_space("own")
        own.create_index("pk", sequence=True)
        box.schema.user.create("ann")
        for name in ("orders", "own"):
            box.schema.user.grant("ann", "read,write", "space", name)
        with box.session.su("ann"):
            assert own.insert([None])[0] == 1
            for row in ([None, "a"], [5, "a"]):
                text = "Write access to sequence 'ids' is denied for user 'ann'"
                assert refused(orders.insert, row) == (42, text)
        box.schema.user.grant("ann", "write", "sequence", "ids")
        with box.session.su("ann"):
            assert orders.insert([None, "a"])[0] == 1
            assert box.sequence.ids.next() == 2
            assert refused(box.sequence.own_seq.next)[0] == 42
            assert refused(box.sequence.ids.drop)[0] == 42

    def test_are_shown_and_go_with_the_sequence(self, box: Box) -> None:
        box.schema.user.create("ann")
        box.schema.sequence.create("s")
        box.schema.user.grant("ann", "read,write", "sequence", "s")
        assert ["read,write", "sequence", "s"] in box.schema.user.info("ann")
        box.sequence.s.drop()
        assert all(row[1] != "sequence" for row in box.schema.user.info("ann"))


class TestSnapshots:
    def test_hold_the_values_and_loading_brings_them_back(self, box: Box, orders: Space) -> None:
        box.schema.sequence.create("idle")
        for word in "abc":
            orders.insert([None, word])
        found: dict[int, list[bytes]] = {}
        with ReadView.of_kept(box.catalog) as view:
            orders.insert([None, "later"])
            for space_id, _, slice_rows in view.slices(count=2):
                found.setdefault(space_id, []).extend(slice_rows)
        assert rows(box.space._sequence_data) == [[1, 3]]
        other = new_box()[0]
        with Loader(other.catalog) as loader:
            for space_id, space_rows in found.items():
                loader.load(space_id, space_rows)
            loader.finish()
        assert other.sequence.ids.current() == 3
        assert refused(other.sequence.idle.current)[0] == 212
        assert other.space.orders.insert([None, "d"])[0] == 4

    def test_of_rows_beyond_the_value_move_it(self, box: Box, orders: Space) -> None:
        orders.insert([9, "a"])
        box.sequence.ids.set(2)
        found = [(part[0], part[2]) for part in ReadView.of_kept(box.catalog).slices()]
        other = new_box()[0]
        with Loader(other.catalog) as loader:
            for space_id, space_rows in found:
                loader.load(space_id, space_rows)
            loader.finish()
        assert other.sequence.ids.current() == 9
