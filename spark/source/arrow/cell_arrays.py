"""Converts cells to Arrow arrays without unpacking them, if their values allow it.

Each function returns None if a cell has another type; the values are unpacked then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyspark_tarantool.native import twin
from pyspark_tarantool.source.arrow.json_text import json_array, quick_json
from pyspark_tarantool.source.decode.packed import NIL, Cells, Octets, Offsets

CellConversion = Callable[[Cells], pa.Array | None]
_Bits = bytes | None
"""Arrow's validity bitmap; None if no value is missing."""

_UNSIGNED: Final = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
_SIGNED: Final = {0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
_STRINGS: Final = {**dict.fromkeys(range(0xA0, 0xC0), 1), 0xD9: 2, 0xDA: 3, 0xDB: 5}
_BINARIES: Final = {0xC4: 2, 0xC5: 3, 0xC6: 5}
"""The first bytes of strings and of binary values, and the sizes of their heads."""

_INTEGERS: Final = {*range(0x80), *range(0xE0, 0x100), *_UNSIGNED, *_SIGNED}
_QUOTE: Final = 0x22
_BACKSLASH: Final = 0x5C


def integers(cells: Cells, arrow: pa.DataType) -> pa.Array | None:
    """Convert cells with integers or nil.

    Parameters:
        cells: The cells.
        arrow: An integer type, or a decimal type without a fraction.
    """
    quick = quick_integers(cells.buffer.data, cells.start)
    if quick is not None and not pa.types.is_decimal(arrow):
        return _cast(_from_buffers(pa.int64(), len(cells), *quick), arrow)
    forms = cells.forms()
    if not forms <= _INTEGERS | {NIL}:
        return None
    first = cells.first
    low = first.astype(np.int8).astype(np.int64)  # One-byte values, with their signs.
    beyond: npt.NDArray[np.bool_] | None = None
    for form in forms & (_UNSIGNED.keys() | _SIGNED.keys()):
        where: Any = slice(None) if len(forms) == 1 else np.flatnonzero(first == form)
        width = _UNSIGNED.get(form) or _SIGNED[form]
        found = cells.buffer.unsigned(cells.start[where] + 1, width)
        if form in _SIGNED:
            found = found.astype(f"u{width}").view(f"i{width}").astype(np.int64).view(np.uint64)
        low[where] = found.view(np.int64)
        if form == 0xCF and (low[where] < 0).any():
            beyond = np.zeros(len(cells), np.bool_)
            beyond[where] = low[where] < 0
    valid = _valid(cells)
    if pa.types.is_decimal(arrow):
        if arrow.scale or arrow.precision < 20:
            return None
        high = low >> 63
        if beyond is not None:
            high[beyond] = 0
        return _array(arrow, np.stack((low, high), 1), valid)
    if beyond is not None:
        return None
    return _cast(_array(pa.int64(), low, valid), arrow)


def _cast(array: pa.Array, arrow: pa.DataType) -> pa.Array | None:
    """Cast integers to another type; None if they do not fit."""
    try:
        return array.cast(arrow)
    except pa.ArrowInvalid:
        return None


def doubles(cells: Cells, arrow: pa.DataType) -> pa.Array | None:
    """Convert cells with floats or nil.

    Parameters:
        cells: The cells.
        arrow: A float type.
    """
    forms = cells.forms()
    if not forms <= {0xCA, 0xCB, NIL}:
        return None
    values = np.zeros(len(cells), np.float64)
    for form, kind in ((0xCA, "u4"), (0xCB, "u8")):
        if form in forms:
            where = np.flatnonzero(cells.first == form)
            bits = cells.buffer.unsigned(cells.start[where] + 1, int(kind[1])).astype(kind)
            values[where] = bits.view(kind.replace("u", "f"))
    return _array(pa.float64(), values, _valid(cells)).cast(arrow, safe=False)


def booleans(cells: Cells) -> pa.Array | None:
    """Convert cells with booleans or nil."""
    if not cells.forms() <= {0xC2, 0xC3, NIL}:
        return None
    return pa.array(cells.first == 0xC3, mask=cells.first == NIL)


def strings_of(cells: Cells, arrow: pa.DataType) -> pa.Array | None:
    """Convert cells with strings or nil, or with binary values or nil.

    Parameters:
        cells: The cells.
        arrow: The string type, or the binary type.
    """
    is_string = pa.types.is_string(arrow)
    quick = quick_strings(cells.buffer.data, cells.start, cells.end, "s" if is_string else "b")
    if quick is not None:
        return _from_buffers(arrow, len(cells), *quick)
    heads = _STRINGS if is_string else _BINARIES
    forms = cells.forms()
    if not forms <= heads.keys() | {NIL}:
        return None
    start = cells.start + _head_sizes(cells, heads)
    return _pieces(cells, cells.buffer.data, start, cells.end, arrow, cells.first == NIL)


def texts(cells: Cells) -> pa.Array:
    """Convert cells to JSON texts; integers, and strings without escapes, are not unpacked."""
    quick = quick_strings(cells.buffer.data, cells.start, cells.end, "q")
    if quick is None:
        quick = quick_json(cells.buffer.data, *cells.places)
    if quick is not None:
        return _from_buffers(pa.string(), len(cells), *quick)
    forms = cells.forms()
    if forms <= _INTEGERS | {NIL}:
        numbers = integers(cells, pa.int64())
        return None if numbers is None else numbers.cast(pa.string())
    if not forms <= _STRINGS.keys() | {NIL}:
        return _texts_by_kind(cells, forms)
    return _quoted(cells)


def _quoted(cells: Cells) -> pa.Array | None:
    """Quoted strings.

    The head of a string precedes it, and the head of another value follows: in a copy of the buffer, these
    bytes become the quotes.
    """
    octets = cells.buffer.octets.copy()
    there = cells.first != NIL
    start, end = cells.start + _head_sizes(cells, _STRINGS), cells.end
    octets[start[there] - 1] = octets[end[there]] = _QUOTE
    array = _pieces(cells, octets, start - 1, end + 1, pa.string(), ~there)
    buffer = array.buffers()[2]
    if buffer is None:
        return array
    found = np.frombuffer(buffer, np.uint8)
    quotes = np.count_nonzero(found == _QUOTE)
    is_plain = quotes == 2 * np.count_nonzero(there) and found.min(initial=0x20) >= 0x20
    return array if is_plain and not (found == _BACKSLASH).any() else None


def _texts_by_kind(cells: Cells, forms: set[int]) -> pa.Array | None:
    """Convert strings, integers and other values separately."""
    table = np.full(256, 2, np.int64)
    table[list(_INTEGERS)] = 0
    table[[*_STRINGS, NIL]] = 1
    kinds = table[cells.first]
    if (kinds == 2).all():
        return None
    parts = []
    order = np.empty(len(cells), np.int64)
    done = 0
    for kind in range(3):
        places = np.flatnonzero(kinds == kind)
        if places.size:
            some = cells.take(places)
            part = None if kind == 2 else texts(some)
            parts.append(json_array(some.values()) if part is None else part)
            order[places] = np.arange(done, done + places.size)
            done += places.size
    return pa.concat_arrays(parts).take(pa.array(order))


def packed(cells: Cells) -> pa.Array:
    """The packed cells; null for missing ones."""
    return _pieces(cells, cells.buffer.data, cells.start, cells.end, pa.binary(), cells.start < 0)


def _valid(cells: Cells) -> npt.NDArray[np.bool_] | None:
    """A mask of the cells with a value; None if all have one."""
    nil = cells.first == NIL
    return ~nil if nil.any() else None


def _array(arrow: pa.DataType, values: npt.NDArray[Any], valid: npt.NDArray[np.bool_] | None) -> pa.Array:
    bits = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(arrow, len(values), [bits, pa.py_buffer(np.ascontiguousarray(values))])


def _head_sizes(cells: Cells, heads: dict[int, int]) -> Offsets:
    table = np.zeros(256, np.int64)
    table[list(heads)] = list(heads.values())
    return table[cells.first]


def _pieces(
    cells: Cells,
    data: bytes | Octets,
    start: Offsets,
    end: Offsets,
    arrow: pa.DataType,
    missing: npt.NDArray[np.bool_],
) -> pa.Array:
    """Pieces of a buffer between offsets.

    They are every other value of an array over the whole buffer, whose values are the pieces and the gaps.
    """
    count = len(cells)
    offsets = np.zeros(2 * count + 1, np.int32)
    offsets[1::2], offsets[2::2] = start, end
    places = np.arange(1, 2 * count, 2, dtype=np.int32)
    mask = None
    if missing.any():
        mask = missing
        gaps = np.flatnonzero(missing)
        offsets[2 * gaps + 1] = offsets[2 * gaps + 2] = 0
        offsets = np.maximum.accumulate(offsets)
    everything = pa.Array.from_buffers(arrow, 2 * count, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    return everything.take(pa.array(places, mask=mask))


def _from_buffers(arrow: pa.DataType, count: int, valid: _Bits, *others: bytes) -> pa.Array:
    buffers = [None if each is None else pa.py_buffer(each) for each in (valid, *others)]
    return pa.Array.from_buffers(arrow, count, buffers)


@twin
def quick_integers(data: bytes, start: Offsets) -> tuple[_Bits, bytes] | None:
    """Compiled conversion to a column of integers.

    Parameters:
        data: The bytes of a buffer.
        start: The start offsets; negative for missing ones.

    Returns:
        The validity bitmap, and the 64-bit integers; None if there are other values than integers and nil, if
        one exceeds 64 bits, or without compiled code.
    """
    return None


@twin
def quick_strings(
    data: bytes, start: Offsets, end: Offsets, kind: Literal["s", "b", "q"]
) -> tuple[_Bits, bytes, bytes] | None:
    """Compiled conversion to a column of strings.

    Parameters:
        data: The bytes of a buffer.
        start: The start offsets; negative for missing ones.
        end: The end offsets.
        kind: The result: strings, binary values, or quoted strings.

    Returns:
        The validity bitmap, the 32-bit offsets, and the bytes; None if there are other values, characters
        that need escapes in quotes, or too many bytes, or without compiled code.
    """
    return None


def unpackable(cells: Cells) -> None:
    """Return None always: for columns that need unpacked values."""
