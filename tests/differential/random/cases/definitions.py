"""DDL as clients do it: rows of `_space`, `_index`, `_truncate`, `_func`, `_user`, `_priv`, right and wrong.

Excluded besides refused requests: ids beyond 32 bits, of which Tarantool 2.6 stores one number and uses
another; rights that admin or guest need; and requests that crash Tarantool 2.6.0: unknown options of a
function, password hashes that are not strings, and an index without parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tests.differential.ddl import system_rows
from tests.differential.ddl.system_rows import (
    ADMIN,
    ALL,
    EXECUTE,
    FUNC,
    INDEX,
    PRIV,
    READ,
    SPACE,
    TRUNCATE,
    USER,
    a_function,
    a_privilege,
    a_space,
    a_user,
    an_index,
    delete,
    insert,
    replace,
    select,
    set_field,
    update,
    upsert,
)
from tests.differential.login import SECRET
from tests.differential.random.cases.function_values import FUNCTION_FIELDS, OPTIONS_OF_FUNCTIONS
from tests.differential.random.cases.small_spaces import read_back
from tests.differential.random.request import Request
from tests.differential.random.values.draws import Draws, sequence
from tests.differential.random.values.values import FIELD_TYPES
from tests.iproto_client import INDEX_ID, ITERATOR, KEY, LIMIT, SELECT, SPACE_ID

_GE: Final = 5
ANN, READER, WRITER = 900, 902, 903
SPACES: Final = (800, 801, 802)
_NEW_SPACES: Final = (*SPACES, 803, 810)
_FUNCTIONS: Final = (950, 951, 960)
_FORMAT: Final[list[dict[Any, Any]]] = [
    {"name": "id", "type": "unsigned"},
    {"name": "word", "type": "string"},
    {"name": "more", "type": "any", "is_nullable": True},
]

_WORLD: Final = [
    insert(USER, a_user(ANN, name="ann", auth=SECRET)),
    insert(USER, a_user(READER, name="reader", kind="role")),
    insert(USER, a_user(WRITER, name="writer", kind="role")),
    insert(SPACE, a_space(800, name="empty")),
    insert(SPACE, a_space(801, name="filled", fields=_FORMAT)),
    insert(INDEX, an_index(801, 0, "primary")),
    insert(INDEX, an_index(801, 1, "word", options={"unique": False}, parts=[[1, "string"]])),
    *(insert(801, row) for row in ([1, "same"], [2, "same", 5], [3, "other", None], [4, "z", "text"])),
    insert(SPACE, a_space(802, ANN, name="owned")),
    insert(INDEX, an_index(802, 0, "primary", kind="hash")),
    insert(802, [1, "x"]),
    insert(FUNC, a_function(950, name="some.function")),
    insert(FUNC, a_function(951, ANN, name="owned.function")),
    insert(PRIV, a_privilege(ANN, "space", 800)),
    insert(PRIV, a_privilege(READER, "role", WRITER, EXECUTE)),
]

_WRONG: Final[list[Any]] = [None, "x", -1, 1.5, [], {}, True, b"x", "", 0, 1, [1], {"a": 1}]
_NAMES: Final[list[Any]] = [
    *("new", "filled", "empty", "primary", "word", "other", "a b", "ä.%s", "_space", "ann", "reader"),
    *("", "a\n", "\udcff", "\u2028", "x" * 65000, "x" * 65001, 5, None, b"new"),
]
_USERS: Final[list[Any]] = [ADMIN, ANN, READER, 0, 2, 9999, -1, "admin", None]
_TYPES: Final[list[Any]] = [*FIELD_TYPES, "STRING", "num", "str", "*", "", "no such type", 5]


def case(draws: Draws) -> list[Request]:
    """Draw spaces, changes of their definitions, and reads by every index."""
    changes = [request for several in sequence(draws, _change) for request in several]
    contents = (request for space in SPACES for request in read_back(space))
    return [*map(_asked, _WORLD), *changes, *contents, *definitions_from(800)]


def _asked(request: system_rows.Request) -> Request:
    # an index may be, or become, a hash, whose order is undefined
    is_walked = request.kind == SELECT or request.body[SPACE_ID] in (SPACE, INDEX)
    return Request(request.kind, request.body, unordered=is_walked)


def definitions_from(first_id: int) -> list[Request]:
    """The requests that read what the system spaces hold, from a number of spaces, users and functions on."""
    return [
        Request(SELECT, {SPACE_ID: space, INDEX_ID: 0, ITERATOR: _GE, LIMIT: ALL, KEY: [first_id]})
        for space in (SPACE, INDEX, TRUNCATE, USER, PRIV, FUNC)
    ]


def _change(draws: Draws) -> list[Request]:
    kind = draws.pick(
        [_space, _space, _index, _index, None, None, _row, _row, _truncation, _user, _privilege, _function]
    )
    return _alteration(draws) if kind is None else [_asked(kind(draws))]


def _alteration(draws: Draws) -> list[Request]:
    """Draw another key for an index of a space, mostly a valid one; and reads by each of the indexes."""
    space, number = draws.pick(SPACES), draws.pick([0, 0, 1, 2, 3])
    kind = "hash" if draws.rarely(5) else "tree"
    options = {"unique": number == 0 or kind == "hash" or draws.below(2) == 0}
    parts = _fitting_parts(draws, is_nullable=number > 0 and draws.below(2) == 0)
    match draws.below(7):
        case 0 | 1 | 2:
            request = replace(INDEX, an_index(space, number, f"index {number}", kind, options, parts))
        case 3 | 4:
            request = set_field(INDEX, [space, number], 5, parts)
        case 5:
            request = set_field(INDEX, [space, number], 4, options)
        case _:
            request = set_field(INDEX, [space, number], 3, kind)
    return [_asked(request), *read_back(space, iterators=[_GE])]


_FITTING: Final = (
    ["unsigned", "unsigned", "integer", "number", "scalar"],
    ["string", "string", "scalar"],
    ["scalar"],
)
"""The types that an index may have on the three fields of `_FORMAT`."""


def _fitting_parts(draws: Draws, *, is_nullable: bool) -> list[Any]:
    """One to three parts on different fields."""
    parts: list[dict[str, Any]] = []
    for number in draws.sample(range(3), draws.pick([1, 1, 2, 2, 3])):
        part: dict[str, Any] = {"field": number, "type": draws.pick(_FITTING[number])}
        if is_nullable and draws.below(3):
            part["is_nullable"] = True
        if number and draws.rarely(4):
            part["collation"] = draws.pick([0, 1, 2, 3])
        parts.append(part)
    if draws.below(2) and all(part.keys() == {"field", "type"} for part in parts):
        return [[part["field"], part["type"]] for part in parts]
    return parts


def _requests(
    draws: Draws, space: int, row: list[Any], key: list[Any], changed: Callable[[int], Any]
) -> system_rows.Request:
    """Draw a change of a system space.

    Parameters:
        draws: The source of choices.
        space: The system space.
        row: A row of it.
        key: The primary key of a row.
        changed: Draws a value for a field.
    """
    if draws.rarely(25):
        place = draws.below(len(row) + 1)
        row = draws.pick([row[:place], [*row, "more"], [*row[:place], draws.pick(_WRONG), *row[place + 1 :]]])
    match draws.below(10):
        case 0 | 1 | 2:
            return insert(space, row)
        case 3 | 4 | 5:
            return replace(space, row)
        case 6 | 7:
            number = draws.below(len(row) or 1)
            return update(space, key, ["=", number, changed(number)])
        case 8:
            number = draws.below(len(row) or 1)
            return upsert(space, row, ["=", number, changed(number)])
        case _:
            return delete(space, *key)


def _space(draws: Draws) -> system_rows.Request:
    def field(number: int) -> Any:
        match number:
            case 0:
                return (
                    draws.pick(_NEW_SPACES) if not draws.rarely(20) else draws.pick([0, 9999, 280, -1, "x"])
                )
            case 1:
                return draws.pick(_USERS) if draws.rarely(4) else ADMIN
            case 2:
                return draws.pick(_NAMES) if draws.rarely(3) else f"name {draws.below(3)}"
            case 3:
                return (
                    draws.pick(["", "MEMTX", "no such engine", 5, "x" * 100]) if draws.rarely(12) else "memtx"
                )
            case 4:
                return draws.pick([0, 2, 3, 4, 1, -1, "3", 2**31, 2**32 - 1]) if draws.rarely(4) else 0
            case 5:
                return draws.pick(_FLAGS) if draws.rarely(3) else {}
        return _fields(draws)

    row = [field(number) for number in range(7)]
    return _requests(draws, SPACE, row, [field(0)], field)


_FLAGS: Final[list[Any]] = [
    *({"temporary": True}, {"temporary": False}, {"temporary": 1}, {"temporary": None}),
    *({"group_id": 1}, {"group_id": 0}, {"group_id": 2}, {"group_id": -1}, {"group_id": "x"}),
    *({"is_sync": False}, {"is_sync": "yes"}, {"defer_deletes": True}, {"no such flag": 1}, {1: 1}, [], "x"),
    *({"view": 1}, {"sql": 1}, {"temporary": True, "group_id": 1}),
]


def _fields(draws: Draws) -> Any:
    if draws.rarely(30):
        return draws.pick(_WRONG)
    fields: list[Any] = [each.copy() for each in _FORMAT[: draws.pick([3, 3, 2, 1, 0])]]
    for _ in range(draws.pick([0, 1, 2])):
        name = draws.pick(_NAMES) if draws.rarely(6) else f"field {draws.below(4)}"
        fields.append({"name": name, "type": draws.pick(_TYPES), "is_nullable": draws.pick([True, False])})
    if fields and draws.rarely(3):
        field = fields[draws.below(len(fields))]
        option = draws.pick(["type", "is_nullable", "nullable_action", "collation", "name", "extra", 1])
        field[option] = draws.pick(
            [*_TYPES, True, False, "none", "abort", "default", "rollback", *range(4), 276, 277, 9999, *_WRONG]
        )
    if fields and draws.rarely(30):
        fields[draws.below(len(fields))] = draws.pick(_WRONG)
    return fields


def _index(draws: Draws) -> system_rows.Request:
    def field(number: int) -> Any:
        match number:
            case 0:
                return draws.pick(_NEW_SPACES) if not draws.rarely(30) else draws.pick([0, 9999, -1, "x"])
            case 1:
                return (
                    draws.pick([0, 1, 2, 3])
                    if not draws.rarely(20)
                    else draws.pick([127, 128, -1, "2", None])
                )
            case 2:
                return draws.pick(_NAMES) if draws.rarely(3) else f"index {draws.below(3)}"
            case 3:
                return draws.pick(_KINDS) if draws.rarely(4) else "tree"
            case 4:
                return draws.pick(_OPTIONS) if draws.rarely(4) else {"unique": draws.pick([True, False])}
        return _parts(draws)

    row = [field(number) for number in range(6)]
    return _requests(draws, INDEX, row, [field(0), field(1)], field)


_KINDS: Final[list[Any]] = ["hash", "HASH", "TREE", "hash", "HaSh", "", "no such type", 5, "rtree", "bitset"]
_OPTIONS: Final[list[Any]] = [
    *({}, {"unique": True}, {"unique": 1}, {"no such option": 1}, {1: 1}, [], 5, {"unique": True, "lsn": 5}),
    *({"run_size_ratio": 0.5}, {"page_size": 1024, "range_size": 2048}, {"page_size": 0}, {"bloom_fpr": 2}),
    *(
        {"range_size": -1},
        {"run_count_per_level": 0},
        {"distance": "euclid"},
        {"distance": "x"},
        {"dimension": 3},
    ),
]


def _parts(draws: Draws) -> list[Any]:
    parts: list[Any] = []
    is_list = draws.pick([True, False])
    for _ in range(draws.pick([1, 1, 2, 3])):
        number: Any = draws.below(4)
        field_type: Any = ["unsigned", "string", "scalar", "unsigned"][number]
        if draws.rarely(4):
            field_type = draws.pick(_TYPES)
        if draws.rarely(30):
            number = draws.pick([-1, "id", None, 32767, 32768, 40000, 7])
        if is_list:
            part: Any = [number, field_type, *([1] if draws.rarely(20) else [])][
                : draws.pick([3, 3, 3, 3, 1])
            ]
        else:
            part = {"field": number, "type": field_type}
            if number == 2 or draws.rarely(6):
                part["is_nullable"] = True
            if draws.rarely(6):
                part[draws.pick(_PART_OPTIONS)] = draws.pick(_PART_VALUES)
        parts.append(draws.pick(_WRONG) if draws.rarely(60) else part)
    return parts


_PART_OPTIONS: Final = [
    *("nullable_action", "sort_order", "is_nullable", "extra", "type", "field"),
    *("path", "path", "collation", "collation", "exclude_null"),
]
_PART_VALUES: Final[list[Any]] = [
    *(True, False, "none", "abort", "asc", "desc", "", "a", "[*]", "a.b", "[1]", "[*].x", "a[", "[*][*]"),
    *(1, 2, 3, 276, 277, 2**32, *_WRONG),
]


def _row(draws: Draws) -> system_rows.Request:
    """Draw a change of rows, which shows the state of a space."""
    space = draws.pick(SPACES)
    row = [draws.below(6), draws.pick(["same", "other", "z", 5]), draws.pick([None, 1, "text"])]
    match draws.below(5):
        case 0:
            return delete(space, draws.below(6))
        case 1:
            return select(space, index=draws.below(3))
        case 2:
            return update(space, [draws.below(6)], ["=", draws.pick([1, 2, "word", "more"]), "other"])
    return replace(space, row[: draws.pick([3, 2, 3, 1])])


def _truncation(draws: Draws) -> system_rows.Request:
    space: Any = draws.pick(_NEW_SPACES) if not draws.rarely(15) else draws.pick([280, 281, 9999, "x"])
    count: Any = draws.below(3) if not draws.rarely(15) else draws.pick(_WRONG)
    return _requests(draws, TRUNCATE, [space, count], [space], lambda number: draws.pick(_WRONG))


def _user(draws: Draws) -> system_rows.Request:
    def field(number: int) -> Any:
        match number:
            case 0:
                return (
                    draws.pick([ANN, READER, WRITER, 910, 911])
                    if not draws.rarely(20)
                    else draws.pick([9999, "x"])
                )
            case 1:
                return draws.pick(_USERS) if draws.rarely(5) else ADMIN
            case 2:
                return (
                    draws.pick(_NAMES) if draws.rarely(3) else draws.pick(["ann", "reader", "writer", "bob"])
                )
            case 3:
                return draws.pick(["", "USER", 5, "x"]) if draws.rarely(15) else draws.pick(["user", "role"])
        return draws.pick(_AUTHS) if draws.rarely(3) else {}

    row = [field(number) for number in range(5)]
    return _requests(draws, USER, row, [field(0)], field)


_AUTHS: Final[list[Any]] = [
    *(SECRET, {"chap-sha1": ""}, {"chap-sha1": "x"}, {"chap-sha1": "!" * 28}, {"chap-sha1": "A" * 28}),
    *({"no such method": "x"}, {**SECRET, "no such method": "x"}, [], [1]),
]


def _privilege(draws: Draws) -> system_rows.Request:
    def field(number: int) -> Any:
        match number:
            case 0:
                return draws.pick([ADMIN, ANN, 9999, READER, "admin"]) if draws.rarely(4) else ADMIN
            case 1:
                return (
                    draws.pick([ANN, READER, WRITER, 910])
                    if not draws.rarely(20)
                    else draws.pick([9999, "x"])
                )
            case 2:
                return draws.pick(["", "UNIVERSE", "x", 5]) if draws.rarely(20) else draws.pick(_OBJECTS)
            case 3:
                if draws.rarely(20):
                    return draws.pick([9999, "filled", -1, True, None, 0])
                return draws.pick([*_NEW_SPACES, *_FUNCTIONS, READER, WRITER, ANN, 0, ""])
        return (
            draws.pick([READ, EXECUTE, 3, 7, 0, 2**32 - 1, 128])
            if not draws.rarely(20)
            else draws.pick(_WRONG)
        )

    row = [field(number) for number in range(5)]
    if row[3] == "":
        # in Tarantool 2.6 a refusal to anybody else contains foreign memory
        row[0] = ADMIN
    return _requests(draws, PRIV, row, [field(1), field(2), field(3)], field)


_OBJECTS: Final = ["space", "function", "role", "user", "universe", "sequence"]


def _function(draws: Draws) -> system_rows.Request:
    def field(number: int) -> Any:
        if number == 0:
            return draws.pick(_FUNCTIONS) if not draws.rarely(20) else draws.pick([32000, 32001, "x"])
        if number == 1:
            return draws.pick(_USERS) if draws.rarely(5) else ADMIN
        if number == 2:
            return (
                draws.pick(_NAMES)
                if draws.rarely(3)
                else draws.pick(["some.function", "new", "owned.function"])
            )
        return draws.pick(FUNCTION_FIELDS.get(number, ["x"]))

    options = {}
    if draws.rarely(2):
        name = draws.pick(list(OPTIONS_OF_FUNCTIONS))
        options[name] = draws.pick(OPTIONS_OF_FUNCTIONS[name])
    row = a_function(field(0), field(1), field(2), **options)
    return _requests(draws, FUNC, row, [field(0)], field)
