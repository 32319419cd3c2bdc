"""The kinds of packed values."""

from enum import Enum
from typing import Final


class Kind(Enum):
    """The kind of a packed value; its first byte shows it."""

    UINT = "unsigned integer"
    INT = "negative integer"
    FLOAT = "float"
    DOUBLE = "double"
    STR = "string"
    BIN = "binary"
    ARRAY = "array"
    MAP = "map"
    NIL = "nil"
    BOOL = "boolean"
    EXT = "extension"


_KINDS: Final = (
    *[Kind.UINT] * 0x80,
    *[Kind.MAP] * 0x10,
    *[Kind.ARRAY] * 0x10,
    *[Kind.STR] * 0x20,
    *(Kind.NIL, Kind.EXT, Kind.BOOL, Kind.BOOL),  # 0xc1 has no meaning, like an unknown extension.
    *(Kind.BIN, Kind.BIN, Kind.BIN, Kind.EXT, Kind.EXT, Kind.EXT, Kind.FLOAT, Kind.DOUBLE),
    *[Kind.UINT] * 4,
    *[Kind.INT] * 4,
    *[Kind.EXT] * 5,
    *[Kind.STR] * 3,
    *(Kind.ARRAY, Kind.ARRAY, Kind.MAP, Kind.MAP),
    *[Kind.INT] * 0x20,
)


def kind(raw: bytes, start: int = 0) -> Kind:
    """Return the kind of the packed value at `start`; there must be one."""
    return _KINDS[raw[start]]
