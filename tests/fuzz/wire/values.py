"""MessagePack values: unpacked as by the library `msgpack`, cut as specified, and packed again."""

from __future__ import annotations

from typing import Final

from iproto_server.codec import msgpack as codec
from iproto_server.codec.msgpack import Datetime, ExtType, Interval, Raw
from iproto_server.errors import BoxError
from tests.codec import model
from tests.fuzz.draw import Draw
from tests.fuzz.target import Target

_LENGTHS: Final = {
    **{0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8, 0xCA: 4, 0xCB: 8},
    **{0xC0: 0, 0xC2: 0, 0xC3: 0, 0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17},
}
_SIZED: Final = {
    **{0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0), 0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1)},
    **{0xD9: (1, 0), 0xDA: (2, 0), 0xDB: (4, 0)},
}
_ITEMS: Final = {0xDC: (2, 1), 0xDD: (4, 1), 0xDE: (2, 2), 0xDF: (4, 2)}
_DEEPEST: Final = 1024
_MODEL_DEEPEST: Final = 100
"""Deeper values are not read by the model, which is recursive."""


def measure(raw: bytes, position: int = 0) -> tuple[int, int] | None:
    """Return the end and the depth of the value at a position, according to the specification.

    Returns:
        None if there is no complete value.

    Source: https://github.com/msgpack/msgpack/blob/master/spec.md
    """
    left = [1]
    deepest = 0
    while left:
        if not left[-1]:
            left.pop()
            continue
        left[-1] -= 1
        if position >= len(raw):
            return None
        first = raw[position]
        position += 1
        count: int | None = None
        if first < 0x80 or first >= 0xE0:
            continue
        if first < 0x90:
            count = 2 * (first & 0x0F)
        elif first < 0xA0:
            count = first & 0x0F
        elif first < 0xC0:
            position += first & 0x1F
        elif first in _LENGTHS:
            position += _LENGTHS[first]
        elif first in _SIZED:
            width, more = _SIZED[first]
            position += width + more + int.from_bytes(raw[position : position + width], "big")
        elif first in _ITEMS:
            width, each = _ITEMS[first]
            count = each * int.from_bytes(raw[position : position + width], "big")
            position += width
        else:
            return None
        if position > len(raw):
            return None
        if count is not None:
            left.append(count)
            deepest = max(deepest, len(left))
    return position, deepest


def end_of(raw: bytes) -> int | None:
    """Return the end of the first value; None if there is none."""
    try:
        return codec.skip(raw, 0)
    except BoxError:
        return None


def check(data: bytes) -> None:
    draw = Draw(data)
    if draw.byte() % 4 == 0:
        value = draw.value(5)
        packed = codec.pack(value)
        assert codec.is_valid(packed)
        check_raw(packed)
    else:
        check_raw(draw.rest())


def check_raw(raw: bytes) -> None:
    """Decode bytes in all ways."""
    measured = measure(raw)
    valid = codec.is_valid(raw)
    if measured is None or measured[1] <= _DEEPEST:
        assert valid == (measured is not None and measured[0] == len(raw))
        assert end_of(raw) == (measured and measured[0])
    if measured is None or measured[1] <= _MODEL_DEEPEST:
        check_with_model(raw)
    try:
        value = codec.unpack(raw)
    except BoxError:
        assert not valid
        return
    assert valid
    kind = codec.kind(raw)
    if kind is codec.Kind.ARRAY:
        check_array(raw, value)
    elif kind is codec.Kind.MAP:
        pairs = codec.split_map(raw)
        assert b"".join(map(b"".join, pairs)) == raw[len(raw) - sum(map(len, map(b"".join, pairs))) :]
        assert len(pairs) == codec.map_count(raw) >= len(value)
    try:
        packed = codec.pack(value)
        both = codec.pack([codec.Raw(raw), value])
    except BoxError as error:
        # Maps that are keys become tuples of pairs, which are deeper.
        if len(raw) < _DEEPEST / 4 or "nested too deep" not in error.message:
            raise
        return
    assert codec.pack(codec.unpack(packed)) == packed
    assert both == b"\x92" + raw + packed


def check_array(raw: bytes, value: list[object]) -> None:
    items = codec.split_array(raw)
    assert b"".join(items) == raw[len(raw) - sum(map(len, items)) :]
    assert len(items) == codec.array_count(raw) == len(value)
    assert codec.first_items(raw, 2) == items[:2]


def check_with_model(raw: bytes) -> None:
    """Compare what is unpacked, and whether, with the library."""
    try:
        expected = model.in_detail(model.unpacked(raw))
    except model.Unknown:
        return
    except model.Malformed:
        expected = ""
    try:
        found = model.in_detail(codec.unpack(raw))
    except BoxError:
        found = ""
    assert found == expected


TARGET: Final = Target(
    check,
    [
        bytes(12),
        *(
            b"\1" + codec.pack(value)
            for value in (
                [1, -1, 2**63, 1.5, "text", b"bytes", None, True],
                {"a": {"b": [1, 2, 3]}, 1: 2, -5: {}},
                [[], [[]], {}, "x" * 40, "y" * 300],
                [Datetime(1), Datetime(1, 2, 3, 4), Interval(1, 2, 3), ExtType(1, b"\2\1\x2c")],
                [ExtType(3, codec.pack({0: [{0: "T", 1: "f", 2: 1, 3: "m", 4: 0, 5: 7, 6: {}}]}))],
                [Raw(b"\xd6\xff\0\0\0\1"), ExtType(9, b""), ExtType(2, bytes(16))],
            )
        ),
        b"\1\x81\x91\1\2",
        b"\1\x82\x81\1\2\3\x81\1\x91\2\3",
        b"\1\xdd\0\0\0\2\xca\x3f\x80\0\0\xc0",
        b"\1" + b"\x91" * 50 + b"\xc0",
    ],
    {
        "an extension of 4 GiB less one byte, which is only a head": b"\1\x92\xc9\xff\xff\xff\xff\1",
    },
)
