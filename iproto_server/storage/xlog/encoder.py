"""Encoding rows: spliced from byte strings, not packed from dicts, for every commit comes through here."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final

from iproto_server.native import twin
from iproto_server.storage.xlog.block import pack_unsigned
from iproto_server.storage.xlog.row import HeaderKey, Row, RowFlag, RowType

_COMMIT: Final = int(RowFlag.COMMIT)
_DELETE: Final = int(RowType.DELETE)
_UINT64_MAX: Final = 2**64 - 1

_SPACE_ID: Final = b"\x10"
_INDEX_ID: Final = b"\x11"
_INDEX_BASE: Final = b"\x15"
_KEY: Final = b"\x20"
_TUPLE: Final = b"\x21"
_OPERATIONS: Final = b"\x28"

_pack_timestamp = Struct(">BBd").pack
_LAST_FLAG: Final = bytes((HeaderKey.FLAGS, _COMMIT))


def insert_body(space_id: int, tuple_raw: bytes) -> bytes:
    """The body of INSERT and REPLACE.

    Parameters:
        space_id: the space.
        tuple_raw: the tuple.
    """
    return b"\x82\x10" + pack_unsigned(space_id) + _TUPLE + tuple_raw


def delete_body(space_id: int, key_raw: bytes, index_id: int = 0) -> bytes:
    """The body of DELETE.

    Parameters:
        space_id: the space.
        key_raw: the key, an array.
        index_id: the index that it is a key of.
    """
    if not index_id:
        return b"\x82\x10" + pack_unsigned(space_id) + _KEY + key_raw
    return b"".join((b"\x83\x10", pack_unsigned(space_id), _INDEX_ID, pack_unsigned(index_id), _KEY, key_raw))


def update_body(
    space_id: int, key_raw: bytes, operations_raw: bytes, index_id: int = 0, index_base: int = 0
) -> bytes:
    """The body of UPDATE.

    Parameters:
        space_id: the space.
        key_raw: the key, an array.
        operations_raw: the operations, an array of arrays.
        index_id: the index that it is a key of.
        index_base: what the operations start counting fields from.
    """
    parts = [_SPACE_ID, pack_unsigned(space_id)]
    if index_id:
        parts += (_INDEX_ID, pack_unsigned(index_id))
    if index_base:
        parts += (_INDEX_BASE, pack_unsigned(index_base))
    parts += (_KEY, key_raw, _TUPLE, operations_raw)
    return bytes((0x80 + len(parts) // 2,)) + b"".join(parts)


def upsert_body(space_id: int, tuple_raw: bytes, operations_raw: bytes, index_base: int = 0) -> bytes:
    """The body of UPSERT.

    Parameters:
        space_id: the space.
        tuple_raw: the tuple to insert where there is none.
        operations_raw: the operations on the one that is there, an array of arrays.
        index_base: what the operations start counting fields from.
    """
    parts = [_SPACE_ID, pack_unsigned(space_id)]
    if index_base:
        parts += (_INDEX_BASE, pack_unsigned(index_base))
    parts += (_OPERATIONS, operations_raw, _TUPLE, tuple_raw)
    return bytes((0x80 + len(parts) // 2,)) + b"".join(parts)


def encode_row(row: Row) -> bytes:
    """Encode a row of any kind, as it would be read again.

    Parameters:
        row: the row; of its body only `body` is looked at.

    Returns:
        Header and body.
    """
    parts = [b"\x00", pack_unsigned(row.type)]
    if row.replica_id:
        parts += (bytes((HeaderKey.REPLICA_ID,)), pack_unsigned(row.replica_id))
    if row.group_id:
        parts += (bytes((HeaderKey.GROUP_ID,)), pack_unsigned(row.group_id))
    if row.lsn:
        parts += (bytes((HeaderKey.LSN,)), pack_unsigned(row.lsn))
    if row.timestamp:
        parts += (b"\x04", _pack_timestamp(0x04, 0xCB, row.timestamp)[1:])
    flags = row.flags & ~_COMMIT
    if row.tsn != row.lsn or not row.flags & _COMMIT:
        parts += (bytes((HeaderKey.TSN,)), pack_unsigned((row.lsn - row.tsn) & _UINT64_MAX))
        flags = row.flags
    if flags:
        parts += (bytes((HeaderKey.FLAGS,)), pack_unsigned(flags))
    return bytes((0x80 + len(parts) // 2,)) + b"".join(parts) + row.body


@twin
def encode_change(
    request_type: int, replica_id: int, lsn: int, timestamp: float, space_id: int, raw: bytes
) -> bytes:
    """Encode a transaction of one change: an INSERT, a REPLACE, or a DELETE by the primary key.

    Parameters:
        request_type: which of them.
        replica_id: the member's id, 1 to 31.
        lsn: the LSN of the row.
        timestamp: when it was committed, in seconds since 1970.
        space_id: the space.
        raw: the tuple; for a DELETE the key, an array.

    Returns:
        The row.
    """
    body = delete_body(space_id, raw) if request_type == _DELETE else insert_body(space_id, raw)
    return b"".join(
        (
            b"\x84\x00",
            pack_unsigned(request_type),
            b"\x02",
            pack_unsigned(replica_id),
            b"\x03",
            pack_unsigned(lsn),
            _pack_timestamp(HeaderKey.TIMESTAMP, 0xCB, timestamp),
            body,
        )
    )


class RowEncoder:
    """Encodes the transactions of one member of a replica set, in spaces that are replicated.

    Parameters:
        replica_id: the member's id, 1 to 31.
    """

    __slots__ = ("_heads", "_replica_id", "_stamp", "_timestamp")

    def __init__(self, replica_id: int = 1) -> None:
        self._replica_id = replica_id
        self._heads: dict[int, bytes] = {}
        # Those that are written together have one timestamp.
        self._timestamp = -1.0
        self._stamp = b""

    def transaction(self, lsn: int, timestamp: float, requests: Sequence[tuple[int, bytes]]) -> bytes:
        """Encode a transaction.

        Parameters:
            lsn: the LSN of its first row; the rows are numbered from there on.
            timestamp: when it was committed, in seconds since 1970.
            requests: request types and bodies; at least one.

        Returns:
            Its rows.
        """
        if timestamp != self._timestamp:
            self._timestamp = timestamp
            self._stamp = _pack_timestamp(HeaderKey.TIMESTAMP, 0xCB, timestamp)
        stamp = self._stamp
        if len(requests) == 1:
            request_type, body = requests[0]
            head = self._heads.get(request_type) or self._new_head(request_type)
            return b"".join((b"\x84", head, pack_unsigned(lsn), stamp, body))
        parts: list[bytes] = []
        last = len(requests) - 1
        for number, (request_type, body) in enumerate(requests):
            head = self._heads.get(request_type) or self._new_head(request_type)
            parts += (
                b"\x85" if number < last else b"\x86",
                head,
                pack_unsigned(lsn + number),
                stamp,
                b"\x08",
                pack_unsigned(number),
            )
            if number == last:
                parts.append(_LAST_FLAG)
            parts.append(body)
        return b"".join(parts)

    def _new_head(self, request_type: int) -> bytes:
        """A header from the request's type to the key of the LSN."""
        head = b"".join(
            (b"\x00", pack_unsigned(request_type), b"\x02", pack_unsigned(self._replica_id), b"\x03")
        )
        self._heads[request_type] = head
        return head
