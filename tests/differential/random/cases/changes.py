"""INSERT, REPLACE, DELETE and UPDATE by every unique index, in spaces of every form."""

from __future__ import annotations

from typing import Any, Final

from tests.differential.random.request import Request
from tests.differential.random.values.draws import Draws, sequence
from tests.differential.random.values.layout import Layout, layout
from tests.differential.random.values.values import value
from tests.iproto_client import (
    DELETE,
    INDEX_BASE,
    INDEX_ID,
    INSERT,
    KEY,
    OPERATIONS,
    REPLACE,
    SPACE_ID,
    TUPLE,
    UPDATE,
    UPSERT,
)

SPACE: Final = 700
_KINDS: Final = [REPLACE, REPLACE, INSERT, INSERT, DELETE, UPDATE, UPDATE, UPSERT]


def case(draws: Draws) -> list[Request]:
    """Draw a space, changes, and reads of all its rows."""
    space = layout(draws, SPACE)
    changes = sequence(draws, lambda each: change(each, space), 8, 10)
    return [*space.definition, *changes, *space.contents()]


def change(draws: Draws, space: Layout) -> Request:
    """Draw a change of a row."""
    kind = draws.pick(_KINDS)
    body: dict[int, Any] = {SPACE_ID: space.space_id}
    if kind in (DELETE, UPDATE):
        index = draws.pick(space.indexes)
        body[INDEX_ID] = index.id
        body[KEY] = space.key(draws, index)
    else:
        body[TUPLE] = space.row(draws)
    if kind == UPDATE:
        body[TUPLE] = _operations(draws, space)
    if kind == UPSERT:
        body[OPERATIONS] = _operations(draws, space)
    if kind in (UPDATE, UPSERT) and draws.rarely(10):
        body[INDEX_BASE] = draws.pick([1, 0, 2, 2**32])
    if draws.rarely(60):
        body[SPACE_ID] = draws.pick([0, 9999, 2**31, 2**32 + SPACE])
    if kind in (DELETE, UPDATE) and draws.rarely(40):
        body[INDEX_ID] = draws.pick([len(space.indexes), 127, 128, 2**32])
    return Request(kind, body)


def _operations(draws: Draws, space: Layout) -> list[list[Any]]:
    return [_operation(draws, space) for _ in range(draws.pick([1, 1, 2, 3, 0]))]


def _operation(draws: Draws, space: Layout) -> list[Any]:
    """Draw an operation on a whole field; another group covers operations inside fields."""
    number = draws.below(len(space.fields) + 1)
    field_type = space.fields[number].type if number < len(space.fields) else "any"
    sign = draws.pick("===!#+-&|^:")
    match sign:
        case "=" | "!":
            arguments = [value(draws, field_type, exact=space.exact, wrong=40)]
        case "#":
            arguments = [draws.pick([1, 1, 2, 100])]
        case ":":
            arguments = [draws.pick([0, 1, -1]), draws.pick([0, 1, 5]), value(draws, "string", exact=True)]
        case _:
            arguments = [value(draws, "unsigned", exact=True)]
    return [sign, number, *arguments]
