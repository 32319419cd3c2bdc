"""Small spaces whose indexes are created, altered and dropped while their rows change.

A row has five fields of few values each, so that duplicate keys occur in every index. Every few steps all
rows are read through every index: in both directions, which a hash refuses, and in any order.

Not asked, because Tarantool 2.6 forgets what the first of two indexes demands inside a field: parts on one
array that differ in type or in whether they may be nil. No decimal equals another number, because hashes of
2.6 take them for two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.differential.ddl import system_rows
from tests.differential.ddl.system_rows import (
    ADMIN,
    ALL,
    INDEX,
    SPACE,
    TRUNCATE,
    delete,
    insert,
    replace,
    set_field,
)
from tests.differential.random.request import Request
from tests.differential.random.values.draws import Draws, sequence
from tests.differential.random.values.packing import decimal, float32, uuid
from tests.iproto_client import (
    DELETE,
    INDEX_ID,
    INSERT,
    ITERATOR,
    KEY,
    LIMIT,
    OPERATIONS,
    REPLACE,
    SELECT,
    SPACE_ID,
    TUPLE,
    UPDATE,
    UPSERT,
)

ID: Final = 700
INDEXES: Final = range(4)
"""The ids of indexes; the first one is the primary index."""

_FIELDS: Final = range(5)
_STAGES: Final = 5
"""The number of phases, each with changes of indexes and then of rows."""
_ALL, _LE, _GE = 2, 4, 5

_VALUES: Final[dict[str, list[Any]]] = {
    "unsigned": [0, 1, 2, 3],
    "integer": [0, 1, -1, 2],
    "number": [0, 1, 0.5, -1, 1.0],
    "string": ["a", "b", "A", ""],
    "scalar": [0, "a", True, b"a", 1, -1],
    "boolean": [False, True],
    "double": [0.5, 1.5, -0.5],
    "varbinary": [b"a", b"b", b""],
    "uuid": [uuid(1), uuid(2), uuid(3)],
    "decimal": [decimal("1.5"), decimal("-1.5"), decimal("0.25"), decimal("2.5")],
    "array": [[0], [1, 2], [], [2, 0, 2], [1]],
}
"""The values for a field of a type; few, so that duplicates occur."""

_OTHERS: Final[dict[str, list[str]]] = {
    "unsigned": ["integer", "number", "scalar"],
    "integer": ["number", "scalar"],
    "number": ["scalar"],
    "string": ["scalar"],
    "boolean": ["scalar"],
    "varbinary": ["scalar"],
    "decimal": ["number"],
}
"""The types that an index may have on a field of a type, beside the field's own."""

_MIXTURES: Final[list[list[str]]] = [
    ["unsigned"] * 5,
    ["unsigned"] * 5,
    ["unsigned", "integer", "unsigned", "unsigned", "number"],
    ["unsigned", "string", "unsigned", "boolean", "unsigned"],
    ["unsigned", "unsigned", "scalar", "unsigned", "array"],
    ["string", "uuid", "unsigned", "double", "varbinary"],
    ["unsigned", "unsigned", "decimal", "integer", "array"],
]
"""The types of the five fields."""

_COLLATIONS: Final = [0, 1, 2, 3]
"""None, unicode, unicode_ci, binary."""


@dataclass(frozen=True, slots=True)
class SmallSpace:
    """A space of five fields.

    Parameters:
        types: The types of their values.
        has_nils: Whether there are nils among them, and rows without the last fields.
        element_may_be_nil: Whether the elements of an array may be nil for an index.
        may_be_hash: Whether the primary index may be, or become, a hash.
        rows: The rows of earlier requests.
    """

    types: Sequence[str]
    has_nils: bool
    element_may_be_nil: bool
    may_be_hash: bool
    rows: list[list[Any]] = field(default_factory=list)


def case(draws: Draws) -> list[Request]:
    """Draw a space, changes of its indexes and rows, and reads by every index in between."""
    either = [False, True]
    space = SmallSpace(draws.pick(_MIXTURES), draws.pick(either), draws.pick(either), draws.rarely(4))
    format_row = _format(draws, space) if draws.rarely(4) else []
    flags = {"temporary": True} if draws.rarely(8) else {}
    requests = [
        Request.of(insert(SPACE, [ID, ADMIN, "small", "memtx", 0, flags, format_row])),
        *(_asked(insert(INDEX, _definition(draws, space, number)), space) for number in (0, 1, 2)),
    ]
    for _ in range(_STAGES):
        # each begins without rows or with the current ones
        is_emptied = draws.rarely(3)
        alterations = sequence(draws, lambda each: _change(each, space), 1, 3)
        rows = sequence(draws, lambda each: _row(each, space), 1, 8)
        if is_emptied:
            requests.append(Request.of(replace(TRUNCATE, [ID, 1])))
        requests += [*alterations, *rows]
        if rows:
            requests += read_back(ID, iterators=[draws.pick([_GE, _LE])])
    return [*requests, *read_back(ID)]


def _asked(request: system_rows.Request, space: SmallSpace) -> Request:
    """Draw a change of a definition; it walks through the rows, in a hash in any order."""
    return Request(request.kind, request.body, unordered=space.may_be_hash)


def read_back(
    space_id: int, indexes: Sequence[int] = INDEXES, iterators: Sequence[int] = (_GE, _LE, _ALL)
) -> list[Request]:
    """The requests that read all rows of a space through its indexes, whichever there are.

    Trees answer them in order, from either end. A hash refuses that, and answers in any order.

    Parameters:
        space_id: The space.
        indexes: The numbers of its indexes.
        iterators: How each of them is read.
    """
    return [
        Request(
            SELECT,
            {SPACE_ID: space_id, INDEX_ID: index, ITERATOR: iterator, LIMIT: ALL, KEY: []},
            unordered=iterator == _ALL,
        )
        for index in indexes
        for iterator in iterators
    ]


# -- definitions --


def _format(draws: Draws, space: SmallSpace) -> list[dict[str, Any]]:
    """A format of some of the fields, which mostly fits them."""
    rows: list[dict[str, Any]] = []
    for number in range(1 + draws.below(5)):
        own = space.types[number]
        kind = draws.pick([own, own, *_OTHERS.get(own, []), "any"])
        rows.append({"name": f"f{number}", "type": kind})
        if space.has_nils and draws.below(2):
            rows[-1]["is_nullable"] = True
    return rows


def _definition(draws: Draws, space: SmallSpace, number: int) -> list[Any]:
    """A row of `_index`."""
    kind = "hash" if (number or space.may_be_hash) and draws.rarely(6) else "tree"
    name = f"index {number}" if not draws.rarely(12) else draws.pick(["index 0", "index 1", "other"])
    return [ID, number, name, kind, _options(draws, number, kind), _parts(draws, space, number)]


def _options(draws: Draws, number: int, kind: str = "tree") -> dict[str, Any]:
    return {"unique": (number == 0 or kind == "hash" or draws.below(2) == 0) is not draws.rarely(40)}


def _parts(draws: Draws, space: SmallSpace, number: int) -> list[Any]:
    """One to three parts on different fields."""
    is_nullable = space.has_nils and number > 0 and draws.below(2) == 0
    parts: list[dict[str, Any]] = []
    usable = [each for each in _FIELDS if number or space.types[each] != "array" or draws.rarely(20)]
    for field_no in draws.sample(usable, draws.pick([1, 1, 2, 2, 3])):
        own = space.types[field_no]
        kind = own if not draws.rarely(6) else draws.pick([own, *_OTHERS.get(own, [])])
        part: dict[str, Any] = {"field": field_no, "type": kind}
        if own == "array":
            part = {"field": field_no, "type": "unsigned", "path": "[*]"}
            if space.element_may_be_nil:
                part["is_nullable"] = True
        elif is_nullable and draws.below(3):
            part["is_nullable"] = True
        if kind in ("string", "scalar") and draws.rarely(4):
            part["collation"] = draws.pick(_COLLATIONS)
        if draws.rarely(60):
            part["type"] = draws.pick(list(_VALUES))
        parts.append(part)
    if draws.below(2) and all(part.keys() == {"field", "type"} for part in parts):
        return [[part["field"], part["type"]] for part in parts]
    return parts


def _change(draws: Draws, space: SmallSpace) -> Request:
    """A change of a definition."""
    kind = draws.pick([_alteration, _alteration, _alteration, _new_index, _drop, _change_of_space])
    return kind(draws, space)


def _new_index(draws: Draws, space: SmallSpace) -> Request:
    return _asked(insert(INDEX, _definition(draws, space, draws.pick(INDEXES))), space)


def _alteration(draws: Draws, space: SmallSpace) -> Request:
    """Another definition of an index, mostly of the primary one; or something of it only."""
    number = draws.pick([0, 0, *INDEXES])
    key = [ID, number]
    match draws.below(8):
        case 0 | 1 | 2:
            return _asked(replace(INDEX, _definition(draws, space, number)), space)
        case 3 | 4 | 5:
            return _asked(set_field(INDEX, key, 5, _parts(draws, space, number)), space)
        case 6:
            return _asked(set_field(INDEX, key, 4, _options(draws, number)), space)
        case _:
            kinds = ["tree", "hash"] if number or space.may_be_hash else ["tree"]
            other, value = draws.pick([(3, draws.pick(kinds)), (2, f"index {number}"), (2, "other")])
            return _asked(set_field(INDEX, key, other, value), space)


def _drop(draws: Draws, space: SmallSpace) -> Request:
    return Request.of(delete(INDEX, ID, draws.pick([1, 2, 3, 0])))


def _change_of_space(draws: Draws, space: SmallSpace) -> Request:
    number, value = draws.pick([(6, []), (6, _format(draws, space)), (2, "small"), (2, "renamed")])
    return _asked(set_field(SPACE, [ID], number, value), space)


# -- rows --


def _row(draws: Draws, space: SmallSpace) -> Request:
    """Draw a change of a row; whether it succeeds depends on the indexes."""
    kind = draws.pick([INSERT, INSERT, INSERT, REPLACE, REPLACE, DELETE, UPDATE, UPSERT])
    body: dict[int, Any] = {SPACE_ID: ID}
    if kind in (DELETE, UPDATE):
        body[INDEX_ID] = draws.pick([0, 0, *INDEXES])
        body[KEY] = _key(draws, space)
    else:
        body[TUPLE] = _fields(draws, space)
    if kind == UPDATE:
        body[TUPLE] = _operations(draws, space)
    if kind == UPSERT:
        body[OPERATIONS] = _operations(draws, space)
    return Request(kind, body)


def _fields(draws: Draws, space: SmallSpace) -> list[Any]:
    row = [_value(draws, space, number) for number in _FIELDS]
    if draws.rarely(10):
        row = row[: 2 + draws.below(4)] if space.has_nils else [*row, "more"]
    space.rows.append(row)
    return row


def _key(draws: Draws, space: SmallSpace) -> list[Any]:
    """Choose some fields of a row of an earlier request, possibly the whole key of an index."""
    row = draws.pick(space.rows) if space.rows else _fields(draws, space)
    numbers = draws.sample(range(len(row)), draws.pick([1, 1, 2, 2, 3]))
    return [
        row[number][0] if isinstance(row[number], list) and row[number] else row[number] for number in numbers
    ]


def _operations(draws: Draws, space: SmallSpace) -> list[list[Any]]:
    numbers = draws.sample(_FIELDS, draws.pick([1, 1, 2]))
    return [["=", number, _value(draws, space, number)] for number in numbers]


def _value(draws: Draws, space: SmallSpace, number: int) -> Any:
    if space.has_nils and draws.rarely(6):
        return None
    own = space.types[number]
    if draws.rarely(50):
        return draws.pick([*_VALUES["scalar"], float32(0.5), None])
    if own == "array" and space.element_may_be_nil and draws.rarely(6):
        return draws.pick([[None], [1, None], [None, None]])
    return draws.pick(_VALUES[own])
