"""DDL on rows that are there: what is done at once in compiled code has the result of a look at each row."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iproto_server import BoxError
from iproto_server.box.index.index import Index
from iproto_server.box.index.tree_index import TreeIndex
from iproto_server.box.memtx.indexed_space import IndexedSpace
from iproto_server.box.tuple.format import Format
from iproto_server.codec import msgpack as codec
from tests.box.boxes import new_box

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.lists(st.integers(0, 3), max_size=2),
    st.dictionaries(st.text(max_size=1), st.integers(0, 3), max_size=1),
)
TYPES = st.sampled_from(
    [
        "any",
        "unsigned",
        "string",
        "number",
        "double",
        "integer",
        "boolean",
        "varbinary",
        "scalar",
        "array",
        "map",
    ]
)
FORMATS = st.lists(st.tuples(TYPES, st.booleans()), max_size=4)


def format_of(fields: list[tuple[str, bool]], exact_field_count: int = 0) -> Format:
    rows = [
        {"name": f"f{number}", "type": kind, "is_nullable": is_nullable}
        for number, (kind, is_nullable) in enumerate(fields)
    ]
    return Format.parse(rows, "s", exact_field_count)


def fits(format_: Format, row: list[Any]) -> bool:
    try:
        format_.check(row)
    except BoxError:
        return False
    return True


class TestImplication:
    @given(
        FORMATS, FORMATS, st.sampled_from([0, 4, 5]), st.sampled_from([0, 4, 5]), st.lists(VALUES, max_size=6)
    )
    @settings(max_examples=300)
    def test_a_row_fits_what_its_format_implies(
        self,
        one: list[tuple[str, bool]],
        other: list[tuple[str, bool]],
        exact: int,
        other_exact: int,
        row: list[Any],
    ) -> None:
        new, old = format_of(one, exact), format_of(other, other_exact)
        if new.is_implied_by(old) and fits(old, row):
            assert fits(new, row)

    @pytest.mark.parametrize(
        ("new", "old", "is_implied"),
        [
            ([("unsigned", False)], [("unsigned", False)], True),
            ([("integer", False)], [("unsigned", False)], True),
            ([("unsigned", False)], [("integer", False)], False),
            ([("unsigned", True)], [("unsigned", False)], True),
            ([("unsigned", False)], [("unsigned", True)], False),
            ([("unsigned", False), ("any", True)], [("unsigned", False)], True),
            ([("unsigned", False), ("any", False)], [("unsigned", False)], False),
            ([("unsigned", False), ("string", True)], [("unsigned", False)], False),
            ([], [("unsigned", False)], True),
        ],
    )
    def test_it_is_found(
        self, new: list[tuple[str, bool]], old: list[tuple[str, bool]], is_implied: bool
    ) -> None:
        assert format_of(new).is_implied_by(format_of(old)) is is_implied

    def test_inside_fields_it_follows_from_the_parts_of_indexes(self) -> None:
        box, _ = new_box()
        space = box.schema.create_space("s")
        space.create_index("pk", parts=[[0, "unsigned"]])
        space.create_index("inside", parts=[{"field": 1, "type": "string", "path": "a.b"}])
        assert space.core().format.is_implied_by(space.core().format)
        before = space.core().format
        space.create_index("other", parts=[{"field": 1, "type": "string", "path": "a.c"}])
        assert not space.core().format.is_implied_by(before)
        assert before.is_implied_by(space.core().format)


class TestFormats:
    def test_other_names_are_given_to_fields_without_a_look_at_rows(self) -> None:
        box, _ = new_box()
        space = box.schema.create_space("s", format=[{"name": "id", "type": "unsigned"}, {"name": "a"}])
        space.create_index("pk")
        space.insert([1, "x"])

        def look(*arguments: object) -> None:
            raise AssertionError("a row is looked at")

        with patch.object(IndexedSpace, "rows", look), patch.object(TreeIndex, "rows_fit", look):
            space.format(
                [{"name": "id", "type": "integer"}, {"name": "b"}, {"name": "c", "is_nullable": True}]
            )
        assert [row["b"] for row in space.select()] == ["x"]

    @given(FORMATS, st.lists(st.lists(VALUES, min_size=1, max_size=3), max_size=3))
    @settings(max_examples=100)
    def test_the_error_is_that_of_the_first_row_that_does_not_fit(
        self, fields: list[tuple[str, bool]], tails: list[list[Any]]
    ) -> None:
        box, _ = new_box()
        space = box.schema.create_space("s")
        space.create_index("pk", parts=[[0, "unsigned"]])
        for number, tail in enumerate(tails):
            space.insert([number, *tail])
        wanted = [("unsigned", False), *fields]
        expected = None
        for row in space.core().rows():
            try:
                format_of(wanted).check(codec.unpack(row))
            except BoxError as error:
                expected = (error.code, error.message)
                break
        assert failure(lambda: space.format(format_rows(wanted))) == expected


class TestIndexes:
    @pytest.mark.parametrize("kind", ["TREE", "HASH"])
    @given(
        st.lists(st.tuples(st.one_of(st.text(max_size=2), st.integers(0, 5)), st.integers(0, 3)), max_size=8),
        st.sampled_from(["string", "unsigned", "scalar"]),
        st.booleans(),
    )
    @settings(max_examples=60)
    def test_one_is_filled_as_it_is_row_by_row(
        self, kind: str, rows: list[tuple[Any, int]], type_: str, is_unique: bool
    ) -> None:
        found = []
        for build in (TreeIndex.build_from, Index.build_from):
            box, _ = new_box()
            space = box.schema.create_space("s")
            space.create_index("pk", parts=[[0, "unsigned"]])
            for number, (value, other) in enumerate(rows):
                space.insert([number, value, other])
            with patch.object(TreeIndex, "build_from", build):
                options: dict[str, Any] = {"parts": [[1, type_]], "unique": is_unique or kind == "HASH"}
                error = failure(partial(space.create_index, "other", type=kind, **options))
            entries = None if error else list(space.core().indexes[1].items())
            found.append((error, entries))
        assert found[0] == found[1]


class TestCounts:
    @pytest.mark.parametrize("iterator", ["EQ", "REQ", "GE", "GT", "LE", "LT", "ALL"])
    def test_rows_are_counted_without_a_look_at_them(self, iterator: str) -> None:
        box, _ = new_box()
        space = box.schema.create_space("s")
        space.create_index("pk", parts=[[0, "unsigned"]])
        other = space.create_index("other", parts=[[1, "unsigned"], [2, "string"]], unique=False)
        for number in range(500):
            space.insert([number, number % 7, "ab"[number % 2]])
        for index in (space.index["pk"], other):
            for key in ([], [0], [3], [6], [7], [499], [500]):
                expected = len(index.select(key, iterator=iterator))
                with patch.object(IndexedSpace, "iterate", side_effect=AssertionError):
                    assert index.count(key, iterator=iterator) == expected

    def test_a_wrong_key_is_an_error(self) -> None:
        box, _ = new_box()
        space = box.schema.create_space("s")
        space.create_index("pk", parts=[[0, "unsigned"]])
        space.create_index("hash", type="HASH", parts=[[0, "unsigned"]])
        wrong: list[Callable[[], object]] = [
            lambda: space.count("x", iterator="GE"),
            lambda: space.count([1, 2], iterator="GE"),
            lambda: space.index["hash"].count([1], iterator="GE"),
        ]
        assert [failure(count)[0] for count in wrong] == [18, 31, 112]


def format_rows(fields: list[tuple[str, bool]]) -> list[dict[str, Any]]:
    return [
        {"name": f"f{number}", "type": kind, "is_nullable": is_nullable}
        for number, (kind, is_nullable) in enumerate(fields)
    ]


def failure(do: Callable[[], object]) -> Any:
    """Code and text of an error; None without one."""
    try:
        do()
    except BoxError as error:
        return error.code, error.message
    return None
