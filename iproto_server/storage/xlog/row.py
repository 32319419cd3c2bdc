"""Rows: one change of one tuple each, as they are inside a block.

A row is a header map and, except for NOP, a body map.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import NamedTuple


class RowType(IntEnum):
    """The requests that logs hold; RAFT and after it are about the replica set."""

    INSERT = 2
    REPLACE = 3
    UPDATE = 4
    DELETE = 5
    UPSERT = 9
    NOP = 12
    RAFT = 30
    PROMOTE = 31
    DEMOTE = 32
    CONFIRM = 40
    ROLLBACK = 41


class RowFlag(IntFlag):
    """Bits of `Row.flags`."""

    COMMIT = 1
    WAIT_SYNC = 2
    WAIT_ACK = 4


class HeaderKey(IntEnum):
    """Keys of a row's header."""

    TYPE = 0x00
    REPLICA_ID = 0x02
    LSN = 0x03
    TIMESTAMP = 0x04
    GROUP_ID = 0x07
    TSN = 0x08
    FLAGS = 0x09


class BodyKey(IntEnum):
    """Keys of a row's body."""

    SPACE_ID = 0x10
    INDEX_ID = 0x11
    INDEX_BASE = 0x15
    KEY = 0x20
    TUPLE = 0x21
    OPERATIONS = 0x28


class Row(NamedTuple):
    """One change, its values packed as the file has them.

    Attributes:
        type: A `RowType`, or the number of a request that this version does not know.
        lsn: Its number in the log of the member `replica_id`; 0 in the first row of a snapshot.
        space_id: None in rows that are about no space.
        tuple_raw: The tuple of INSERT, REPLACE and UPSERT.
        key_raw: The key of UPDATE and DELETE.
        operations_raw: The operations of UPDATE and UPSERT.
        index_id: The index that `key_raw` is a key of.
        index_base: What the operations start counting fields from.
        body: The whole body map; empty when there is none.
        timestamp: When it was committed, in seconds since 1970.
        replica_id: The member that made it; 0 in snapshots and in rows of spaces that are not replicated.
        group_id: 1 for spaces that are not replicated, else 0.
        tsn: The LSN of its transaction's first replicated row.
        flags: `RowFlag` bits; COMMIT is set in the last row of every transaction.
    """

    type: int
    lsn: int
    space_id: int | None = None
    tuple_raw: bytes | None = None
    key_raw: bytes | None = None
    operations_raw: bytes | None = None
    index_id: int = 0
    index_base: int = 0
    body: bytes = b""
    timestamp: float = 0.0
    replica_id: int = 0
    group_id: int = 0
    tsn: int = 0
    flags: int = RowFlag.COMMIT

    @property
    def is_last(self) -> bool:
        """Whether its transaction ends with it."""
        return bool(self.flags & RowFlag.COMMIT)
