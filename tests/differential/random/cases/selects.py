"""SELECT: all iterators with whole, partial and wrong keys, limits and offsets, on every kind of index."""

from __future__ import annotations

from typing import Any, Final

from tests.differential.ddl.system_rows import ALL
from tests.differential.random.request import Request
from tests.differential.random.values.draws import Draws, sequence
from tests.differential.random.values.layout import LaidIndex, Layout, layout
from tests.iproto_client import INDEX_ID, ITERATOR, KEY, LIMIT, OFFSET, REPLACE, SELECT, SPACE_ID, TUPLE

SPACE: Final = 700
_ITERATORS: Final = [0, 0, 1, 2, 3, 4, 5, 6, 0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 255, 2**32]
_LIMITS: Final = [ALL, ALL, 1, 2, 3, 0, 2**32, 2**32 + 1, 2**64 - 1]
_OFFSETS: Final = [0, 1, 2, 5, 100, ALL, 2**32 + 1]


def case(draws: Draws) -> list[Request]:
    """Draw a space with rows, and SELECTs."""
    space = layout(draws, SPACE)
    rows = sequence(draws, lambda each: Request(REPLACE, {SPACE_ID: SPACE, TUPLE: space.row(each)}), 4, 8)
    questions = sequence(draws, lambda each: select(each, space))
    return [*space.definition, *rows, *questions]


def select(draws: Draws, space: Layout) -> Request:
    """Draw a SELECT."""
    index = draws.pick(space.indexes)
    body: dict[int, Any] = {SPACE_ID: space.space_id, INDEX_ID: index.id}
    if index.kind == "hash":
        return _select_hash(draws, space, index, body)
    if not draws.rarely(30):
        body[ITERATOR] = draws.pick(_ITERATORS)
    if draws.rarely(40):
        ordered = [2**32 + index.id for index in space.indexes if index.kind != "hash"]  # 32 bits of it count
        body[INDEX_ID] = draws.pick([len(space.indexes), 127, 128, *ordered])
    if draws.rarely(40):
        body[SPACE_ID] = draws.pick([0, 9999, 2**31, 2**32 + SPACE, 2**64 - 1])
    if draws.rarely(5):
        body[OFFSET] = draws.pick(_OFFSETS)
    body[LIMIT] = draws.pick(_LIMITS)
    body[KEY] = space.key(draws, index, part=3)
    return Request(SELECT, body)


def _select_hash(draws: Draws, space: Layout, index: LaidIndex, body: dict[int, Any]) -> Request:
    """The order of a hash is undefined, so select all of its rows, or those of one key."""
    iterator = draws.pick([0, 0, 0, 2, 1, 3, 4, 5, 7, 12])
    key = [] if iterator == 2 else space.key(draws, index, part=8)
    limit = ALL if not key else draws.pick(_LIMITS)
    return Request(SELECT, {**body, ITERATOR: iterator, LIMIT: limit, KEY: key}, unordered=True)
