"""Rows of a block: each is the change of one tuple.

A row consists of a header map and, except for NOP, a body map.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import NamedTuple


class RowType(IntEnum):
    """Types of rows; RAFT and later ones concern the replica set."""

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


class BodyKey(IntEnum):
    """Keys of a row's body."""

    SPACE_ID = 0x10
    INDEX_ID = 0x11
    INDEX_BASE = 0x15
    KEY = 0x20
    TUPLE = 0x21
    OPERATIONS = 0x28


class Row(NamedTuple):
    """One change; its values stay packed as in the file.

    Attributes:
        type: A `RowType`, or the number of an unknown request type.
        lsn: Its LSN in the log of the member `replica_id`; 0 in the first row of a snapshot.
        space_id: Id of the space; None in rows about no space.
        tuple_raw: The tuple of INSERT, REPLACE and UPSERT.
        key_raw: The key of UPDATE and DELETE.
        operations_raw: The operations of UPDATE and UPSERT.
        index_id: The index of `key_raw`.
        index_base: Number of the first field in the operations.
        body: The whole body map; empty if there is none.
        timestamp: Time of the commit, in seconds since 1970.
        replica_id: The member that made the change; 0 in snapshots and in rows of spaces that are not
            replicated.
        group_id: 1 for spaces that are not replicated, else 0.
        tsn: Transaction id: the LSN of the transaction's first replicated row.
        flags: `RowFlag` bits; COMMIT marks the last row of a transaction.
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
        """Whether it is the last row of its transaction."""
        return bool(self.flags & RowFlag.COMMIT)
