"""Numbers of Tarantool 1.5's protocol."""

from enum import IntEnum, IntFlag
from typing import Final

HEADER_SIZE: Final = 12
BODY_MAX: Final = 2**31
"""The greatest length of a body, in bytes."""
UPDATE_OPERATIONS_MAX: Final = 4000
"""The greatest number of operations of an UPDATE."""


class RequestType15(IntEnum):
    """The types of requests."""

    INSERT = 13
    SELECT = 17
    UPDATE = 19
    DELETE_1_3 = 20
    """A DELETE without flags, of older versions."""
    DELETE = 21
    CALL = 22
    PING = 65280


class Flag(IntFlag):
    """Flags of INSERT, UPDATE and DELETE; other bits are ignored."""

    RETURN_TUPLE = 1
    """Return the row, not only the number of rows."""
    ADD = 2
    """Refuse the row if there is one with its primary key."""
    REPLACE = 4
    """Refuse the row unless there is one with its primary key."""


class UpdateCode(IntEnum):
    """The operations of an UPDATE. Only 1.5's Lua sends SUBTRACT and DELETE_MANY."""

    SET = 0
    ADD = 1
    AND = 2
    XOR = 3
    OR = 4
    SPLICE = 5
    DELETE = 6
    INSERT = 7
    SUBTRACT = 8
    DELETE_MANY = 9
