"""The functions under `box.` with every form of argument, right and wrong: one answer from both servers.

Different on purpose (`DIFFERENT` says what ours answers):

- What fails inside of Tarantool's own Lua, with a place in its source in the text, is a plain error here.
- Lua's own functions and tables cannot be called, nor what only makes sense within a server (`pairs`).
- JSON paths in index parts are refused as such, whatever the format says about the field.

Not asked, because Tarantool 2.6.0 does not survive it: rights on all objects of a type, granted by somebody
who is not admin. Nor what it does by halves: dropping a system space or a function of SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.differential.both import Both
from tests.differential.system_rows import INDEX, PRIV, SPACE, USER
from tests.iproto_client import INDEX_ID, ITERATOR, KEY, LIMIT, SELECT, SPACE_ID

T, ID = "words", 705
FORMAT: list[Any] = [
    ["a", "unsigned"],
    ["b", "string"],
    {"name": "n", "type": "unsigned", "is_nullable": True},
]
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


def rows(both: Both, space: int, *key: Any) -> None:
    """Find the same rows in a system space of both; the order of keys in a Lua table is nobody's business."""
    body = {SPACE_ID: space, INDEX_ID: 0, LIMIT: 1000, ITERATOR: 0, KEY: list(key)}
    ours, theirs = both.ours.request(SELECT, body), both.theirs.request(SELECT, body)
    assert ours.data == theirs.data


def each(call: tuple[Any, ...], *arguments: Any) -> list[tuple[Any, ...]]:
    """A call with each of the arguments as its last one."""
    return [(*call, argument) for argument in arguments]


def of(prefix: str, *calls: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Calls of methods of one thing."""
    return [(prefix + call[0], *call[1:]) for call in calls]


def choices(option: str, *values: Any) -> list[dict[str, Any]]:
    """Options of a call, with each of the values."""
    return [{option: value} for value in values]


@pytest.fixture
def make_space(both: Both) -> Iterator[Callable[..., None]]:
    """Makes the space with the options; it is dropped at the end, if it is still there."""

    def make(**given: Any) -> None:
        both.prepare("box.schema.space.create", T, {"id": ID, **given})
        rows(both, SPACE, ID)

    yield make
    both.prepare(f"box.space.{T}:drop")


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


def ask(both: Both, call: tuple[Any, ...]) -> None:
    method, *arguments = call
    separator = "." if method.startswith("index.") else ":"
    both.call(f"box.space.{T}{separator}{method}", *arguments)


# -- rows --


ROWS: list[tuple[Any, ...]] = [
    ("insert",),
    *each(("insert",), [1, "x"], None, 5, {}, {"a": 1}, {1: 3, 2: "z"}, "x", [5.0, "five"]),
    ("insert", [3, "z"], 4),
    ("replace",),
    *each(("replace",), [1], [4, "q", None], [4, "q", None, None], [4, "q", 5.0, [1.0, {2.0: 3.5}]]),
    ("get",),
    *each(("get",), None, 1, [1], [], [1, 2], "x", {}, True, 1.0, 1.5, -1, 2**64 - 1, 1e300, float("nan")),
    ("get", 1, 2),
    *each(("select",), 1, [1], [1, 2], {}, None),
    *each(
        (
            "select",
            None,
        ),
        {},
        [],
        {"limit": 1},
        {"limit": 1.5},
        {"limit": -1},
        {"offset": 1},
        {"offset": -1},
        {"limit": 0},
        {"limit": 2, "offset": 1, "iterator": "LT"},
    ),
    *each(
        (
            "select",
            1,
        ),
        "GE",
        "nope",
        {"nope": 5},
        {"limit": None},
        *choices("iterator", "GE", "ge", 5, 5.0, 99, -1, 7, "BITS_ALL_SET", "nope", True),
    ),
    ("count", 1),
    ("count", None, "GE"),
    ("count", 2, {"iterator": "GE"}),
    ("count", 2, "ge"),
    ("count", None, {"iterator": "LT"}),
    ("count", "x"),
    ("count", 1, {"iterator": "nope"}),
    ("count", 1, {"x": 1}),
    *each(
        (
            "update",
            2,
        ),
        [["=", 2, "xx"]],
        [["=", "b", "xxx"]],
        ["=", 2, "x"],
        [[]],
        [["=", 2]],
        [["=", 2, "x", 4]],
        [["+", "n", 1]],
        [["+", 3, 1]],
        [["=", -1, 9]],
        [["=", 0, 9]],
        [["=", "nope", 9]],
        [["!", 1, 9]],
        [["=", 1, 3]],
        [["=", 1, 4]],
        [[":", 2, 1, 1, "zz"]],
        [["=", 2.0, "ww"]],
        [["=", 2.5, "w"]],
        [["=", None, "w"]],
        {},
        {1: ["=", 2, "q"]},
        [],
        None,
        "x",
    ),
    ("update",),
    ("update", None, []),
    ("update", [], []),
    ("update", "x", []),
    ("update", 99, []),
    ("update", [1, 2], []),
    ("upsert",),
    ("upsert", 5, []),
    ("upsert", None, []),
    ("upsert", {}, []),
    ("upsert", [9, "x"], []),
    ("upsert", [9], []),
    *each(
        (
            "upsert",
            [9, "x"],
        ),
        [["=", 2, "up"]],
        [["=", 9, "up"]],
        {},
        None,
        "x",
        [["=", 0, "a"]],
        [["=", 2, 5]],
    ),
    ("upsert", [9, "x"]),
    ("upsert", [9, "x"], [["=", 2, "a"]], 5),
    ("delete",),
    *each(("delete",), None, [], "x", 99, 9, [1, 2]),
    ("len",),
    ("len", 1),
    ("bsize",),
    ("auto_increment", ["auto"]),
    ("auto_increment", []),
    ("auto_increment", [5]),
    *of(
        "index.b:",
        ("select", "y"),
        ("select",),
        ("select", "b", {"iterator": "GE"}),
        ("get", "y"),
        ("min",),
        ("max",),
        ("min", "x"),
        ("min", ["x", "y"]),
        ("min", 5),
        ("max", "nope"),
        ("len",),
        ("count",),
        ("count", "y"),
        ("count", "y", {"iterator": "LT"}),
        ("update", "y", []),
        ("delete", "y"),
        ("nope",),
        ("insert", [1]),
    ),
    *of(
        "index.u:",
        ("get", "y"),
        ("get", ["y", 2]),
        ("select", ["y"]),
        ("select", ["y", None]),
        ("update", ["y", 2], [["=", 3, 99]]),
        ("delete", ["y"]),
        ("delete", ["y", 2]),
    ),
    *of(
        "index.n:",
        ("select", None),
        ("select", [None]),
        ("select", [None], {"iterator": "GT"}),
        ("select", [None], {"iterator": "LT"}),
        ("select", [], {"iterator": "REQ"}),
        ("min",),
        ("max",),
        ("count", [None]),
    ),
    *of(
        "index.h:",
        ("select", 1),
        ("select", [], {"limit": 0}),
        ("select", [[]]),
        ("select", 1, {"iterator": "GE"}),
        ("min",),
        ("max",),
        ("get", 1),
        ("get",),
        ("count", 1),
        ("count",),
        ("update", 4, [["=", 2, "hash"]]),
        ("delete", 4),
        ("len",),
        ("rename", "u"),
        ("drop",),
        ("drop",),
    ),
    ("index.pk:drop",),
    ("select",),
    ("truncate", 1),
    ("len",),
    ("select",),
    ("format", 5),
    ("format", "x"),
    ("format", [["a", "string"]]),
    ("format", {}),
    ("format",),
    ("rename", T),
    ("rename", 5),
    ("rename", ""),
    ("drop", 5),
    ("drop",),
    ("len",),
]


def test_rows(both: Both, make_space: Callable[..., None]) -> None:
    make_space(format=FORMAT)
    for call in [
        ("create_index", "pk"),
        ("create_index", "b", {"parts": ["b"], "unique": False}),
        ("create_index", "u", {"parts": ["b", "a"]}),
        ("create_index", "n", {"parts": ["n"], "unique": False}),
        ("create_index", "h", {"parts": ["a"], "type": "hash"}),
        ("insert", [1, "x"]),
        ("insert", [2, "y", 5]),
        *ROWS,
    ]:
        ask(both, call)


@pytest.mark.parametrize("name", ["_vspace", "_vindex", "_vuser"])
def test_views(both: Both, name: str) -> None:
    for call in [
        *of(
            ":",
            ("select", 280),
            ("get", "x"),
            ("insert", [1]),
            ("replace", [1]),
            ("update", 280, []),
            ("update", [280, 0], [["=", 1, 1]]),
            ("delete", 280),
            ("upsert", [1], []),
            ("truncate",),
        ),
        *of(
            ".index.",
            ("primary:count", 280),
            ("name:select", [280]),
            ("name:select", ["guest"]),
            ("name:min",),
        ),
    ]:
        both.call(f"box.space.{name}{call[0]}", *call[1:])


# -- users, roles, functions --


ACCOUNTS: list[tuple[Any, ...]] = [
    *of(
        "box.schema.user.",
        ("create", 5),
        ("create", "", {}),
        ("create", "wan", {"password": 5}),
        ("create", "wan", {"nope": 5}),
        ("create", "wan", "x"),
        ("create", "wan", {"password": "secret"}),
        ("create", "wan"),
        ("create", "wan", {"if_not_exists": True}),
        ("create", "super"),
        ("create", "super", {"if_not_exists": True}),
        ("create", "a\x01"),
        ("exists",),
        ("exists", "super"),
        ("exists", 1),
        ("exists", "wan"),
        ("exists", 999),
        ("exists", True),
        ("info", "wan"),
        ("info", "nobody"),
        ("info", "super"),
        ("password", "x"),
        ("password", ""),
        ("passwd",),
        ("passwd", "nobody", "x"),
        ("passwd", "wan", "y"),
        ("passwd", "guest", "y"),
        ("passwd", "guest", ""),
        ("disable", "wan"),
        ("info", "wan"),
        ("enable", "wan"),
        ("enable", "nobody"),
        ("disable", "nobody"),
        ("grant",),
        ("grant", "nobody", "read"),
        ("grant", "wan", "read"),
        ("grant", "wan", "read", "space", T),
        ("grant", "wan", "read", "space", T),
        ("grant", "wan", "read", "space", T, {"if_not_exists": True}),
        ("grant", "wan", "write", "space", ID),
        ("grant", "wan", "write", "space", 999),
        ("grant", "wan", "write", "space", "nope"),
        ("grant", "wan", "execute", "space", T),
        ("grant", "wan", "session", "space", T),
        ("grant", "wan", "usage", "space", T),
        ("grant", "wan", 3, "space", T),
        ("grant", "wan", 0, "space", T),
        ("grant", "wan", "READ,Write", "space", T),
        ("grant", "wan", "all", "space", T),
        ("grant", "wan", "", "space", T),
        ("grant", "wan", True, "space", T),
        ("grant", "wan", "read", "universe"),
        ("grant", "wan", "read", "universe", "x"),
        ("grant", "wan", "usage", "universe"),
        ("grant", "wan", "usage", "universe", None, {"if_not_exists": True}),
        ("grant", "wan", "read", "function", "nope"),
        ("grant", "wan", "execute", "function", "nope"),
        ("grant", "wan", "execute", "role", "nope"),
        ("grant", "wan", "execute", "role", "public"),
        ("grant", "wan", "public"),
        ("grant", "wan", "super"),
        ("grant", "wan", "alter", "user", "guest"),
        ("grant", "wan", "read", "sequence", "x"),
        ("grant", "wan", "read", "nope", "x"),
        ("grant", "wan", "read", 5, "x"),
        ("grant", "wan", "wan"),
        ("grant", "public", "read", "space", T),
        ("grant", "wan", "trigger", "space", T, {"grantor": "admin"}),
        ("info", "wan"),
        ("revoke",),
        ("revoke", "nobody", "read"),
        ("revoke", "wan", "read", "space", "nope"),
        ("revoke", "wan", "read", "space", T),
        ("revoke", "wan", "read", "space", T),
        ("revoke", "wan", "read", "space", T, {"if_exists": True}),
        ("revoke", "wan", "write,execute,trigger,usage", "space", T),
        ("revoke", "wan", "read", "space", T),
        ("revoke", "wan", "super"),
        ("revoke", "wan", "super", None, None, {"if_exists": True}),
        ("revoke", "wan", "read", "universe"),
        ("revoke", "wan", "session", "universe"),
        ("revoke", "wan", "nope", "universe"),
        ("revoke", "wan", "read", "role", "super"),
        ("revoke", "wan", "execute", "role", "super"),
        ("info", "wan"),
    ),
    *of(
        "box.schema.role.",
        ("info",),
        ("info", "super"),
        ("info", "wan"),
        ("info", "public"),
        ("create", "war"),
        ("create", "war"),
        ("create", "war", {"if_not_exists": True}),
        ("create", "wan"),
        ("create", "wan", {"if_not_exists": True}),
        ("create", "war2"),
        ("create", "x", {"x": 1}),
        ("exists",),
        ("exists", "war"),
        ("exists", "wan"),
        ("grant", "war", "read", "space", T),
        ("grant", "war", "usage", "universe"),
        ("grant", "war", "session", "universe"),
        ("grant", "war", 8, "universe"),
        ("grant", "war", "war2"),
        ("grant", "war2", "war"),
        ("grant", "war", "war"),
        ("grant", "wan", "war"),
        ("grant", "nope", "war"),
        ("info", "war"),
        ("revoke", "war", "usage", "universe"),
        ("revoke", "war", "war2"),
        ("revoke", "war", "war2"),
        ("revoke", "war", "write", "space", T),
    ),
    ("box.schema.user.grant", "wan", "war"),
    ("box.schema.user.grant", "wan", "war"),
    ("box.schema.user.info", "wan"),
    *of(
        "box.schema.role.",
        ("drop",),
        ("drop", "nope"),
        ("drop", "nope", {"if_exists": True}),
        ("drop", "super"),
        ("drop", "public"),
        ("drop", "wan"),
        ("drop", "war2", 5),
        ("drop", "war"),
        ("drop", "war2"),
    ),
    ("box.schema.user.info", "wan"),
    *of(
        "box.schema.func.",
        ("create", 5),
        ("create", "waf"),
        ("create", "waf"),
        ("create", "waf", {"if_not_exists": True}),
        ("create", "x", {"setuid": 1}),
        ("create", "x", {"language": "python"}),
        ("create", ""),
        ("exists",),
        ("exists", "waf"),
        ("exists", "nope"),
        ("exists", 1),
    ),
    ("box.schema.user.grant", "wan", "execute", "function", "waf"),
    ("box.schema.user.grant", "wan", "read", "function", "waf"),
    ("box.schema.user.info", "wan"),
    *of("box.schema.func.", ("drop", "waf"), ("drop", "waf"), ("drop", "waf", {"if_exists": True})),
    ("box.schema.user.info", "wan"),
    *of(
        "box.schema.user.",
        ("drop",),
        ("drop", "nobody"),
        ("drop", "nobody", {"if_exists": True}),
        ("drop", "nobody", {"x": True}),
        ("drop", "admin"),
        ("drop", "guest"),
        ("drop", "super"),
        ("drop", "wan"),
        ("exists", "wan"),
    ),
]


def test_accounts(both: Both, make_space: Callable[..., None]) -> None:
    make_space()
    for name, *arguments in ACCOUNTS:
        both.call(name, *arguments)
    rows(both, USER)
    rows(both, PRIV)


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
    # it tells about the key it looks for, not about the name that is missing
    (("box.schema.user.grant", "guest"), 1, _ONE + "wrong object name type"),
    (("box.schema.func.drop",), 51, "Function 'nil' does not exist"),
    (
        ("box.schema.user.create",),
        23,
        "Tuple field 3 type does not match one required by operation: expected string",
    ),
    # it lets these through to the check of the row
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
