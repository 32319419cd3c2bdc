"""Rows of `_index`: parsed definitions, and errors of invalid ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pytest

from iproto_server.box.index.index_def import IndexDef
from iproto_server.box.key.key_part import KeyPart
from iproto_server.box.types.field_type import FieldType
from iproto_server.errors import BoxError

UNIQUE: Final = {"unique": True}
ID: Final = [[0, "unsigned"]]


@dataclass(frozen=True)
class Case:
    """A row of `_index`, and its expected result.

    Attributes:
        row: all of it; the space is number 512.
        theirs: number and text of Tarantool's error; None when it accepts the row.
        ours: the same of this server where it differs.
    """

    row: list[Any]
    theirs: tuple[int, str] | None = None
    ours: tuple[int, str] | None = None

    @property
    def index_id(self) -> int:
        """The index's number."""
        number: int = self.row[1]
        return number

    def __str__(self) -> str:
        return repr(self.row[1:])[:60]


def case(
    theirs: tuple[int, str] | None,
    parts: Any = ID,
    options: Any = UNIQUE,
    kind: str = "tree",
    *,
    index_id: int = 5,
    name: str = "x",
    ours: tuple[int, str] | None = None,
) -> Case:
    return Case([512, index_id, name, kind, options, parts], theirs, ours)


def modify(reason: str, name: str = "x") -> tuple[int, str]:
    return 14, f"Can't create or modify index '{name}' in space 's': {reason}"


def parts_error(reason: str) -> tuple[int, str]:
    return 107, f"Wrong index parts: {reason}; expected field1 id (number), field1 type (string), ..."


def options_error(reason: str, field: int = 4) -> tuple[int, str]:
    return 108, f"Wrong index options (field {field}): {reason}"


def unsupported(what: str) -> tuple[int, str]:
    return 5, f"This server does not support {what}"


def part(**options: Any) -> list[dict[str, Any]]:
    return [{"field": 0, "type": "unsigned", **options}]


CASES: Final = [
    # valid rows
    case(None),
    case(None, kind="TREE"),
    case(None, kind="hash"),
    case(None, options={}),
    case(None, [[0, "NUM"], [1, "str"], [2, "Unsigned", "more"]]),
    case(None, [[20, "integer"]]),
    case(None, part(is_nullable=True, field=1)),
    case(None, part(type="STRING", field=1, collation=0)),
    case(None, part(type="scalar", field=1, collation=3)),
    case(None, part(type="string", field=1, nullable_action="default", sort_order="desc", path="")),
    case(None, part(nullable_action="no such action")),
    case(None, [{"type": "unsigned"}]),
    # paths and collations
    case(None, part(field=8, path="a.b")),
    case(None, part(field=8, path="[*]")),
    case(None, [*part(field=8, path="a[*].b"), *part(field=8, path='["a"][*].c'), *part()]),
    case(None, part(type="string", field=1, collation=1)),
    case(None, part(type="scalar", field=1, collation=276, path="a")),
    case(None, part(collation=0)),
    case(
        None, options={"unique": True, "dimension": 3, "distance": "euclid", "lsn": 5, "sql": "x", "func": 0}
    ),
    case(None, options={"range_size": 0, "page_size": 1, "run_count_per_level": 1, "run_size_ratio": 2}),
    case(None, index_id=127),
    # the row
    Case(
        [512, 7, "q", "tree", UNIQUE, ID, -1],
        (
            106,
            "Wrong record in _index space: got {unsigned, unsigned, string, string, map, array, integer}, "
            "expected {space id (unsigned), index id (unsigned), name (string), type (string), "
            "options (map), parts (array)}",
        ),
    ),
    case((13, "Unsupported index type supplied for index 'x' in space 's'"), kind="zz"),
    case((70, "Invalid identifier '' (expected printable symbols only or it is too long)"), name=""),
    case(modify("index name is too long", "a" * 64), name="a" * 65001),
    case(modify("index id too big"), index_id=128),
    # parts as lists
    case(options_error("index part is expected to be a map", 1), ["x"]),
    case(parts_error("expected a non-empty array"), [[]]),
    case(parts_error("a field type is missing"), [[0]]),
    case(parts_error("field id must be an integer"), [["a", "unsigned"]]),
    case(parts_error("field id must be an integer"), [[-1, "unsigned"]]),
    case(parts_error("field id must be an integer"), [[0.5, "unsigned"]]),
    case(parts_error("field type must be a string"), [[0, 1]]),
    case(parts_error("unknown field type"), [[0, "zzz"]]),
    case(parts_error("expected an array"), [[0, "unsigned"], {"field": 1, "type": "string"}]),
    case(modify("field no is too big"), [[32768, "unsigned"]]),
    case(modify("same key part is indexed twice"), [[0, "unsigned"], [0, "unsigned"]]),
    case(modify("too many key parts"), [[number, "unsigned"] for number in range(256)]),
    *(
        case(modify(f"field type '{name}' is not supported"), [[2, name]], kind=kind)
        for name in ("any", "array", "map")
        for kind in ("tree", "hash")
    ),
    # parts as maps
    case(options_error("index part is expected to be a map", 2), [*part(), [1, "string"]]),
    case(options_error("index part: unknown field type", 1), [{"field": 0}]),
    case(options_error("index part: unknown field type", 1), part(type="zzz")),
    case(options_error("'type' must be enum", 1), part(type=1)),
    *(
        case(options_error("'field' must be unsigned", 1), part(field=value))
        for value in ("a", -1, 0.5, None)
    ),
    case(options_error("unexpected option 'zzz'", 1), part(zzz=1)),
    case(options_error("key must be a string", 1), [{"field": 0, "type": "unsigned", 7: 1}]),
    case(options_error("'is_nullable' must be boolean", 1), part(is_nullable=1)),
    case(options_error("'collation' must be unsigned", 1), part(type="string", collation="unicode")),
    case(options_error("collation is reasonable only for string and scalar parts", 1), part(collation=1)),
    case(options_error("collation was not found by ID", 1), part(type="string", field=1, collation=99999)),
    case(
        options_error("index part: conflicting nullability and nullable action properties", 1),
        part(nullable_action="none"),
    ),
    case(options_error("'path' must be string", 1), part(path=1)),
    case(options_error("invalid path", 1), part(field=8, path="a..b")),
    # options
    case(options_error("'unique' must be boolean"), options={"unique": "x"}),
    case(options_error("'unique' must be boolean"), options={"unique": None}),
    case(options_error("unexpected option 'zzz'"), options={"zzz": 1}),
    case(options_error("key must be a string"), options={7: 1}),
    case(options_error("distance must be either 'euclid' or 'manhattan'"), options={"distance": "zzz"}),
    case(options_error("'bloom_fpr' must be float"), options={"bloom_fpr": "x"}),
    case(
        options_error("bloom_fpr must be greater than 0 and less than or equal to 1"),
        options={"bloom_fpr": 3},
    ),
    *(
        case(
            options_error("page_size must be greater than 0 and less than or equal to range_size"),
            options=options,
        )
        for options in ({"page_size": 0}, {"page_size": -1}, {"range_size": 10})
    ),
    case(options_error("run_count_per_level must be greater than 0"), options={"run_count_per_level": 0}),
    case(options_error("run_size_ratio must be greater than 1"), options={"run_size_ratio": 0.5}),
    # requirements of index types
    case(modify("HASH index must be unique"), options={"unique": False}, kind="hash"),
    case((5, "HASH does not support nullable parts"), part(field=1, is_nullable=True), kind="hash"),
    case(modify("RTREE index can not be unique"), [[9, "array"]], kind="rtree"),
    case(modify("RTREE index field type must be ARRAY"), options={"unique": False}, kind="rtree"),
    case(modify("RTREE index key can not be multipart"), [[9, "array"], [8, "array"]], {}, kind="rtree"),
    case(modify("BITSET can not be unique"), kind="bitset"),
    case(
        modify("BITSET index field type must be NUM or STR"),
        [[4, "number"]],
        {"unique": False},
        kind="bitset",
    ),
    case(modify("HASH index cannot be multikey"), part(field=9, path="[*]"), kind="hash"),
    # the primary index
    case(
        (152, "Primary index of space 's' can not contain nullable parts"), part(is_nullable=True), index_id=0
    ),
    case(modify("primary key must be unique"), options={"unique": False}, index_id=0),
    case(modify("primary key cannot be multikey"), part(path="[*]"), index_id=0),
    case(modify("primary key can not use a function"), options={"func": 1}, index_id=0),
    case(modify("HASH index cannot be multikey"), part(field=8, path="[*]"), kind="hash"),
    case(
        options_error("incompatable multikey index path", 2),
        [*part(field=8, path="a[*]"), *part(field=8, path="b[*]")],
    ),
    case(
        options_error("incompatable multikey index path", 2),
        [*part(field=8, path="[*]"), *part(field=9, path="[*]")],
    ),
    case(
        options_error("no more than one array index placeholder [*] is allowed in JSON path", 1),
        part(field=8, path="a[*].b[*]"),
    ),
    case(
        modify("same key part is indexed twice"),
        [*part(field=8, path="a.b"), *part(field=8, path='["a"]["b"]')],
    ),
    case(
        modify("BITSET index cannot be multikey"), part(path="[*]", field=8), {"unique": False}, kind="bitset"
    ),
    # unsupported features of Tarantool
    case(None, [[9, "array"]], {"unique": False}, kind="rtree", ours=unsupported("RTREE indexes")),
    case(None, options={"unique": False}, kind="bitset", ours=unsupported("BITSET indexes")),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rows(case: Case) -> None:
    expected = case.ours or case.theirs
    if expected is None:
        definition = IndexDef.parse(case.row, "s")
        assert [definition.id, definition.name] == case.row[1:3]
        return
    with pytest.raises(BoxError) as caught:
        IndexDef.parse(case.row, "s")
    assert (caught.value.code, caught.value.message) == expected


def test_a_definition() -> None:
    row = [
        512,
        3,
        "status",
        "tree",
        {"unique": False},
        [{"field": 1, "type": "str", "is_nullable": True}, {"field": 0, "type": "num"}],
    ]
    definition = IndexDef.parse(row, "s")
    assert (definition.space_id, definition.type, definition.is_unique) == (512, "TREE", False)
    assert definition.key_def.parts == (
        KeyPart(1, FieldType.STRING, is_nullable=True, nullable_action="none"),
        KeyPart(0, FieldType.UNSIGNED),
    )


def test_an_index_is_unique_unless_it_says_otherwise() -> None:
    assert IndexDef.parse(case(None, options={}).row, "s").is_unique


def test_a_path_of_very_many_steps_is_refused() -> None:
    IndexDef.parse(case(None, part(field=1, path="a" + ".a" * 198)).row, "s")
    with pytest.raises(BoxError) as caught:
        IndexDef.parse(case(None, part(field=1, path="a" + ".a" * 100_000)).row, "s")
    assert caught.value.message == "This server does not support paths of so many steps in an index part"


@pytest.mark.parametrize("value", [True, False])
def test_parts_know_no_exclude_null(value: bool) -> None:
    row = case(None, part(is_nullable=True, exclude_null=value)).row
    with pytest.raises(BoxError) as caught:
        IndexDef.parse(row, "s")
    assert caught.value.message == "Wrong index options (field 1): unexpected option 'exclude_null'"
