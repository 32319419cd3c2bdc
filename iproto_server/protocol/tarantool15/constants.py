"""The numbers of Tarantool 1.5's protocol."""

from enum import IntEnum, IntFlag
from typing import Final

HEADER_SIZE: Final = 12
BODY_MAX: Final = 2**31
"""The longest body, in bytes."""
UPDATE_OPERATIONS_MAX: Final = 4000
"""So many operations an UPDATE may have."""


class RequestType15(IntEnum):
    """The types of requests."""

    INSERT = 13
    SELECT = 17
    UPDATE = 19
    DELETE_1_3 = 20
    """A DELETE without flags, from before there were any."""
    DELETE = 21
    CALL = 22
    PING = 65280


class Flag(IntFlag):
    """What an INSERT, UPDATE or DELETE asks for; all other bits mean nothing."""

    RETURN_TUPLE = 1
    """Answer the row, not only how many there were."""
    ADD = 2
    """Refuse the row if there is one with its primary key."""
    REPLACE = 4
    """Refuse the row unless there is one with its primary key."""


class UpdateCode(IntEnum):
    """The operations of an UPDATE. SUBTRACT and DELETE_MANY are what 1.5's Lua sends."""

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
