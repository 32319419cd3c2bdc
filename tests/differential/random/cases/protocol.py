"""Headers and bodies with unknown, missing or repeated keys, or values of wrong types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tests.differential.ddl.system_rows import ADMIN, INDEX, SPACE, insert
from tests.differential.random.request import Request
from tests.differential.random.values.draws import Draws, sequence
from tests.differential.random.values.packing import float32, int64, pack, uint64
from tests.iproto_client import (
    AUTH,
    CALL,
    CALL_16,
    DELETE,
    FUNCTION_NAME,
    INSERT,
    KEY,
    OPERATIONS,
    PING,
    REPLACE,
    REQUEST_TYPE,
    SCHEMA_VERSION,
    SELECT,
    SPACE_ID,
    SYNC,
    TUPLE,
    UPDATE,
    UPSERT,
    USER_NAME,
)

ASKED: Final = 512
_FORMAT: Final = [{"name": "id", "type": "unsigned"}, {"name": "n", "type": "any", "is_nullable": True}]

DEFINITION: Final = (
    Request.of(insert(SPACE, [ASKED, ADMIN, "asked", "memtx", 0, {}, _FORMAT])),
    Request.of(insert(INDEX, [ASKED, 0, "primary", "tree", {"unique": True}, [[0, "unsigned"]]])),
    Request.of(insert(ASKED, [1, 1, "a"])),
)
"""The requests that create the space used by others."""

GOOD_BODIES: Final[dict[int, dict[int, Any]]] = {
    PING: {},
    SELECT: {SPACE_ID: ASKED, 0x11: 0, 0x12: 10, 0x13: 0, 0x14: 0, KEY: [1]},
    INSERT: {SPACE_ID: ASKED, TUPLE: [2, 1]},
    REPLACE: {SPACE_ID: ASKED, TUPLE: [1, 1, "a"]},
    UPDATE: {SPACE_ID: ASKED, 0x11: 0, 0x15: 1, KEY: [1], TUPLE: [["+", 2, 1]]},
    DELETE: {SPACE_ID: ASKED, 0x11: 0, KEY: [2]},
    UPSERT: {SPACE_ID: ASKED, 0x15: 1, OPERATIONS: [["=", 2, 5]], TUPLE: [3, 1]},
    CALL: {FUNCTION_NAME: "listed.call", TUPLE: []},
    CALL_16: {FUNCTION_NAME: "listed.call", TUPLE: []},
    AUTH: {USER_NAME: "guest", TUPLE: []},
}
"""A body for each type of request that both servers support."""

_KINDS: Final = list(GOOD_BODIES)
UNKNOWN_KINDS: Final = [
    *(0, 19, 20, 29, 33, 50, 63, 78, 100, 127, 128, 200, 254, 255),
    *(256, 257, 300, 2**16 + 1, 2**32 + 2, 2**63 + SELECT),
]
"""Types that 2.6 does not know; of some it uses only eight bits."""

_VALUES: Final[list[Any]] = [
    *(
        0,
        1,
        2,
        None,
        -1,
        "x",
        1.5,
        [],
        {},
        True,
        False,
        b"x",
        "",
        "primary",
        "admin",
        [1],
        [[]],
        {1: 1},
        [None],
    ),
    *(2**31, 2**32, 2**32 + ASKED, 2**63, 2**64 - 1, int64(1), uint64(ASKED), uint64(0), float32(1.0), 1.0),
]
_BODY_KEYS: Final[list[Any]] = [
    *(0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x20, 0x21, 0x22, 0x23, 0x27, 0x28, 0x2A),
    *(
        0,
        1,
        5,
        0x16,
        0x24,
        0x25,
        0x26,
        0x29,
        0x30,
        0x31,
        0x40,
        0x41,
        0x43,
        0x54,
        0x60,
        0x77,
        0x7F,
        0x80,
        200,
        1000,
    ),
    *(-1, "a", None, 1.5, True, uint64(0x10), [], b"a"),
]
_HEADER_KEYS: Final[list[Any]] = [
    *(2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 0x10, 0x15, 0x16, 0x1E, 0x20, 0x21, 0x2B, 0x30, 0x31, 0x52),
    *(0x7F, 0x80, 200, 2**32, -1, "a", None, 1.5, True, uint64(2), []),
]
_HEADER_VALUES: Final[list[Any]] = [0, 1, 1.0, *_VALUES]
_VERSIONS: Final[list[Any]] = [0, 1, 2**32, 2**32 + 1, 2**31, 10**6, "x", None, -1, 1.0]
_SYNCS: Final[list[Any]] = [0, 2**32, 2**63, 2**64 - 1, int64(7), uint64(7), -1, "x", None, 1.0, [], True]


def case(draws: Draws) -> list[Request]:
    """Draw a space, and requests about it."""
    return [*DEFINITION, *sequence(draws, _request)]


def _request(draws: Draws) -> Request:
    kind = draws.pick(_KINDS)
    pairs = list(GOOD_BODIES[kind].items())
    match draws.below(6):
        case 0:
            return Request(kind, _packed(_spoilt(draws, pairs, _BODY_KEYS, _VALUES)))
        case 1:
            return Request(kind, _packed(pairs), _header(draws, kind))
        case 2:
            return Request(draws.pick(UNKNOWN_KINDS), _packed(pairs))
        case 3:
            return Request(kind, _packed(pairs), {SCHEMA_VERSION: draws.pick(_VERSIONS)})
        case 4:
            return Request(kind, draws.pick(_ODD_BODIES) + (_packed(pairs) if draws.below(2) else b""))
        case _:
            header = [(REQUEST_TYPE, kind), (SYNC, draws.pick(_SYNCS))]
            return Request(kind, _packed(pairs), _packed(header[: draws.pick([2, 2, 1, 0])]))


_ODD_BODIES: Final = [pack(value) for value in ([], None, "x", 1, {}, {1: 2}, [1], True)]


def _header(draws: Draws, kind: int) -> bytes:
    pairs: list[tuple[Any, Any]] = [(REQUEST_TYPE, kind), (SYNC, 7)]
    return _packed(_spoilt(draws, pairs, _HEADER_KEYS, _HEADER_VALUES))


def _spoilt(
    draws: Draws, pairs: Sequence[tuple[Any, Any]], keys: Sequence[Any], values: Sequence[Any]
) -> list[tuple[Any, Any]]:
    """Draw a map with a change, an omission, an insertion or a move."""
    changed = list(pairs)
    for _ in range(draws.pick([1, 1, 2, 3])):
        place = draws.below(len(changed) + 1)
        match draws.below(4):
            case 0 if place < len(changed) and changed[place][0] != REQUEST_TYPE:
                changed[place] = (changed[place][0], draws.pick(values))
            case 1 if place < len(changed):
                del changed[place]
            case 2 if place < len(changed):
                changed.insert(0, changed.pop(place))
            case _:
                changed.insert(place, (draws.pick(keys), draws.pick(values)))
    return changed


def _packed(pairs: Sequence[tuple[Any, Any]]) -> bytes:
    """A map of pairs; a key may be there twice."""
    assert len(pairs) < 16
    return bytes((0x80 | len(pairs),)) + b"".join(pack(key) + pack(value) for key, value in pairs)
