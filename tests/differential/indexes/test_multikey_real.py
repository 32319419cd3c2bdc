"""Indexes of all elements of an array: a real Tarantool and our server answer alike."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.both import Both
from tests.differential.indexes.space_pair import SpacePair, part

ARRAY = [{"name": "id", "type": "unsigned"}, {"name": "l", "type": "array"}]


def test_indexes_that_cannot_be(both: Both) -> None:
    bare = SpacePair(both, primary=())
    bare.index(0, part(0, path="[*]"))
    space = SpacePair(both)
    space.index(1, part(1, path="[*]"), kind="hash")
    space.index(1, part(1, path="a[*]"), part(1, path="b[*]"))
    space.index(1, part(1, path="[*]"), part(2, path="[*]"))
    space.index(1, part(1, path="a[*][*]"))
    nullable = SpacePair(both, fields=[ARRAY[0], {"name": "l", "type": "array", "is_nullable": True}])
    nullable.index(1, part(1, path="[*]"))
    nullable.index(1, part(1, path="[*]", is_nullable=True))


@pytest.mark.parametrize("path", ["[1]", "a", "[*].a", "[*][1]", "[*]", ""])
@pytest.mark.parametrize("kind", ["unsigned", "string"])
def test_another_index_of_the_field_agrees_or_is_refused(both: Both, path: str, kind: str) -> None:
    space = SpacePair(both)
    space.index(1, part(1, path="[*]"))
    space.index(2, part(1, kind, path=path))


def test_a_row_is_found_by_each_element(both: Both) -> None:
    space = SpacePair(both)
    space.index(1, part(1, path="[*]"), unique=False)
    values: list[Any] = [None, [], [3, 1, 2, 3], [2, "x"], [2, None], [-1], {}, 7, [2, 5]]
    for number, value in enumerate(values):
        space.insert(number, value)
    space.insert(100)
    space.select()
    space.select_with_all_iterators(1, [], [2], [3], [4], [None], ["x"], [2, 2])


def test_changes_move_the_entries_that_change(both: Both) -> None:
    space = SpacePair(both)
    space.index(1, part(1, path="[*]"), unique=False)
    space.insert(1, [1, 2, 2])
    space.insert(2, [2, 3])
    for operation in (
        ["=", "[2][1]", 9],
        ["!", "[2][1]", 4],
        ["#", "[2][1]", 2],
        ["+", "[2][1]", 5],
        ["=", 2, 0],
    ):
        space.update([1], operation)
        space.select(1)
    space.replace(2, [9, 9])
    space.upsert([2, [7]], ["=", 1, [5, 6]])
    space.upsert([3, [7]], ["=", 1, [5, 6]])
    space.select(1)
    space.delete(9, index=1)
    space.update([9], ["=", 2, 1], index=1)
    space.delete(2)
    space.select(1)
    space.truncate()
    space.select(1)
    space.insert(1, [1, 1])
    space.select(1)


def test_unique_indexes_tell_rows_apart(both: Both) -> None:
    space = SpacePair(both)
    space.index(1, part(1, path="l[*].n"), part(2, "string"))
    misfits: list[Any] = [[{}], [1], [{"n": 5}, {}], [None], {}, None]
    for row in (
        [1, {"l": [{"n": 1}, {"n": 2}]}, "a"],
        [2, {"l": [{"n": 2}]}, "a"],
        [2, {"l": [{"n": 2}]}, "b"],
        [3, {"l": [{"n": 3}, {"n": 3}]}, "b"],
        [4, {"l": [{"n": 9}, {"n": 3}]}, "b"],
        *([4, {"l": value}, "b"] for value in misfits),
        [4, {}, "b"],
        [5, {"l": []}, "b"],
        [6, {"l": [{"n": 10}]}, 5],
        [6, {"l": [{"n": 10}]}],
    ):
        space.insert(*row)
    space.select_with_all_iterators(1, [], [2], [2, "a"], [2, "z"])
    space.replace(1, {"l": [{"n": 2}, {"n": 3}]}, "b")
    space.replace(1, {"l": [{"n": 2}, {"n": 3}]}, "a")
    space.update([2], ["=", "[2].l[1].n", 3])
    space.update([2, "b"], ["=", 3, "by the other index"], index=1)
    space.update([2, "b"], ["=", 2, "a"], index=1)
    space.delete(2, "a", index=1)
    space.delete(2, index=1)
    space.select(1)


def test_elements_may_be_nil_where_the_part_says_so(both: Both) -> None:
    space = SpacePair(both)
    space.index(1, part(1, path="[*].a", is_nullable=True))
    space.index(2, part(1, path="[*].b", is_nullable=True), part(2, is_nullable=True), unique=False)
    for row in (
        [1],
        [1, None],
        [1, [{}]],
        [2, [{}, {"a": None}]],
        [3, [{"a": 1}, {"a": 1, "b": 3}]],
        [4, [{"a": 1}]],
        [4, [{"a": 2}, {"b": 2}], 7],
        [5, [None]],
        [5, [5]],
        [6, []],
    ):
        space.insert(*row)
    space.select_with_all_iterators(1, [], [None], [1])
    space.select_with_all_iterators(2, [], [None], [2], [2, 7], [None, 7])
    space.delete(None, index=1)
    space.replace(2, [{"a": None}])
    space.select(1)
    space.delete(2)
    space.select(1)


def test_further_parts_and_other_types(both: Both) -> None:
    space = SpacePair(both, primary=[part(1), part(0)])
    space.index(1, part(0), part(2, "scalar", path="[*]"), unique=False)
    for row in ([1, 2, ["a", 1, True, "a", 2.5]], [1, 3, ["a", 1]], [2, 3, [1, None]], [2, 3, [1, []]]):
        space.insert(*row)
    space.select_with_all_iterators(1, [], [1], [1, "a"], [1, 1])


def test_arrays_in_arrays_and_collations(both: Both) -> None:
    space = SpacePair(both)
    space.index(1, part(1, path="a[*][2]"), unique=False)
    space.index(2, part(1, "string", path="a[*][1]", is_nullable=True, collation=2), unique=False)
    for number, value in enumerate(
        ([["x", 1], ["X", 2], ["\u1e8b", 3]], [["x"]], [[None, 1]], [["x", 1], []], [["Y", 5, None]])
    ):
        space.insert(number, {"a": value})
    space.select(1)
    space.select_with_all_iterators(2, [], ["x"], ["Y"], [None])


def test_building_an_index_of_rows_that_are_there(both: Both) -> None:
    space = SpacePair(both, fields=ARRAY)
    space.insert(1, [1, 2, 2])
    space.insert(2, [2])
    space.index(1, part(1, path="[*]"))
    space.index(1, part(1, path="[*]"), unique=False)
    space.insert(3, ["x"])
    space.alter(1, ["=", "opts", {"unique": True}])
    space.delete(2)
    space.alter(1, ["=", "opts", {"unique": True}])
    space.insert(2, [2])
    space.insert(2, [None])
    space.alter(1, ["=", "parts", [part(1, path="[*]", is_nullable=True)]])
    space.insert(2, [None])
    space.insert(3, [None, None])
    space.select_with_all_iterators(1, [], [None], [2])
    space.alter(1, ["=", "parts", [part(1, path="[*]")]])
    space.alter(0, ["=", "parts", [part(0), part(2, "string")]])
    space.alter(0, ["=", "parts", [part(0, "integer")]])
    space.select(1)
    space.drop(1)
    space.insert(4, [2])


def test_procedures_count_entries_in_the_index_and_rows_in_the_space(both: Both) -> None:
    space = SpacePair(both, fields=ARRAY)
    space.call(":create_index", "many", {"parts": [{"field": "l[*]", "type": "unsigned"}]})
    space.call(":insert", [1, [5, 6, 5]])
    space.call(":insert", [2, []])
    for method in ("len", "count", "min", "max", "select"):
        space.call(f".index.many:{method}")
    space.call(".index.many:count", [5])
    space.call(".index.many:get", [6])
    space.call(".index.many:update", [6], [["=", 2, [7]]])
    space.call(":len")
    space.call(":count")
    space.call(":bsize")
