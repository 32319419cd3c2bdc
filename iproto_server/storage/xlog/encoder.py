"""Encodes rows of any kind, and transactions of any requests."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Final

from iproto_server.codec import msgpack as codec
from iproto_server.native._native import LogRows, encode_row_head
from iproto_server.storage.xlog.row import BodyKey, Row

_UINT64_MAX: Final = 2**64 - 1
_SPACE_ID, _INDEX_ID, _INDEX_BASE, _KEY, _TUPLE, _OPERATIONS = (bytes((key,)) for key in BodyKey)


def insert_body(space_id: int, tuple_raw: bytes) -> bytes:
    """Encode the body of INSERT and REPLACE.

    Parameters:
        space_id: The space.
        tuple_raw: The tuple.
    """
    return _body((_SPACE_ID, codec.pack(space_id)), (_TUPLE, tuple_raw))


def delete_body(space_id: int, key_raw: bytes, index_id: int = 0) -> bytes:
    """Encode the body of DELETE.

    Parameters:
        space_id: The space.
        key_raw: The key, an array.
        index_id: The index of the key.
    """
    index = _number(_INDEX_ID, index_id)
    return _body((_SPACE_ID, codec.pack(space_id)), *index, (_KEY, key_raw))


def update_body(
    space_id: int, key_raw: bytes, operations_raw: bytes, index_id: int = 0, index_base: int = 0
) -> bytes:
    """Encode the body of UPDATE.

    Parameters:
        space_id: The space.
        key_raw: The key, an array.
        operations_raw: The operations, an array of arrays.
        index_id: The index of the key.
        index_base: The number of the first field in the operations.
    """
    numbers = (*_number(_INDEX_ID, index_id), *_number(_INDEX_BASE, index_base))
    return _body((_SPACE_ID, codec.pack(space_id)), *numbers, (_KEY, key_raw), (_TUPLE, operations_raw))


def upsert_body(space_id: int, tuple_raw: bytes, operations_raw: bytes, index_base: int = 0) -> bytes:
    """Encode the body of UPSERT.

    Parameters:
        space_id: The space.
        tuple_raw: The tuple that is inserted if there is none with its key.
        operations_raw: The operations on an existing tuple, an array of arrays.
        index_base: The number of the first field in the operations.
    """
    base = _number(_INDEX_BASE, index_base)
    return _body((_SPACE_ID, codec.pack(space_id)), *base, (_OPERATIONS, operations_raw), (_TUPLE, tuple_raw))


def _number(key: bytes, number: int) -> tuple[tuple[bytes, bytes], ...]:
    """The pair of a number that is left out if it is 0."""
    return ((key, codec.pack(number)),) if number else ()


def _body(*pairs: tuple[bytes, bytes]) -> bytes:
    return bytes((0x80 + len(pairs),)) + b"".join(chain.from_iterable(pairs))


def encode_row(row: Row) -> bytes:
    """Encode a row of any kind, as it would be read again.

    Parameters:
        row: The row; of its body only `body` counts.

    Returns:
        Header and body.
    """
    head = encode_row_head(row.type, row.replica_id, row.group_id, row.lsn, row.timestamp, row.tsn, row.flags)
    return head + row.body


class RowEncoder:
    """Encodes the transactions of one member of a replica set, in spaces that are replicated.

    Parameters:
        replica_id: The member's id, 1 to 31.
    """

    __slots__ = ("_replica_id",)

    def __init__(self, replica_id: int = 1) -> None:
        self._replica_id = replica_id

    def transaction(self, lsn: int, timestamp: float, requests: Sequence[tuple[int, bytes]]) -> bytes:
        """Encode a transaction.

        Parameters:
            lsn: The LSN of its first row; the rows are numbered from there on.
            timestamp: The time of its commit, in seconds since 1970.
            requests: Request types and bodies.

        Returns:
            Its rows.
        """
        rows = LogRows(self._replica_id, (lsn - 1) & _UINT64_MAX)
        rows.timestamp = timestamp
        rows.append(requests)
        return b"".join(rows.blocks())
