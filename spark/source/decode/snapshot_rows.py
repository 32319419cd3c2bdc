"""Reads the tuples of a space in blocks of a snapshot.

Rows of one space are alike: a header, a common prefix of the body, and the tuple. Compiled code reads such
rows sequentially. Without it, numpy searches for the prefix, and checks that the rows found cover every byte
of the blocks, since a tuple may contain the bytes of the prefix. Other blocks are decoded row by row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError
from iproto_server.storage.errors import XlogError
from iproto_server.storage.xlog import Block, RowType, decode_rows
from pyspark_tarantool.native import twin
from pyspark_tarantool.source.decode.packed import Buffer, Octets, Offsets
from pyspark_tarantool.source.decode.packed_tuples import Tuples
from pyspark_tarantool.source.io.damage import DamageHandler

_BEGINNING: Final = 64
"""The maximum size in bytes of a header and the prefix of a body."""


def read_tuples(
    blocks: Sequence[Block], space_id: int, wanted: int, name: str, damage: DamageHandler
) -> Iterator[Tuples]:
    """The tuples of a space in blocks of a snapshot.

    Parameters:
        blocks: The blocks.
        space_id: The space's id.
        wanted: The number of items of each tuple to make cells of.
        name: The file's name.
        damage: Handles rows that cannot be read.

    Yields:
        Groups of tuples, as large as possible.

    Raises:
        XlogError: If rows cannot be read, and that is not to be skipped.
    """
    plain = plain_tuples(Buffer(*(block.payload for block in blocks)), space_id, wanted)
    if plain is not None:
        yield plain
        return
    if len(blocks) > 1:
        for block in blocks:
            yield from read_tuples([block], space_id, wanted, name, damage)
        return
    for block in blocks:
        raws = tuples_of(block, space_id, name, damage)
        if raws:
            yield Tuples.of(raws, wanted)


def tuples_of(block: Block, space_id: int, name: str, damage: DamageHandler) -> list[bytes]:
    """The tuples of a space in a block, row by row.

    Parameters:
        block: The block.
        space_id: The space's id.
        name: The file's name.
        damage: Handles rows that cannot be read.

    Raises:
        XlogError: If rows cannot be read, and that is not to be skipped.
    """
    try:
        rows = decode_rows(block.payload)
    except ValueError as error:
        damage.add(XlogError(name, block.start, str(error)), block.end)
        return []
    return [
        row.tuple_raw
        for row in rows
        if row.space_id == space_id and row.type == RowType.INSERT and row.tuple_raw is not None
    ]


def plain_tuples(buffer: Buffer, space_id: int, wanted: int) -> Tuples | None:
    """Find the tuples of rows, all of which must be plain and of one space.

    Parameters:
        buffer: The rows only.
        space_id: The space's id.
        wanted: The number of items of each tuple to make cells of.

    Returns:
        The tuples; None if one of the rows is not plain.
    """
    found = quick_tuples(buffer.data, buffer.size, space_id, wanted)
    if found is None:
        return _searched_tuples(buffer, space_id, wanted)
    return Tuples.of_columns(buffer, np.frombuffer(found, np.int64).reshape(3 + 2 * wanted, -1))


@twin
def quick_tuples(data: bytes, size: int, space_id: int, items: int) -> bytes | None:
    """Compiled scanner of plain rows.

    Parameters:
        data: The buffer.
        size: The size of the rows in bytes.
        space_id: The id of the space.
        items: The number of items of each tuple to locate.

    Returns:
        Concatenated columns of 64-bit numbers: start, end and number of items of each tuple, and the start
        and end of each item; -1 for missing ones. None if a row is not plain, or without compiled code.
    """
    return None


def _searched_tuples(buffer: Buffer, space_id: int, wanted: int) -> Tuples | None:
    """Find plain rows without compiled code."""
    try:
        lead = _body_lead(buffer.data[: min(buffer.size, _BEGINNING)], space_id)
        if lead is None:
            return None
        start = buffer.find(lead) + len(lead)
        tuples = Tuples(buffer, start, wanted)
        headers = np.concatenate((np.zeros(1, np.int64), tuples.cells.end))
        if headers[-1] == buffer.size and _are_headers(buffer, headers[:-1], start - len(lead)):
            return tuples
    except ValueError:
        # Decoding row by row reports errors, if there are any.
        pass
    return None


def _body_lead(beginning: bytes, space_id: int) -> bytes | None:
    """The common prefix of the rows' bodies, if the first row is an INSERT of the space."""
    try:
        start = codec.skip(beginning, 0)
        end = codec.skip(beginning, start + 2)
        number = codec.unpack(beginning[start + 2 : end])
    except BoxError:
        return None
    lead = beginning[start : end + 1]
    return lead if number == space_id and lead[:2] == b"\x82\x10" and lead[-1:] == b"\x21" else None


def _are_headers(buffer: Buffer, start: Offsets, end: Offsets) -> bool:
    """Whether the bytes between offsets are headers of INSERT."""
    pairs, key, row_type = (buffer.octets.take(start + place) for place in range(3))
    if not ((pairs >= 0x82) & (pairs <= 0x84) & (key == 0x00) & (row_type == RowType.INSERT)).all():
        return False
    at, pairs = start + 3, pairs - 0x81
    for pair in range(3):
        for _ in range(2):
            rest = pairs > pair
            if not _are_numbers(buffer.octets.take(at[rest], mode="wrap")):
                return False
            at[rest] = buffer.skip(at[rest])
    return bool((at == end).all())


def _are_numbers(first: Octets) -> bool:
    """Whether the first bytes of values are those of unsigned integers or times."""
    return bool(((first < 0x80) | ((first >= 0xCA) & (first <= 0xCF))).all())
