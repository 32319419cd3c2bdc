"""Primary keys of rows, as written to the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iproto_server.codec import msgpack as codec
from iproto_server.codec.scan import skip, split_array
from iproto_server.native import twin

if TYPE_CHECKING:
    from iproto_server.box.index.index import Index

_SIZES: Final = {0xCC: 2, 0xCD: 3, 0xCE: 5, 0xCF: 9, 0xD0: 2, 0xD1: 3, 0xD2: 5, 0xD3: 9, 0xCA: 5, 0xCB: 9}
"""Bytes of a packed number, by its first byte."""


def packed_key(primary: Index, row: bytes) -> bytes:
    """Return the primary key of a row, as the array that DELETE takes.

    Parameters:
        primary: the primary index.
        row: the packed row.
    """
    fields = primary.field_numbers
    if fields == (0,):
        return first_key(row)
    if not fields:
        packed: bytes = codec.pack(primary.values_of(codec.unpack(row)))
        return packed
    values = split_array(row)
    key = b"".join([values[number] for number in fields])
    count = len(fields)
    return (bytes((0x90 + count,)) if count < 16 else b"\xdc" + count.to_bytes(2, "big")) + key


@twin
def first_key(row: bytes) -> bytes:
    """Return the first field of a row, as the array of a key.

    Parameters:
        row: the packed row.
    """
    start = 1 if row[0] < 0xA0 else 3 if row[0] == 0xDC else 5
    first = row[start]
    size = 1 if first < 0x80 else 1 + first - 0xA0 if 0xA0 <= first < 0xC0 else _SIZES.get(first)
    return b"\x91" + row[start : start + size if size else skip(row, start)]
