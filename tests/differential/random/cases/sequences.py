"""Sequences: their definitions and values, the spaces that they number, and calls of their methods.

Excluded: `set` with a number beyond 64 signed bits, which Tarantool wraps around; invalid paths.
"""

from __future__ import annotations

from typing import Any, Final

from tests.differential.ddl import system_rows
from tests.differential.ddl.system_rows import (
    ADMIN,
    INDEX,
    SEQUENCE,
    SEQUENCE_DATA,
    SPACE,
    SPACE_SEQUENCE,
    TRUNCATE,
    a_sequence,
    a_space,
    an_index,
    call,
    delete,
    insert,
    replace,
    select,
    update,
    upsert,
)
from tests.differential.random.cases.definitions import definitions_from
from tests.differential.random.request import Request
from tests.differential.random.values.draws import Draws, sequence
from tests.iproto_client import SELECT

_SPACES: Final = (851, 852, 853)
"""Numbered in the only part of their keys; in the second of two; in a field that is a map."""
_MAX, _MIN = 2**63 - 1, -(2**63)
_NAMES: Final = {871: "up", 872: "down", 873: "round", 874: "wide", 875: "new"}

_WORLD: Final = [
    insert(SPACE, a_space(851, name="plain")),
    insert(INDEX, an_index(851, 0, "pk")),
    insert(INDEX, an_index(851, 1, "by word", options={"unique": False}, parts=[[1, "string"]])),
    insert(SPACE, a_space(852, name="second")),
    insert(INDEX, an_index(852, 0, "pk", parts=[[1, "string"], [2, "integer"]])),
    insert(SPACE, a_space(853, name="nested")),
    insert(INDEX, an_index(853, 0, "pk", parts=[{"field": 0, "type": "unsigned", "path": "a.b"}])),
    insert(SEQUENCE, a_sequence(871, "up", greatest=5)),
    insert(SEQUENCE, a_sequence(872, "down", step=-2, least=-9, greatest=3, start=3)),
    insert(SEQUENCE, a_sequence(873, "round", least=2, greatest=4, start=3, cycle=True)),
    insert(SEQUENCE, a_sequence(874, "wide", least=_MIN, greatest=_MAX, start=_MAX - 2, step=2)),
]
_LIMITS: Final = [1, 100, 5, 2, 0, -1, -9, 3, _MAX, _MIN, 2**63, 2**64 - 1]
_WRONG: Final[list[Any]] = [None, "x", 1.5, [], {}, True, -1, 2**63]
_VALUES: Final = [1, 2, 3, 4, 5, 0, -1, 99, -99, _MAX, _MIN, _MAX - 1, 2.5, "3", "x", None, True]


def case(draws: Draws) -> list[Request]:
    """Draw sequences and spaces, changes of both, and reads of the results."""
    changes = sequence(draws, lambda each: each.pick(_CHANGES)(each))
    contents = (select(space) for space in (*_SPACES, SEQUENCE, SPACE_SEQUENCE))
    values = Request(SELECT, select(SEQUENCE_DATA).body, unordered=True)
    return [*map(Request.of, (*_WORLD, *changes, *contents)), values, *definitions_from(850)]


def _call(draws: Draws) -> system_rows.Request:
    name = draws.pick(list(_NAMES.values()))
    method = draws.pick(["next", "next", "next", "current", "set", "set", "reset"])
    arguments = [draws.pick(_VALUES)] if method == "set" else []
    return call(f"box.sequence.{name}:{method}", *arguments)


def _row(draws: Draws) -> system_rows.Request:
    """Draw a change of a row of a space that may be numbered."""
    space = draws.pick(_SPACES)
    number = draws.pick([None, None, None, 1, 2, 3, 4, 7, 99, -1, 2**63 - 1, 2**63, "x"])
    word = draws.pick(["a", "b", None, 5])
    row: list[Any]
    match space:
        case 851:
            row, key = [number, word], [number]
        case 852:
            row, key = ["first", word, number], [word, number]
        case _:
            row, key = [{"a": {"b": number}}, word], [number]
    row = row[: draws.pick([3, 3, 3, 3, 1, 0])]
    match draws.below(8):
        case 0 | 1 | 2:
            return insert(space, row)
        case 3 | 4:
            return replace(space, row)
        case 5:
            return upsert(space, row, ["=", 1, draws.pick(["a", "b"])])
        case 6:
            return update(space, key, ["=", draws.below(3), draws.pick([None, 1, "a"])])
        case _:
            return delete(space, *key)


def _definition(draws: Draws) -> system_rows.Request:
    number = draws.pick(list(_NAMES))
    limits = sorted([draws.pick(_LIMITS), draws.pick(_LIMITS)])
    start = draws.pick([limits[0], limits[1], *_LIMITS])
    step = draws.pick([1, -1, 2, 10, 0, _MAX, _MIN])
    name: Any = _NAMES[number] if not draws.rarely(8) else draws.pick(["up", "down", "", "a\n", "other", 5])
    row = a_sequence(
        number,
        name,
        owner=ADMIN if not draws.rarely(20) else draws.pick([9999, 0, "x"]),
        step=step,
        least=limits[0],
        greatest=limits[1],
        start=start,
        cycle=draws.pick([False, True]),
    )
    place = draws.below(len(row))
    if draws.rarely(15):
        row = draws.pick([row[:place], [*row, "more"], [*row[:place], draws.pick(_WRONG), *row[place + 1 :]]])
    match draws.below(8):
        case 0 | 1:
            return insert(SEQUENCE, row)
        case 2 | 3:
            return replace(SEQUENCE, row)
        case 4:
            return update(SEQUENCE, [number], ["=", place, draws.pick([*_LIMITS, *_WRONG])])
        case 5:
            return upsert(SEQUENCE, row, ["=", 3, draws.pick(_LIMITS)])
        case _:
            return delete(SEQUENCE, number)


def _value(draws: Draws) -> system_rows.Request:
    number = draws.pick([*_NAMES, 9999])
    row = [number, draws.pick(_VALUES), *([1] if draws.rarely(20) else [])]
    match draws.below(5):
        case 0:
            return insert(SEQUENCE_DATA, row)
        case 1:
            return replace(SEQUENCE_DATA, row)
        case 2:
            return update(SEQUENCE_DATA, [number], [draws.pick("=+-"), 1, draws.pick([1, 2, -5])])
        case _:
            return delete(SEQUENCE_DATA, number)


def _attachment(draws: Draws) -> system_rows.Request:
    space = draws.pick([*_SPACES, *_SPACES, 9999])
    path = "a.b" if space == 853 else ""
    field = {851: 0, 852: 2, 853: 0}.get(space, 0)
    row: list[Any] = [
        space,
        draws.pick([*_NAMES, 871, 873, 9999]),
        draws.pick([False, False, True]),
        field if not draws.rarely(6) else draws.pick([0, 1, 2, 3, 40000, -1, "x"]),
        path if not draws.rarely(8) else draws.pick(["", "a.b", "b", "[1]"]),
    ]
    if draws.rarely(20):
        row = draws.pick([row[:3], row[:4], [*row, 1], [*row[:2], draws.pick(_WRONG), *row[3:]]])
    match draws.below(6):
        case 0 | 1 | 2:
            return insert(SPACE_SEQUENCE, row)
        case 3:
            return replace(SPACE_SEQUENCE, row)
        case 4:
            return update(SPACE_SEQUENCE, [space], ["=", draws.below(5), draws.pick([0, 1, True, 872, ""])])
        case _:
            return delete(SPACE_SEQUENCE, space)


def _index_or_truncation(draws: Draws) -> system_rows.Request:
    """Requests that affect attached sequences."""
    space = draws.pick(_SPACES)
    match draws.below(5):
        case 0:
            return replace(TRUNCATE, [space, 1])
        case 1:
            return delete(INDEX, space, draws.below(2))
        case 2:
            return insert(INDEX, an_index(space, 0, "pk", kind=draws.pick(["tree", "hash"])))
        case 3:
            return update(INDEX, [space, 0], ["=", 5, [[draws.below(2), draws.pick(["unsigned", "string"])]]])
        case _:
            return delete(SPACE, space)


_CHANGES: Final = [
    *(_row, _row, _row, _call, _call, _call, _attachment, _attachment, _definition, _value),
    _index_or_truncation,
]
