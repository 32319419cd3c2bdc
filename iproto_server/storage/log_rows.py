"""The rows that have yet to be written to the log, in the order in which they were committed."""

from __future__ import annotations

from iproto_server.native import twin
from iproto_server.storage.xlog import encode_change
from iproto_server.storage.xlog.block import BLOCK_SIZE, HEAD_SIZE


@twin
class LogRows:
    """Rows of committed transactions, to be written together.

    Its length is the number of bytes.

    Parameters:
        replica_id: this member's id, 1 to 31.
        lsn: the LSN of the row before the first one.

    Attributes:
        lsn: the LSN of the last row.
        timestamp: when the rows were committed, in seconds since 1970.
    """

    __slots__ = ("_blocks", "_is_closed", "_last", "_length", "_replica_id", "_room", "lsn", "timestamp")

    def __init__(self, replica_id: int, lsn: int) -> None:
        self._replica_id = replica_id
        self.lsn = lsn
        self.timestamp = 0.0
        self._length = 0
        self._blocks: list[list[bytes]] = []
        self._last: list[bytes] = []
        self._room = BLOCK_SIZE - HEAD_SIZE
        self._is_closed = False

    def __len__(self) -> int:
        return self._length

    def append(self, transaction: bytes, count: int) -> None:
        """Append a transaction.

        Parameters:
            transaction: its rows.
            count: how many of them are numbered by this member's LSNs.
        """
        if self._is_closed:
            raise RuntimeError("the rows are being written")
        self._last.append(transaction)
        self._length += len(transaction)
        self._room -= len(transaction)
        if self._room <= 0:
            self._blocks.append(self._last)
            self._last = []
            self._room = BLOCK_SIZE - HEAD_SIZE
        self.lsn += count

    def append_change(self, request_type: int, space_id: int, raw: bytes) -> None:
        """Append a transaction of one change: an INSERT, a REPLACE, or a DELETE by the primary key.

        Parameters:
            request_type: which of them.
            space_id: the space.
            raw: the tuple; for a DELETE the key, an array.
        """
        row = encode_change(request_type, self._replica_id, self.lsn + 1, self.timestamp, space_id, raw)
        self.append(row, 1)

    def blocks(self) -> list[bytes]:
        """Return the rows of each block; no more may be appended.

        The rows of a transaction are in one block. A block ends where it has `BLOCK_SIZE` bytes.
        """
        self._is_closed = True
        return [block for rows in (*self._blocks, self._last) if (block := b"".join(rows))]

    def following(self) -> LogRows:
        """Return what has no rows yet, and numbers them from these on."""
        return type(self)(self._replica_id, self.lsn)
