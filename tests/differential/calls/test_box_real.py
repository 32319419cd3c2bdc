"""The functions under `box.` with every form of argument, valid and invalid: equal answers from both servers.

Deliberately different (`DIFFERENT` has our answers):

- A failure inside Tarantool's own Lua, whose text has a position in its source, is a plain error here.
- Lua's own functions and tables cannot be called, nor functions for use within a server (`pairs`).
- JSON paths in index parts are refused as such, whatever the format says about the field.

Not asked, because Tarantool 2.6.0 does not survive it: rights on all objects of a type, granted by somebody
who is not admin. Nor what it does by halves: dropping a system space or a function of SQL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.differential.both import Both
from tests.differential.calls.box_calls import FORMAT, ID, T, ask, choices, rows
from tests.differential.ddl.system_rows import INDEX

SEVEN_TYPES_OF_FIELD: list[Any] = [
    "a",
    ["b"],
    ["c", "unsigned"],
    {"name": "d"},
    {"name": "e", "type": "string"},
    {1: "f"},
    {1: "g", 2: "string"},
    {1: "h", "type": "string"},
    {"name": "i", 1: "string"},
    {"name": "j", "type": "STRING", "is_nullable": True},
    {"name": "k", "extra": 1},
]


# -- spaces --

CREATE = "box.schema.space.create"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        [None],
        [5],
        [["x"]],
        ["x", 5],
        ["x", "y"],
        *(
            ["x", options]
            for options in (
                {"id": "a"},
                {"id": True},
                {"nope": 1},
                {"if_not_exists": 1},
                {"format": 5},
                {"user": True},
                {"id": ID, "user": "nobody"},
                {"id": ID, "user": 999},
                {"id": 0},
                {"id": -1},
                {"id": 2**31},
                {"id": ID, "field_count": -1},
                {"id": ID, "engine": "nope"},
                {"id": ID, "is_local": True, "is_sync": True},
                {"id": ID, "format": [5]},
                {"id": ID, "format": [{}]},
                {"id": ID, "format": [[]]},
                {"id": ID, "format": [{"name": 5}]},
                {"id": ID, "format": [{"name": "a", "type": 5}]},
                {"id": ID, "format": [["a", 5]]},
                {"id": ID, "format": [["a", "nope"]]},
                {"id": ID, "format": [["a", "string", 7]]},
                {"id": ID, "format": [{"name": "a", 2: "string"}]},
                {"id": ID, "format": [{"name": "a", 1: "b", "type": "any"}]},
                {"id": ID, "format": [{"name": "a", "collation": "nope"}]},
                {"id": ID, "format": ["a", "a"]},
                {"id": ID, "format": ["a", "b"], "field_count": 1},
            )
        ),
        ["", {"id": ID}],
        ["a\x02", {"id": ID}],
        ["_space", {"id": ID}],
    ],
    ids=str,
)
def test_refused_spaces(both: Both, arguments: list[Any]) -> None:
    assert not both.call(CREATE, *arguments).ok


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"format": SEVEN_TYPES_OF_FIELD},
        {"format": [{"name": "a", "type": "string", "collation": "unicode_ci"}]},
        {"format": {}},
        {"temporary": True, "is_local": True, "field_count": 3},
        {"temporary": False, "is_local": False},
        {"is_sync": False},
        {"user": "admin"},
        {"user": 0},
        {"field_count": 2.0},
    ],
    ids=str,
)
def test_spaces(both: Both, make_space: Callable[..., None], options: dict[str, Any]) -> None:
    make_space(**options)
    both.call(f"box.space.{T}:format")
    both.call(CREATE, T)
    both.call(CREATE, "x", {"id": ID})


@pytest.mark.parametrize(
    "method",
    ["len", "count", "select", "bsize", "truncate", "auto_increment", "format", "rename", "min", "nope"],
)
def test_a_space_without_an_index(both: Both, make_space: Callable[..., None], method: str) -> None:
    make_space(format=FORMAT)
    both.call(f"box.space.{T}:{method}")


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("get", [1]),
        ("insert", [[1, "x"]]),
        ("replace", [[1, "x"]]),
        ("put", [[1, "x"]]),
        ("insert", [[1]]),
        ("update", [1, []]),
        ("upsert", [[1, "x"], []]),
        ("upsert", [[1], []]),
        ("delete", [1]),
    ],
    ids=str,
)
def test_rows_without_an_index(
    both: Both, make_space: Callable[..., None], method: str, arguments: list[Any]
) -> None:
    make_space(format=FORMAT)
    assert not both.call(f"box.space.{T}:{method}", *arguments).ok


@pytest.mark.parametrize(
    "name",
    [
        "box.space.words.name",
        "box.space.nope:len",
        "box.space.words.index.nope:len",
        "box.space:len",
        "box.space.words:",
        "box.space.words:len:len",
        "box.space.words.index:len",
        "box.space..words:len",
        "box.space.words:len.x",
        "box.space.words:index.nope",
        "box.nope",
        "box.schema.nope",
        ":len",
        "",
        ".",
        "box.",
    ],
)
def test_names_of_nothing(both: Both, make_space: Callable[..., None], name: str) -> None:
    make_space()
    assert not both.call(name).ok


# -- indexes --

INDEXES: list[Any] = [
    None,
    {},
    *choices("type", "TREE", "tree", "hash", "HASH", "nope", 5),
    *choices(
        "parts",
        [1],
        ["a"],
        ["a", "b"],
        [1, 2],
        ["a", "string"],
        [1, "unsigned"],
        [1, "unsigned", 2, "string"],
        [1, "unsigned", 2],
        [1, "unsigned", "b", "string"],
        [0, "unsigned"],
        [1, "unsigned", 0, "unsigned"],
        [1, "unsigned", 2, 3],
        [[1]],
        [["a"]],
        [[1, "unsigned"], [2, "string"]],
        [[1, "NUM"], [2, "STR"]],
        [[1, "unsigned"], "b"],
        ["a", [2, "string"]],
        [{"field": 1}],
        [{"field": "b"}],
        [{"field": 1, "type": "uint"}, {"field": 2, "type": "Str"}],
        [{"field": 3}],
        [{"field": "n"}],
        [{"field": "n", "is_nullable": False}],
        [{"field": 1, "is_nullable": False}],
        [{"field": 1, "is_nullable": 1}],
        ["a.x"],
        [{"field": 2, "type": "string", "collation": "binary"}],
        [{"field": 2, "collation": "BINARY"}],
        [{"field": 2, "type": "string", "collation": "nope"}],
        [{"field": 1, "collation": "binary"}],
        [{"field": 1, "nope": 3}],
        [{"field": 1, "type": "string"}],
        [],
        {},
        5,
        "a",
        [{}],
        [[]],
        [[None]],
        [True],
        [0],
        [-1],
        [9],
        [1.0],
        ["nope"],
        ["[0]"],
        ["[1]"],
        ['["a"]'],
        ["['a']"],
        [".a"],
        [[1, 5]],
        [[1, "nope"]],
        [[1, "any"]],
        [[1, "unsigned", 3]],
    ),
    *choices("unique", True, False, 1),
    *choices("id", 0, 1, -1, "x", 0.0),
    {"if_not_exists": "x"},
    {"nope": 1},
    {"hint": True},
    5,
    "x",
    *choices("dimension", 2, "x"),
    *choices("distance", "nope", "euclid"),
    {"page_size": -1},
    {"bloom_fpr": 2},
    {"run_count_per_level": 0},
]


@pytest.mark.parametrize("options", INDEXES, ids=str)
def test_primary_indexes(both: Both, make_space: Callable[..., None], options: object) -> None:
    make_space(format=FORMAT)
    both.call(f"box.space.{T}:create_index", "i", options)
    rows(both, INDEX, ID)
    both.call(f"box.space.{T}:insert", [1, "x"])


def test_names_and_numbers_of_indexes(both: Both, make_space: Callable[..., None]) -> None:
    make_space(format=FORMAT)
    calls: list[tuple[Any, ...]] = [
        ("create_index",),
        ("create_index", 5),
        ("create_index", ""),
        ("create_index", "a.b"),
        ("create_index", "a:b", {"parts": [2], "unique": False}),
        ("create_index", "seven", {"parts": ["n"], "unique": False, "id": 7}),
        ("create_index", "eight", {"parts": ["b", "n"]}),
        ("create_index", "eight"),
        ("create_index", "nine", {"id": 7}),
        ("index.eight:rename", "seven"),
        ("index.eight:rename",),
        ("index.eight:rename", 5),
        ("index.eight:rename", ""),
        ("index.eight:rename", "nine"),
        ("index.nine:drop",),
        ("index.seven:drop",),
        ("index.seven:drop",),
        ("index.a:b:len",),
        ("index.a.b:len",),
    ]
    for call in calls:
        ask(both, call)
        rows(both, INDEX, ID)


# -- what is different on purpose --


@pytest.mark.parametrize("name", ["box.begin", "box.commit", "box.rollback"])
def test_transactions_end_with_the_call(both: Both, name: str) -> None:
    both.call(name)


_ONE = "Illegal parameters, "
DIFFERENT: list[tuple[tuple[Any, ...], int, str]] = [
    # Tarantool's Lua fails on these with a place in its own source
    ((f"box.space.{T}:select", 1, 5), 1, _ONE + "options should be a table"),
    (
        (f"box.space.{T}:select", 1, {"limit": "x"}),
        1,
        _ONE + "options parameter 'limit' should be of type number",
    ),
    ((f"box.space.{T}:count", 1, 5), 1, _ONE + "options should be a table"),
    ((f"box.space.{T}:auto_increment",), 1, _ONE + "tuple should be a table"),
    (("box.schema.user.password",), 1, _ONE + "password should be a string"),
    (("box.schema.user.passwd", "guest", 5), 1, _ONE + "password should be a string"),
    (("box.session.peer", "x"), 1, _ONE + "session id should be a number"),
    # its error names the key it looks for, not the missing name
    (("box.schema.user.grant", "guest"), 1, _ONE + "wrong object name type"),
    (("box.schema.func.drop",), 51, "Function 'nil' does not exist"),
    (
        ("box.schema.user.create",),
        23,
        "Tuple field 3 type does not match one required by operation: expected string",
    ),
    # it only rejects these in the check of the row
    (
        (f"box.space.{T}:create_index", "i", {"parts": [1.5]}),
        1,
        _ONE + "options.parts[1]: field (number) must be one-based",
    ),
    (
        (f"box.space.{T}:create_index", "i", {"parts": [-1, "unsigned"]}),
        1,
        _ONE + "invalid index parts: field_no must be one-based",
    ),
    # these make sense in Lua only
    ((f"box.space.{T}:pairs",), 33, f"Procedure 'box.space.{T}:pairs' is not defined"),
    ((f"box.space.{T}",), 33, f"Procedure 'box.space.{T}' is not defined"),
    (("tostring", 5), 33, "Procedure 'tostring' is not defined"),
]


@pytest.mark.parametrize(("call", "code", "text"), DIFFERENT, ids=lambda each: str(each)[:60])
def test_different_on_purpose(
    both: Both, make_space: Callable[..., None], call: tuple[Any, ...], code: int, text: str
) -> None:
    make_space(format=FORMAT)
    both.prepare(f"box.space.{T}:create_index", "pk")
    ours, theirs = both.ours.call(*call), both.theirs.call(*call)
    assert (ours.error_code, ours.error) == (code, text)
    assert theirs.error != ours.error
