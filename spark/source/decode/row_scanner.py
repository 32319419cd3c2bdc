"""Scans blocks of logs for rows, many at once.

Most rows of a log are plain: a header of type, member, LSN and timestamp, and a body of a space and a tuple
or key, or a key and operations. Compiled code reads such rows sequentially. Without it, numpy searches for
the common bytes of their headers, and checks that the rows found cover every byte. Other blocks are decoded
row by row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from iproto_server.storage.errors import XlogError
from iproto_server.storage.xlog import Block, Row, RowType, decode_rows
from pyspark_tarantool.native import twin
from pyspark_tarantool.source.decode.log_rows import LSN_MAX, LogRows
from pyspark_tarantool.source.decode.packed import Buffer, Cells, Offsets, forms_of
from pyspark_tarantool.source.decode.packed_tuples import Tuples
from pyspark_tarantool.source.io.damage import DamageHandler

_INSERT, _REPLACE, _UPDATE, _DELETE, _UPSERT = map(
    int, (RowType.INSERT, RowType.REPLACE, RowType.UPDATE, RowType.DELETE, RowType.UPSERT)
)
_INDEX_BASE, _KEY, _TUPLE, _OPERATIONS = 0x15, 0x20, 0x21, 0x28

_NUMBER_SIZES: Final = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
_LSN_SIZES: Final = {0xCD: 2, 0xCE: 4, 0xCF: 8}
_PLACE_OF_LSN: Final = 7
_TIMESTAMP_SIZE: Final = 10
_UNFINISHED: Final = 0x85
"""The first byte of a header of a row that does not end its transaction."""

_FEW: Final = 64 * 1024
"""Groups of up to this many bytes that are not plain are decoded row by row: blocks may have one row each."""


class _RowColumn(IntEnum):
    """The columns that compiled code returns for rows; from VALUE on they belong to `Tuples`."""

    TYPE = 0
    LSN = 1
    REPLICA_ID = 2
    TSN = 3
    TIMESTAMP = 4
    SPACE_ID = 5
    INDEX_BASE = 6
    KEY = 7
    TUPLE = 9
    OPERATIONS = 11
    VALUE = 13
    ITEMS = 16


def read_rows(blocks: Sequence[Block], name: str, damage: DamageHandler, items: int = 0) -> Iterator[LogRows]:
    """Read the rows of blocks.

    Parameters:
        blocks: The blocks.
        name: The file's name.
        damage: Handles rows that cannot be read.
        items: The number of items of each key and tuple to locate.

    Yields:
        Groups of rows, as large as possible.

    Raises:
        XlogError: If rows cannot be read, and that is not to be skipped.
    """
    buffer = Buffer(*(block.payload for block in blocks))
    plain = plain_rows(buffer, items)
    if plain is not None:
        yield plain
    elif len(blocks) > 1 and buffer.size > _FEW:
        # Often, only the width of LSNs changes somewhere.
        middle = len(blocks) // 2
        yield from read_rows(blocks[:middle], name, damage, items)
        yield from read_rows(blocks[middle:], name, damage, items)
    else:
        rows = [row for block in blocks for row in rows_of(block, name, damage)]
        if rows:
            yield LogRows.of(rows)


def rows_of(block: Block, name: str, damage: DamageHandler) -> list[Row]:
    """Decode the rows of a block individually; parameters and errors are those of `read_rows`."""
    try:
        rows = decode_rows(block.payload)
        if not all(map(_has_usual_numbers, rows)):
            raise ValueError("a number of a row exceeds 63 bits")
        return rows
    except ValueError as error:
        damage.add(XlogError(name, block.start, str(error)), block.end)
        return []


def _has_usual_numbers(row: Row) -> bool:
    """Whether all numbers of a row fit into columns; no server writes others."""
    numbers = (row.type, row.lsn, row.replica_id, row.tsn, row.space_id or 0, row.index_id, row.index_base)
    return max(numbers) <= LSN_MAX and min(numbers) >= -LSN_MAX


def plain_rows(buffer: Buffer, items: int = 0) -> LogRows | None:
    """Find rows, all of which must be plain.

    Parameters:
        buffer: The rows only.
        items: The number of items of each key and tuple to locate.

    Returns:
        The rows; None if one of them is not plain.
    """
    found = quick_rows(buffer.data, buffer.size, items)
    return _searched_rows(buffer, items) if found is None else _rows_of_columns(buffer, items, found)


def is_whole(rows: LogRows) -> bool:
    """Whether the last one of plain rows ends its transaction.

    Parameters:
        rows: The rows, from `plain_rows` with items.
    """
    start = 0
    if len(rows) > 1 and rows.values is not None:
        start = max(int(rows.values.cells.end[-2]), int(rows.operations.end[-2]))
    return int(rows.key.buffer.octets[start]) != _UNFINISHED


@twin
def quick_rows(data: bytes, size: int, items: int) -> bytes | None:
    """Compiled scanner of plain rows.

    Parameters:
        data: The buffer.
        size: The size of the rows in bytes.
        items: The number of items of each key or tuple to locate.

    Returns:
        Concatenated columns of 64-bit numbers: those of `_RowColumn`, and the start and end of each item; -1
        for missing ones. None if a row is not plain, or without compiled code.
    """
    return None


def _rows_of_columns(buffer: Buffer, items: int, found: bytes) -> LogRows:
    """Convert the result of `quick_rows`."""
    columns: npt.NDArray[np.int64] = np.frombuffer(found, np.int64).reshape(_RowColumn.ITEMS + 2 * items, -1)
    count = columns.shape[1]

    def cells(place: int) -> Cells:
        return Cells(buffer, columns[place], columns[place + 1])

    missing = Cells(buffer, *[np.full(count, -1, np.int64)] * 2)
    values = Tuples.of_columns(buffer, columns[_RowColumn.VALUE :]) if items else None
    return LogRows(
        columns[_RowColumn.TYPE],
        columns[_RowColumn.LSN],
        columns[_RowColumn.REPLICA_ID],
        columns[_RowColumn.TSN],
        columns[_RowColumn.TIMESTAMP].view(np.float64),
        columns[_RowColumn.SPACE_ID],
        np.zeros(count, np.int64),
        columns[_RowColumn.INDEX_BASE],
        cells(_RowColumn.KEY),
        cells(_RowColumn.TUPLE),
        cells(_RowColumn.OPERATIONS),
        missing,
        missing,
        values,
    )


def _searched_rows(buffer: Buffer, items: int) -> LogRows | None:
    """Find plain rows without compiled code: all of one member, with LSNs of one width."""
    data = buffer.data
    form = data[6] if buffer.size > _PLACE_OF_LSN else 0
    if form not in _LSN_SIZES or data[3] != 0x02 or data[4] >= 0x80 or data[5] != 0x03:
        return None
    octet = buffer.octets.take
    start = buffer.find(data[3:7]) - 3
    start = start[start >= 0]
    pairs = octet(start)
    start = start[(pairs >= 0x84) & (pairs <= 0x86) & (octet(start + 1) == 0x00)]
    try:
        headers = _Headers(buffer, start, _LSN_SIZES[form])
        bodies = _Bodies(buffer, headers.type, headers.end, items)
        if not np.array_equal(bodies.end, np.append(start[1:], buffer.size)) or not start.size or start[0]:
            return None
    except ValueError:
        # Decoding row by row reports errors, if there are any.
        return None
    count = len(start)
    nothing = np.full(count, -1, np.int64)
    missing = Cells(buffer, nothing, nothing)
    return LogRows(
        headers.type,
        headers.lsn,
        np.full(count, data[4], np.int64),
        headers.tsn,
        headers.timestamp,
        bodies.space_id,
        np.zeros(count, np.int64),
        bodies.index_base,
        bodies.key,
        bodies.tuple,
        bodies.operations,
        missing,
        missing,
        bodies.values,
    )


class _Headers:
    """The headers of plain rows whose LSNs have the given width.

    Raises:
        ValueError: If one is not plain.
    """

    def __init__(self, buffer: Buffer, start: Offsets, lsn_size: int) -> None:
        octet = buffer.octets.take
        at = start + _PLACE_OF_LSN
        stamp = at + lsn_size
        if int(stamp.max(initial=0)) + _TIMESTAMP_SIZE > buffer.size:
            raise ValueError("a header ends behind its buffer")
        self.type: Offsets = octet(start + 2).astype(np.int64)
        self.lsn: Offsets = buffer.unsigned(at, lsn_size).view(np.int64)
        self.timestamp = buffer.unsigned(stamp + 2, 8).view(np.float64)
        self.tsn = self.lsn
        end = stamp + _TIMESTAMP_SIZE
        # In a transaction of several rows: the row's index, and in the last row a flag.
        pairs = octet(start)
        is_usual = (octet(stamp) == 0x04) & (octet(stamp + 1) == 0xCB)
        several = pairs > 0x84
        if several.any():
            of_several = np.flatnonzero(several)
            if (octet(end[of_several]) != 0x08).any():
                raise ValueError("unusual header")
            before, end_of_before = _numbers(buffer, end[of_several] + 1)
            self.tsn = self.lsn.copy()
            self.tsn[of_several] -= before
            end[of_several] = end_of_before
            last = pairs > 0x85
            is_usual &= ~last | ((octet(end) == 0x09) & (octet(end + 1) == 0x01))
            end = np.where(last, end + 2, end)
        if not is_usual.all():
            raise ValueError("unusual header")
        self.end = end


class _Bodies:
    """The bodies of plain rows: a space with a tuple or key, an UPDATE or an UPSERT.

    Raises:
        ValueError: If one is not plain.
    """

    def __init__(self, buffer: Buffer, types: Offsets, start: Offsets, items: int) -> None:
        octet = buffer.octets.take
        if int(start.max(initial=0)) + 4 > buffer.size:
            raise ValueError("a body ends behind its buffer")
        pairs = octet(start)
        self.space_id, at = _numbers(buffer, start + 2)
        is_update, is_upsert = types == _UPDATE, types == _UPSERT
        self.index_base = np.zeros(len(start), np.int64)
        has_base = (is_update | is_upsert) & (pairs == 0x84)
        if has_base.any():
            base = octet(at + 1)
            if ((octet(at) != _INDEX_BASE) | (base >= 0x80))[has_base].any():
                raise ValueError("unusual UPDATE")
            self.index_base = np.where(has_base, base, 0)
            at = np.where(has_base, at + 2, at)
        operations, operations_end = (np.full(len(start), -1, np.int64) for _ in range(2))
        upserts = np.flatnonzero(is_upsert)
        if upserts.size:
            if (octet(at[upserts]) != _OPERATIONS).any():
                raise ValueError("unusual UPSERT")
            operations[upserts] = at[upserts] + 1
            at[upserts] = operations_end[upserts] = _skip_arrays(buffer, operations[upserts])
        first = octet(at)
        has_key = first == _KEY
        has_tuple = (types == _INSERT) | (types == _REPLACE) | is_upsert
        usual = np.where(is_update | is_upsert, (pairs == 0x83) | has_base, pairs == 0x82) & (
            octet(start + 1) == 0x10
        )
        usual &= np.where(has_tuple, first == _TUPLE, ((types == _DELETE) | is_update) & has_key)
        if not usual.all():
            raise ValueError("unusual body")
        value = at + 1
        self.values = Tuples(buffer, value, items) if items else None
        end = _skip_arrays(buffer, value) if self.values is None else self.values.cells.end.copy()
        self.key = Cells(buffer, np.where(has_key, value, -1), np.where(has_key, end, -1))
        self.tuple = Cells(buffer, np.where(has_tuple, value, -1), np.where(has_tuple, end, -1))
        updates = np.flatnonzero(is_update)
        if updates.size:
            if (octet(end[updates]) != _TUPLE).any():
                raise ValueError("unusual UPDATE")
            operations[updates] = end[updates] + 1
            end[updates] = operations_end[updates] = _skip_arrays(buffer, operations[updates])
        self.operations = Cells(buffer, operations, operations_end)
        self.end = end


def _skip_arrays(buffer: Buffer, at: Offsets) -> Offsets:
    """The end offsets of arrays."""
    first = buffer.octets.take(at)
    if not ((first >> 4 == 0x9) | (first == 0xDC) | (first == 0xDD)).all():
        raise ValueError("no array")
    return buffer.skip(at)


def _numbers(buffer: Buffer, at: Offsets) -> tuple[Offsets, Offsets]:
    """The unsigned integers at offsets, and their end offsets."""
    first = buffer.octets.take(at)
    numbers = first.astype(np.int64)
    end = at + 1
    forms = forms_of(first)
    for form in forms:
        if form >= 0x80:
            where: Any = slice(None) if len(forms) == 1 else np.flatnonzero(first == form)
            size = _NUMBER_SIZES.get(form)
            if size is None:
                raise ValueError("no number")
            numbers[where] = buffer.unsigned(at[where] + 1, size).view(np.int64)
            end[where] += size
    return numbers, end
