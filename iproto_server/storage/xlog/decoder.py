"""Decodes the rows of a block; their values stay packed."""

from __future__ import annotations

from functools import partial

from iproto_server.native._native import BlockRows
from iproto_server.storage.xlog.row import Row

Change = tuple[int, int, int, int | None, bytes | None, bytes | None, bytes | None, int, int]
"""The change of a row: type, LSN, member, space id, tuple, key, operations, index id and index base."""

# The constructor of the class takes twice as long.
_new_row = partial(tuple.__new__, Row)


def decode_rows(payload: bytes) -> list[Row]:
    """Decode the rows of a block.

    Parameters:
        payload: The packed rows, uncompressed.

    Returns:
        The rows, in order.

    Raises:
        ValueError: The bytes are not rows.
    """
    return list(map(_new_row, BlockRows(payload).rows()))


def change_of(row: Row) -> Change:
    """Return the change of a row."""
    return (
        row.type,
        row.lsn,
        row.replica_id,
        row.space_id,
        row.tuple_raw,
        row.key_raw,
        row.operations_raw,
        row.index_id,
        row.index_base,
    )
