"""Indexes inside fields: a real Tarantool and our server answer alike."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.differential.both import Both
from tests.differential.indexes.space_pair import SpacePair, part

ID_AND_MAP: Final[list[dict[str, Any]]] = [{"name": "id", "type": "unsigned"}, {"name": "m", "type": "map"}]


@pytest.fixture
def nested(both: Both) -> SpacePair:
    """Create a space with a unique index of the value at `a.b[2].c` in the second field."""
    space = SpacePair(both)
    assert space.index(1, part(1, "string", path="a.b[2].c")).ok
    return space


def document(text: Any, first: Any = 1) -> Any:
    return {"a": {"b": [first, {"c": text}]}}


@pytest.mark.parametrize(
    "value",
    [
        *(2, None, [], {}, {"a": 1}, {"a": {}}, {"a": {"b": 1}}, {"a": {"b": []}}, {"a": {"b": [1]}}),
        *({"a": {"b": [1, 2]}}, {"a": {"b": [1, {}]}}, document(1), document(None), document("fits")),
        {1: 2, "a": {"b": [{}, {"other": [], "c": "fits"}, None]}},
    ],
    ids=str,
)
def test_rows_must_have_what_the_path_leads_to(nested: SpacePair, value: Any) -> None:
    nested.insert(1)
    nested.insert(1, value)
    nested.select(1)


def test_rows_are_found_by_it(nested: SpacePair) -> None:
    for number, text in enumerate("cab"):
        nested.insert(number, document(text))
    nested.insert(9, document("a"))
    nested.select_with_all_iterators(1, [], ["a"], ["aa"], ["c"], [1], [None], ["a", "b"])


def test_updates_of_what_is_inside_move_the_entry(nested: SpacePair) -> None:
    nested.insert(1, document("x"))
    nested.insert(2, document("y"))
    path = "[2].a.b[2].c"
    for operation in (
        ["=", path, "z"],
        ["=", path, "y"],
        ["=", path, 7],
        ["#", path, 1],
        [":", path, 1, 0, "q"],
    ):
        nested.update([1], operation)
        nested.select(1)
    nested.update(["y"], ["=", 2, "by the other index"], index=1)
    nested.upsert([1, document("new")], ["=", path, "upserted"])
    nested.upsert([3, document("new")], ["=", path, "upserted"])
    nested.replace(1, document("replaced"))
    nested.delete("upserted", index=1)
    nested.delete("new", index=1)
    nested.select(1)


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        *(("string", "a"), ("string", "a.b"), ("string", "a.b[1]"), ("string", "a.b[1].c")),
        *(("string", "a.b[*].c"), ("string", "[2]"), ("string", "[*]"), ("unsigned", 'a["b"][2]["c"]')),
        *(("scalar", "a.b[2].c"), ("string", "a."), ("string", "[0]"), ("string", "a..b"), ("string", "a[")),
        *(("any", "z"), ("map", "a"), ("array", "a.b"), ("string", "")),
    ],
)
def test_paths_of_another_index_agree_or_are_refused(nested: SpacePair, kind: str, path: str) -> None:
    nested.index(2, part(1, kind, path=path), unique=False)
    nested.insert(1, document("x", {"c": "y"}))
    nested.select(2)


def test_one_place_is_indexed_once(nested: SpacePair) -> None:
    nested.index(2, part(1, "string", path="a.b[2].c"), part(1, "string", path='["a"]["b"][2].c'))
    nested.index(2, part(1, "string"))


def test_a_nullable_path_may_lead_nowhere(both: Both) -> None:
    space = SpacePair(both)
    space.index(1, part(5, "string", path="q", is_nullable=True))
    space.index(2, part(5, "string", path="q", is_nullable=True), part(0), unique=False)
    rows: list[list[Any]] = [[1], [2, 1, 1, 1, 1, None], [3, 1, 1, 1, 1, {}], [4, 1, 1, 1, 1, {"q": None}]]
    rows += [
        [5, 1, 1, 1, 1, {"q": "text"}],
        [6, 1, 1, 1, 1, {"q": "text"}],
        [7, 1, 1, 1, 1, {"q": 5}],
        [8, 1, 1],
    ]
    for row in rows:
        space.insert(*row)
    for index in (1, 2):
        space.select_with_all_iterators(index, [], [None], ["text"], ["z"])


@pytest.mark.parametrize("is_nullable", [True, False])
def test_a_path_through_a_field_that_may_be_nil(both: Both, is_nullable: bool) -> None:
    space = SpacePair(both, fields=[ID_AND_MAP[0], {"name": "m", "type": "any", "is_nullable": True}])
    space.index(1, part(1, "string", path="a", is_nullable=is_nullable))
    for row in ([1], [2, None], [3, {}], [4, {"a": None}], [5, {"a": "x"}]):
        space.insert(*row)
    space.select(1)


def test_a_primary_key_inside_fields(both: Both) -> None:
    fields = [
        *ID_AND_MAP,
        {"name": "n", "type": "array", "is_nullable": True},
        {"name": "s", "type": "string"},
    ]
    space = SpacePair(both, fields=fields, primary=[part(1, path="id"), part(4, "scalar", path="x")])
    space.index(1, part(3, "string", path="x"))
    space.index(1, part(2, "string", path="x"))
    space.index(1, part(2, "string", path="[1]"))
    for row in (
        [1, {"id": 5}, None, "s", {"x": 1}],
        [1, {"id": 5}, ["k"], "s", {"x": 1}],
        [2, {"id": 5}, ["k"], "s", {"x": 2}],
        [2, {"id": 5}, ["l"], "s", {"x": 1}],
        [2, {"id": 5}, ["l"], "s", {"x": 2.5}],
        [3, {"id": 5}, ["m"], "s", {}],
        [3, {"id": 5}, ["m"], "s", 5],
        [3, {"id": 5}, ["m"], "s"],
        [3, {"id": -5}, ["m"], "s", {"x": 2}],
    ):
        space.insert(*row)
    space.select_with_all_iterators(0, [], [5], [5, 2.5], [4])
    space.update([5, 1], ["=", "m.id", 6])
    space.update([5, 1], ["=", "m.other", 6])
    space.update([5, 1], ["=", 1, {"id": 5, "z": 1}])
    space.update([5, 1], ["=", 1, {"id": 7, "z": 1}])
    space.upsert([2, {"id": 5}, ["l"], "s", {"x": 2.5}], ["=", "m.id", 9])
    space.upsert([2, {"id": 5}, ["l"], "s", {"x": 2.5}], ["=", 0, 77])
    space.delete(5, 1)
    space.select()


def test_of_several_faults_the_same_one_is_told(both: Both) -> None:
    space = SpacePair(both)
    space.index(1, part(1, "string", path="a"), part(1, "string", path="b.c"), part(3, "string"))
    for row in (
        [],
        [1, {"b": {"c": 1}, "a": 2}, 1],
        [1, {"a": "1"}, 1, 1],
        [1, {"a": "1"}, 1],
        [1, {"a": "1"}, 1, "1"],
        ["1", {"a": "1"}],
        [1, {1: 2, "b": {"c": "x"}, "a": "1"}, 1, "1"],
    ):
        space.insert(*row)
    space.select(1)


@pytest.mark.parametrize("change", ["nothing", "truncate", "rename", "alter", "again", "new", "dropped"])
def test_of_several_missing_values_the_same_one_is_told(both: Both, change: str) -> None:
    space = SpacePair(both)
    for number, name in ((2, "b"), (4, "d"), (1, "a"), (3, "c")):
        space.index(number, part(1, path=name))
    match change:
        case "truncate":
            space.truncate()
        case "rename":
            space.alter(1, ["=", "name", "renamed"])
        case "alter":
            space.alter(1, ["=", "parts", [part(2, path="a")]])
        case "again":
            space.alter(1, ["=", "name", "i1"])
        case "new":
            space.index(5, part(1, path="e"))
        case "dropped":
            space.drop(4)
    for row in ([1], [1, {}], [1, {"b": 1}], [1, {"a": 1}], [1, {"a": 1, "d": 1}]):
        space.insert(*row)


def test_hash_indexes_of_what_is_inside(both: Both) -> None:
    space = SpacePair(both, fields=ID_AND_MAP, kind="hash")
    space.index(1, part(1, "string", path="a"), kind="hash")
    space.index(2, part(1, "string", path="a", is_nullable=True), kind="hash")
    for row in ([1, {"a": "x"}], [2, {"a": "x"}], [2, {"a": "y"}], [3, {}]):
        space.insert(*row)
    space.select(1, "x")
    space.update([1], ["=", "m.a", "z"])
    space.select(1, "x")
    space.select(1, "z")


def test_altering_an_index_with_rows_in_it(both: Both) -> None:
    space = SpacePair(both)
    space.insert(1, {"a": "2", "b": "x", "n": 1})
    space.insert(2, {"a": "1", "b": "x", "n": 2, "more": None})
    space.index(1, part(1, "string", path="a"))
    for number, parts in (
        (1, [part(1, "string", path="b")]),
        (1, [part(1, "string", path="z")]),
        (1, [part(1, "unsigned", path="a")]),
        (1, [part(1, "unsigned", path="n")]),
        (1, [part(1, "unsigned", path="more", is_nullable=True)]),
        (0, [part(1, "string", path="b")]),
        (0, [part(1, "string", path="a")]),
    ):
        space.alter(number, ["=", "parts", parts])
        space.select(number)
    space.select(0, "1")
    space.drop(0)
    space.drop(1)
    space.drop(0)


def test_procedures_tell_of_paths(both: Both) -> None:
    space = SpacePair(both, fields=ID_AND_MAP)
    space.call(":create_index", "a", {"parts": [["m.x", "string"]]})
    space.call(":create_index", "b", {"parts": [["[2].y", "string"]]})
    space.call(
        ":create_index", "c", {"parts": [{"field": 2, "path": "z", "type": "string", "is_nullable": True}]}
    )
    space.call(":create_index", "d", {"parts": [["zz.x", "unsigned"]]})
    space.call(":create_index", "e", {"parts": [{"field": 2, "path": "x..y", "type": "unsigned"}]})
    space.call(":insert", [1, {"x": "a", "y": "b"}])
    space.call(".index.b:get", ["b"])
