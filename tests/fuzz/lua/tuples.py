"""Tuples of Lua: any rows, with any arguments of all methods; updates are those of the box."""

from __future__ import annotations

from typing import Final
from unittest.mock import patch

from iproto_server.codec import msgpack as codec
from iproto_server.lua.functions.tuple_operations import logger
from tests.fuzz.draw import EDGES, Draw
from tests.fuzz.lua.values import functions
from tests.fuzz.spaces.updates import draw_operation, is_array, outcome
from tests.fuzz.target import Target

_PLACES: Final = ("[1]", "[2][1]", "m.a", "", ".", '["a"]', "[3].b[1]", 1, 2, 0, -1, *EDGES)


def draw_arguments(draw: Draw) -> list[object]:
    """Draw arguments, many of which are places in a row."""
    return [draw.pick(_PLACES) if draw.byte() % 2 else draw.value(2) for _ in range(draw.byte() % 6)]


def check(data: bytes) -> None:
    draw = Draw(data)
    if draw.byte() & 1:
        operations, arguments, row = draw.chunk(), draw.chunk(), draw.rest()
    else:
        row = codec.pack([draw.value(3) for _ in range(draw.byte() % 6)])
        operations = codec.pack([draw_operation(draw) for _ in range(draw.byte() % 5)])
        arguments = codec.pack(draw_arguments(draw))
    with patch.object(logger, "disabled", True):
        result = functions()[b"rows"](row, operations, arguments)
    if not isinstance(result, tuple):
        return
    _, row_again, operations_again, updated = (*result, None)[:4]
    assert is_array(row_again)
    if updated is not None:
        assert is_array(updated)
    # What Lua has no values for, such as integral floating-point numbers, is something else there.
    if row_again == row and operations_again == operations and is_array(operations):
        expected = outcome_in_lua(operations, row)
        assert (updated if updated is not None else None) == expected, (row, operations, updated, expected)


def outcome_in_lua(operations: bytes, row: bytes) -> bytes | None:
    """Return the updated row, whose fields have no names; None for any error."""
    from tests.fuzz.spaces import updates

    with patch.object(updates, "NAMES", {}):
        result = outcome(operations, row, 1)
    return result if isinstance(result, bytes) else None


_ROW: Final = bytes((3, 0, 0x51, 7, 3, 0, 0, 0x52, 1, 7, 1, 3, 3, 1, 4, 2, 0, 0x53, 3, 4))
_PACKED_ROW: Final = codec.pack([1, {"a": {"b": [1, 2]}}, [1, [2, 3]], "text"])

TARGET: Final = Target(
    check,
    [
        b"\0" + _ROW + bytes((1, 0, 2, 0, 0, 0x55, 3, 1, 1, 1, 2, 0, 0)),
        b"\2" + _ROW + bytes((2, 0x10, 0, 1, 0, 0, 0, 0x55, 0x13, 1, 1, 2, 0, 0x51, 5, 1, 3, 1, 4, 1, 9)),
        *(
            b"\1" + bytes((len(packed),)) + packed + bytes((len(arguments),)) + arguments + _PACKED_ROW
            for arguments in (codec.pack([1, 2]), codec.pack(["[2].a", 3, -1]))
            for packed in (
                codec.pack(operations)
                for operations in (
                    [["=", 3, "x"]],
                    [["+", 1, 1], ["-", "[3][1]", 5]],
                    [["!", "[2].a.b[1]", 9], ["=", -1, 1.5]],
                    [["#", 2, 1], ["!", 5, None]],
                    [[":", 4, 1, -1, "yy"], ["=", -1, 0]],
                    [["&", 1, 1], ["|", 1, 2**63]],
                )
            )
        ),
    ],
    cases={
        "a search from a number that 1 more does not change": (
            b"\0\3\0Q4\xcc\xcc\xb1J\xd9j\7\3\0\0R\x81\xa1a\x81\xa1b\x92\1\2\x92\1\x92\2\3\xa4t\xc7xt"
        ),
    },
    memory=64 << 20,
)
