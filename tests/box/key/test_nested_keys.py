"""Indexes of values inside fields, and of all elements of an array."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server import Box, ErrorCode, Space
from iproto_server.box.catalog.loading.loader import Loader
from iproto_server.box.key.key_def import KeyDef
from iproto_server.box.key.key_part import KeyPart, path_text
from iproto_server.box.tuple.format import Format
from iproto_server.box.types.field_type import FieldType
from tests.box.boxes import new_box, refused, rows, state
from tests.box.index.test_index import index
from tests.plugins.profiles import examples


def nested_part(path: str, kind: str = "string", number: int = 1, *, is_nullable: bool = False) -> KeyPart:
    action = "none" if is_nullable else "default"
    return KeyPart(number, FieldType(kind), is_nullable, path=path, nullable_action=action)


def demands(*parts: KeyPart) -> Format:
    return Format.parse([], "s").with_index_parts([KeyDef([each]) for each in parts])


@pytest.fixture
def box() -> Box:
    return new_box()[0]


@pytest.fixture
def documents(box: Box) -> Space:
    """By id; by the name inside (unique); by the kind inside, which may be missing."""
    space = box.schema.create_space("documents")
    space.create_index("pk", parts=[(0, "unsigned")])
    space.create_index("name", parts=[{"field": 1, "type": "string", "path": "of[1].name"}])
    kind = {"field": 1, "type": "string", "path": "kind", "is_nullable": True}
    space.create_index("kind", parts=[kind], unique=False)
    space.insert([1, {"of": [{"name": "x"}], "kind": "k"}])
    space.insert([2, {"of": [{"name": "a"}]}])
    return space


@pytest.fixture
def tagged(box: Box) -> Space:
    """By id; by each number of a list (unique); by each text in another list."""
    space = box.schema.create_space("tagged")
    space.create_index("pk", parts=[(0, "unsigned")])
    space.create_index("number", parts=[{"field": 1, "type": "unsigned", "path": "[*]"}])
    text = {"field": 2, "type": "string", "path": "[*].text", "is_nullable": True}
    space.create_index("text", parts=[text], unique=False)
    space.insert([1, [5, 7, 5], [{"text": "b"}, {}]])
    space.insert([2, [6], [{"text": "a"}, {"text": "b"}]])
    return space


class TestRules:
    def test_places_are_told_as_paths(self) -> None:
        assert path_text(1, ()) == "2"
        assert path_text(1, ("a", 0, None)) == '[2]["a"][1][*]'

    def test_the_same_place_however_it_is_written(self) -> None:
        assert nested_part("a.b[1]").place == nested_part('["a"]["b"][1]').place == (1, ("a", "b", 0))

    @pytest.mark.parametrize(
        ("row", "text"),
        [
            ([1], 'Tuple field [2]["a"][2] required by space format is missing'),
            ([1, {}], 'Tuple field [2]["a"][2] required by space format is missing'),
            ([1, 5], "Tuple field 2 type does not match one required by operation: expected map"),
            ([1, None], "Tuple field 2 type does not match one required by operation: expected map"),
            (
                [1, {"a": {}}],
                'Tuple field [2]["a"] type does not match one required by operation: expected array',
            ),
            (
                [1, {"a": [1, 2]}],
                'Tuple field [2]["a"][2] type does not match one required by operation: expected string',
            ),
        ],
    )
    def test_rows_that_do_not_fit(self, row: list[Any], text: str) -> None:
        assert refused(demands(nested_part("a[2]")).check, row)[1] == text

    def test_parts_that_cannot_be_together(self) -> None:
        for parts, expected in (
            (
                (nested_part("a.b"), nested_part("a")),
                (
                    ErrorCode.INDEX_PART_TYPE_MISMATCH,
                    "Field [2][\"a\"] has type 'map' in one index, but type 'string' in another",
                ),
            ),
            (
                (nested_part("a.b"), nested_part("a[1]")),
                (
                    ErrorCode.INDEX_PART_TYPE_MISMATCH,
                    "Field [2][\"a\"] has type 'map' in one index, but type 'array' in another",
                ),
            ),
            (
                (nested_part("a[*]"), nested_part("a[1]")),
                (
                    ErrorCode.MULTIKEY_INDEX_MISMATCH,
                    'Field [2]["a"] is used as multikey in one index and as single key in another',
                ),
            ),
        ):
            assert refused(demands, *parts) == expected

    def test_nil_where_one_of_two_indexes_forbids_it(self) -> None:
        """Tarantool 2.6 ignores the requirements of the first index."""
        both = demands(nested_part("a"), nested_part("a", is_nullable=True))
        assert refused(both.check, [1, {"a": None}])[0] == ErrorCode.FIELD_TYPE

    def test_the_elements_of_an_array(self) -> None:
        many = demands(nested_part("[*].a"))
        for row in ([1], [1, []], [1, [{"a": "x"}, {"a": "y", "b": 5}]]):
            many.check(row)
        assert refused(many.check, [1, [{"a": "x"}, {}]])[1] == (
            'Tuple field [2][*]["a"] required by space format is missing'
        )
        assert refused(many.check, [1, ["x"]])[1] == (
            "Tuple field [2][*] type does not match one required by operation: expected map"
        )


class TestPaths:
    def test_rows_are_in_order(self, documents: Space) -> None:
        assert [row[0] for row in rows(documents, 1)] == [2, 1]
        assert [row[0] for row in rows(documents, 2)] == [2, 1]

    def test_an_update_inside_moves_the_entry(self, documents: Space) -> None:
        documents.update(1, [("=", "[2].of[1].name", "0")])
        assert [row[0] for row in rows(documents, 1)] == [1, 2]
        assert documents.index.name.get("x") is None
        documents.update(1, [("=", 1, {"of": [{"name": "z"}]})])
        assert [row[0] for row in rows(documents, 1)] == [2, 1]

    def test_a_refused_change_leaves_all_as_it_was(self, documents: Space) -> None:
        before = state(documents)
        assert refused(documents.insert, [3, {"of": [{"name": "a"}]}])[0] == ErrorCode.TUPLE_FOUND
        assert refused(documents.update, 1, [("=", "[2].of[1].name", "a")])[0] == ErrorCode.TUPLE_FOUND
        assert refused(documents.update, 1, [("=", "[2].of", 5)])[0] == ErrorCode.FIELD_TYPE
        assert state(documents) == before

    def test_keys_of_rows(self) -> None:
        primary = index([{"field": 1, "type": "string", "path": "a"}])
        found = index(
            [{"field": 1, "type": "scalar", "path": "b", "is_nullable": True}], primary=primary.key_def
        )
        values = [[1, {"a": "x"}], [2, {"a": "y", "b": 5}], [3, {"a": "z", "b": None}]]
        keys = [primary.key_of(each, b"") for each in values]
        assert keys == [primary.encode_key([name]) for name in "xyz"]
        nil, five, other_nil = (found.key_of(*each) for each in zip(values, keys, strict=True))
        assert five == found.encode_key([5])
        assert (nil, other_nil) == (found.encode_key([None]) + keys[0], found.encode_key([None]) + keys[2])


class TestManyKeys:
    def test_a_row_is_found_by_each_and_as_often(self, tagged: Space) -> None:
        assert [row[0] for row in rows(tagged, 1)] == [1, 2, 1]
        assert [row[0] for row in rows(tagged, 2)] == [1, 2, 1, 2]
        assert tagged.index.number.get(7)[0] == 1  # type: ignore[index]
        assert (tagged.index.number.len(), tagged.index.number.count(), len(tagged)) == (3, 3, 2)

    def test_changes_move_what_changes(self, tagged: Space) -> None:
        tagged.update(1, [("=", "[2][1]", 9)])
        assert [row[0] for row in rows(tagged, 1)] == [1, 2, 1, 1]
        tagged.replace([1, [], []])
        assert [row[0] for row in rows(tagged, 1)] == [2]
        tagged.delete(2)
        assert [len(each.tree) for each in tagged.index] == [1, 0, 0]

    def test_a_refused_change_leaves_all_as_it_was(self, tagged: Space) -> None:
        before = state(tagged)
        assert refused(tagged.insert, [3, [8, 7], []]) == (
            ErrorCode.TUPLE_FOUND,
            "Duplicate key exists in unique index 'number' in space 'tagged'",
        )
        assert refused(tagged.update, 2, [("!", "[2][1]", 5)])[0] == ErrorCode.TUPLE_FOUND
        assert refused(tagged.insert, [3, [None], []])[0] == ErrorCode.FIELD_TYPE
        assert state(tagged) == before

    def test_a_rollback_restores_the_keys(self, box: Box, tagged: Space) -> None:
        def change() -> None:
            tagged.replace([1, [7, 8], [{"text": "z"}]])
            tagged.delete(2)
            tagged.insert([3, [6, 6], []])
            tagged.truncate()
            tagged.insert([4, [1], []])
            raise ZeroDivisionError

        before = state(tagged)
        with pytest.raises(ZeroDivisionError):
            box.atomic(change)
        assert state(tagged) == before

    def test_loading_makes_the_same_indexes(self, box: Box, tagged: Space) -> None:
        contents = {space.id: list(space.rows()) for space in box.catalog if space.engine == "memtx"}
        loaded = new_box()[0]
        with Loader(loaded.catalog) as loader:
            for space_id, space_rows in contents.items():
                loader.load(space_id, space_rows)
            loader.finish()
        assert state(loaded.space.tagged) == state(tagged)

    def test_a_row_that_is_twice_in_a_loaded_unique_index_is_told_of_once(
        self, box: Box, tagged: Space
    ) -> None:
        contents = {space.id: list(space.rows()) for space in box.catalog if space.engine == "memtx"}
        number = tagged.core().index(1)
        contents[tagged.id].append(tagged.core().row([9, [5, 7, 100], []]).raw)
        reports: list[str] = []
        loaded = new_box()[0]
        with Loader(loaded.catalog, lambda reason, advice=None: reports.append(reason)) as loader:
            for space_id, space_rows in contents.items():
                loader.load(space_id, space_rows)
            loader.finish()
        assert reports == ["Duplicate key exists in unique index 'number' in space 'tagged': [[5, 7, 100]]"]
        assert [len(each.tree) for each in loaded.space.tagged.index] == [2, len(number), 4]

    @examples(60)
    @given(
        changes=st.lists(
            st.tuples(
                st.integers(0, 3),
                st.none() | st.lists(st.none() | st.integers(0, 4), max_size=4),
            ),
            max_size=20,
        )
    )
    def test_any_changes_leave_what_the_rows_say(
        self, changes: list[tuple[int, list[int | None] | None]]
    ) -> None:
        space = new_box()[0].schema.create_space("any")
        space.create_index("pk", parts=[(0, "unsigned")])
        part = {"field": 1, "type": "unsigned", "path": "[*]", "is_nullable": True}
        space.create_index("unique", parts=[part])
        space.create_index("all", parts=[part], unique=False)
        model: dict[int, list[int | None]] = {}
        for key, values in changes:
            if values is None:
                space.delete(key)
                model.pop(key, None)
                continue
            others = {value for other, held in model.items() if other != key for value in held}
            if others.intersection(values) - {None}:
                assert refused(space.replace, [key, values])[0] == ErrorCode.TUPLE_FOUND
            else:
                space.replace([key, values])
                model[key] = values
        entries = sorted(
            (-1 if value is None else value, key) for key, values in model.items() for value in set(values)
        )
        for name in ("unique", "all"):
            assert [row[0] for row in space.index[name].select()] == [key for _, key in entries]

    def test_a_row_may_have_very_many(self, tagged: Space) -> None:
        # With pairwise comparisons of keys this would take minutes.
        count = 40_000
        tagged.replace([3, list(range(100, 100 + count)), []])
        tagged.replace([3, list(range(101, 101 + count)), []])
        assert tagged.index["number"].len() == 3 + count
        assert tagged.index["number"].get(100) is None


class TestWhichOfSeveralFaultsIsTold:
    def test_of_indexes_that_refuse_a_row_the_first(self, box: Box, tagged: Space) -> None:
        tagged.truncate()
        tagged.create_index("fourth", parts=[(3, "unsigned")])
        tagged.insert([1, [5], [], 1])
        assert "'number'" in refused(tagged.insert, [2, [5], [], 1])[1]
        assert "'fourth'" in refused(tagged.insert, [2, [6], [], 1])[1]

    @pytest.mark.parametrize("kind", ["tree", "hash"])
    def test_of_rows_that_an_index_cannot_hold_the_first(self, box: Box, kind: str) -> None:
        space = box.schema.create_space("mixed")
        space.create_index("pk", parts=[(0, "unsigned")])
        for number, value in enumerate((1, 1, "misfit")):
            space.insert([number, value])
        assert (
            refused(space.create_index, "late", type=kind, parts=[(1, "unsigned")])[0]
            == ErrorCode.TUPLE_FOUND
        )
        space.update(1, [("=", 1, "misfit")])
        space.update(2, [("=", 1, 1)])
        assert (
            refused(space.create_index, "late", type=kind, parts=[(1, "unsigned")])[0] == ErrorCode.FIELD_TYPE
        )

    def test_of_missing_values_the_one_that_was_demanded_first(self, box: Box) -> None:
        space = box.schema.create_space("demanding")
        space.create_index("pk", parts=[(0, "unsigned")])
        for number, name in ((3, "c"), (1, "a"), (2, "b")):
            part = {"field": 1, "type": "unsigned", "path": name}
            space.create_index(name, id=number, parts=[part])
        assert '["a"]' in refused(space.insert, [1, {}])[1]


@pytest.mark.parametrize(
    ("part", "row", "field", "stored"),
    [
        ((1, "double"), [1, 0.5], 1, b"\x92\x01"),
        (("a.b", "double"), [1, {"b": 0.5}], "a.b", b"\x92\x01\x81\xa1b"),
        (("a[*].b", "double"), [1, [{"b": 0.5}]], "a[1].b", b"\x92\x01\x91\x81\xa1b"),
    ],
)
def test_sums_where_a_part_wants_a_double_are_stored_in_eight_bytes(
    part: tuple[object, str], row: list[object], field: object, stored: bytes
) -> None:
    box = Box()
    space = box.schema.create_space("doubles", format=[("id", "unsigned"), ("a", "any")])
    space.create_index("primary", parts=["id"])
    space.create_index("double", parts=[part], unique=False)
    space.insert(row)
    updated = space.update(1, [("+", field, 1)])
    assert updated is not None
    assert updated.raw == stored + b"\xcb" + struct.pack(">d", 1.5)
