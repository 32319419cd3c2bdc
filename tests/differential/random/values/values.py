"""Values for fields of every type, with those at the edges.

Excluded, because they damage Tarantool 2.6: decimals beside NaN, infinities or doubles of more than 15
digits, NaN in an index on doubles, extensions whose bytes are not a decimal or UUID.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgpack

from tests.differential.random.values.draws import Draws
from tests.differential.random.values.packing import decimal, float32, uuid

_UNSIGNED: Final[list[Any]] = [
    *(0, 1, 2, 3, 4, 5, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**53, 2**53 + 1),
    *(2**63 - 1, 2**63, 2**64 - 1),
]
_INTEGERS: Final[list[Any]] = [*_UNSIGNED, -1, -2, -32, -33, -128, -129, -(2**31), -(2**53) - 1, -(2**63)]
_SHORT_DOUBLES: Final[list[Any]] = [
    0.5,
    1.0,
    2.0,
    -0.5,
    -1.0,
    -0.0,
    1.5,
    1e10,
    0.125,
    float32(1.0),
    float32(0.5),
]
_LONG_DOUBLES: Final[list[Any]] = [
    *(9007199254740993.0, 2.0**63, 2.0**64, -(2.0**63), 1e300, -1e300, 5e-324, 0.1, 1e15 / 3),
    *(float("inf"), float("-inf"), float32(0.1), float32(float("inf"))),
]
_DECIMALS: Final[list[Any]] = [
    decimal(text)
    for text in (
        "0",
        "1",
        "1.0",
        "1.00",
        "-1",
        "0.5",
        "2.5",
        "1E-30",
        "9007199254740993",
        "18446744073709551616",
    )
]
_STRINGS: Final[list[Any]] = [
    "a",
    "b",
    "",
    "aa",
    "a\0",
    "A",
    "z",
    "ä",
    "Ä",
    "é",
    "e\u0301",
    "ß",
    "ss",
    "\U0001f600",
    "\udcff",
    "a" * 40,
]
_BINARIES: Final[list[Any]] = [b"a", b"", b"\0", b"b", b"\xff", b"a\0", b"a" * 300]
_UUIDS: Final[list[Any]] = [uuid(1), uuid(0), uuid(2**127), uuid(2**128 - 1)]
_ARRAYS: Final[list[Any]] = [[], [1], ["a", None], [[1, 2], {"a": 1}], list(range(20))]
_MAPS: Final[list[Any]] = [{}, {"a": 1}, {"b": {"c": [1]}, "a": None}, {1: 2}, {None: True, True: 0.5}]
_ODD: Final[list[Any]] = [None, True, msgpack.ExtType(77, b"xy")]

_BOOLEANS: Final[list[Any]] = [False, True]
_DOUBLES: Final[list[Any]] = [
    0.5,
    1.0,
    -0.5,
    *(each for each in _LONG_DOUBLES if isinstance(each, float)),
    -0.0,
    1e10,
]

FIELD_TYPES: Final = (
    *(
        "unsigned",
        "string",
        "integer",
        "number",
        "scalar",
        "boolean",
        "double",
        "decimal",
        "varbinary",
        "uuid",
    ),
    *("any", "array", "map"),
)
"""All types that Tarantool 2.6 has."""

KEY_TYPES: Final = FIELD_TYPES[:-3]
"""Those that an index may have."""

_SIMPLE: Final = 5
"""The number of values at the beginning of each list that are chosen more often, for duplicate keys."""


@cache
def _pool(field_type: str, exact: bool) -> list[Any]:
    """The values of a type, the simple ones first."""
    match field_type:
        case "number":
            return [*_INTEGERS, *_SHORT_DOUBLES, *(_DECIMALS if exact else _LONG_DOUBLES)]
        case "scalar":
            return [*_STRINGS, *_pool("number", exact), *_BOOLEANS, *_BINARIES]
        case "any":
            return [*_pool("scalar", exact), *_UUIDS, *_ARRAYS, *_MAPS, *_ODD]
    return {
        "unsigned": _UNSIGNED,
        "string": _STRINGS,
        "integer": _INTEGERS,
        "boolean": _BOOLEANS,
        "double": _DOUBLES,
        "decimal": _DECIMALS,
        "varbinary": _BINARIES,
        "uuid": _UUIDS,
        "array": _ARRAYS,
        "map": _MAPS,
    }[field_type]


@cache
def _weighted(field_type: str, exact: bool, nils: int) -> list[Any]:
    pool = _pool(field_type, exact)
    repeated = pool[:_SIMPLE] * (2 * len(pool) // min(_SIMPLE, len(pool)))
    weighted = [*pool, *repeated]
    return weighted + [None] * (len(weighted) // nils)


def value(draws: Draws, field_type: str, *, exact: bool, wrong: int = 40, nils: int = 60) -> Any:
    """A value for a field.

    Parameters:
        draws: The source of choices.
        field_type: The field's type.
        exact: Whether numbers include decimals, and no doubles of many digits.
        wrong: The rarity of values of any type.
        nils: The rarity of nil.
    """
    weighted = _weighted(field_type, exact, nils)
    choice = draws.below(len(weighted) + len(weighted) // wrong + 1)
    return weighted[choice] if choice < len(weighted) else draws.pick(_pool("any", exact))
