"""Update operations: each implementation and the model give the same tuple or error."""

from __future__ import annotations

from typing import Final
from unittest.mock import patch

from iproto_server.box.update import apply_update, apply_upsert, execute, parse_update
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError
from tests.fuzz.draw import EDGES, Draw
from tests.fuzz.spaces.update_model import NoOpinion, canonical, model
from tests.fuzz.target import Target

NAMES: Final = {"id": 0, "m": 1, "a": 2, "x.y": 3}
_STARTS: Final = ("m", "a", "id", "[1]", "[2]", "[3]", "[4]", '["m"]', "x.y", "", "z")
_STEPS: Final = (
    *(".a", ".ab", '["a"]', "['ab']", ".b", "[1]", "[2]", "[3]", '["x y"]', "[*]", "[0]", ".", "\udcff"),
    *('[""]', ".m", "[4]"),
)


def draw_operation(draw: Draw) -> object:
    """Draw an operation, valid or not."""
    kind = draw.byte()
    if kind % 16 == 15:
        return draw.value(2)
    field: object = draw.byte() % 7 - 2
    if kind & 0x10:
        field = draw.pick(_STARTS) + "".join(draw.pick(_STEPS) for _ in range(draw.byte() % 4))
    elif kind & 0x20:
        field = draw.integer()
    opcode = "=!#+-&|^:"[kind % 9]
    if opcode == ":":
        return [opcode, field, draw.pick(EDGES), draw.pick(EDGES), draw.scalar()]
    if opcode == "#":
        return [opcode, field, draw.byte() % 4 or 1]
    return [opcode, field, draw.value(2) if opcode in "=!" else draw.scalar()]


def outcome(operations: bytes, row: bytes, index_base: int) -> bytes | tuple[int, str]:
    """Return the tuple, or the number and text of the error."""
    try:
        return apply_update(parse_update(operations, NAMES, index_base), row)
    except BoxError as error:
        return error.code, error.message


def outcome_without_shortcuts(operations: bytes, row: bytes, index_base: int) -> bytes | tuple[int, str]:
    """As `outcome`, by the general implementation."""
    with patch.object(execute, "apply_request", _no_shortcut):
        return outcome(operations, row, index_base)


def _no_shortcut(*_: object) -> None:
    """Use the general implementation for everything."""


def is_array(raw: bytes) -> bool:
    return codec.is_valid(raw) and codec.kind(raw) is codec.Kind.ARRAY


def check(data: bytes) -> None:
    draw = Draw(data)
    first = draw.byte()
    index_base = first >> 1 & 1
    if first & 1:
        raw_operations, raw_row = draw.chunk(), draw.rest()
        if not codec.is_valid(raw_operations) or not is_array(raw_row):
            return
        result = check_raw(raw_operations, raw_row, index_base)
        return
    row = [draw.value(3) for _ in range(draw.byte() % 6)]
    operations = [draw_operation(draw) for _ in range(draw.byte() % 5)]
    result = check_raw(codec.pack(operations), codec.pack(row), index_base)
    if isinstance(result, bytes):
        try:
            # With separate values: operations and row must share nothing.
            expected = model(
                codec.unpack(codec.pack(operations)), codec.unpack(codec.pack(row)), NAMES, index_base
            )
        except NoOpinion:
            return
        assert canonical(codec.unpack(result)) == canonical(expected)


def check_raw(operations: bytes, row: bytes, index_base: int) -> bytes | tuple[int, str]:
    """Run all implementations, and return their outcomes."""
    result = outcome(operations, row, index_base)
    assert result == outcome_without_shortcuts(operations, row, index_base)
    deferred = parse_update(operations, NAMES, index_base, deferred=True)
    skipped: list[BoxError] = []
    if deferred.fault is not None:
        assert result == (deferred.fault.code, deferred.fault.message)
        return result
    upserted = apply_upsert(deferred, row, on_skipped=skipped.append)
    assert is_array(upserted)
    if isinstance(result, bytes):
        assert is_array(result)
        assert upserted == result
        assert not skipped
    return result


_ROW: Final = bytes((3, 0, 0x51, 7, 3, 0, 0, 0x52, 1, 7, 1, 3, 3, 1, 4, 2, 0, 0x53, 3, 4))
_PACKED_ROW: Final = codec.pack([1, {"a": {"b": [1, 2]}}, [1, [2, 3]], "text"])

TARGET: Final = Target(
    check,
    [
        b"\0" + _ROW + bytes((1, 0, 2, 0, 0, 0x55)),
        b"\2" + _ROW + bytes((2, 0x10, 0, 1, 0, 0, 0, 0x55, 0x13, 1, 1, 2, 0, 0x51)),
        b"\0" + _ROW + bytes((2, 8, 3, 1, 1, 3, 1, 2, 2, 1)),
        *(
            b"\1" + bytes((len(packed),)) + packed + _PACKED_ROW
            for packed in (
                codec.pack(operations)
                for operations in (
                    [["=", 3, "x"]],
                    [["+", 0, 1], ["-", "[3][1]", 5]],
                    [["!", "m.a.b[1]", 9], ["=", "m.a.b[3]", 1.5]],
                    [["#", "m.a.b", 1], ["!", "m.c", None]],
                    [[":", 3, 1, -1, "yy"], ["=", -1, 0]],
                    [["&", 0, 1], ["|", 0, 2**63]],
                )
            )
        ),
    ],
)
