"""Many rows of logs at once: their header values, and the places of their keys and tuples in a buffer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from iproto_server.codec import msgpack as codec
from iproto_server.storage.xlog import Change, Row, RowType
from pyspark_tarantool.source.decode.packed import Buffer, Cells, Offsets
from pyspark_tarantool.source.decode.packed_tuples import Tuples

_OLD_TUPLE: Final = b"\x2c"
_NEW_TUPLE: Final = b"\x2d"
"""Keys of row bodies for the tuples before and after a change (Tarantool's `wal_ext`)."""

LSN_MAX: Final = 2**63 - 1

_PLAIN_PAIRS: Final = {int(RowType.UPDATE): 0x83, int(RowType.UPSERT): 0x83}
"""The first bytes of bodies without such tuples; other kinds of rows begin with 82."""


@dataclass(frozen=True, slots=True)
class LogRows:
    """Rows of a log in columns. See `iproto_server.storage.xlog.Row`.

    Attributes:
        type: Their types.
        lsn: Their LSNs.
        replica_id: The members that wrote them.
        tsn: The LSN of the first row of the transaction of each.
        timestamp: In seconds since 1970.
        space_id: Their spaces; -1 for rows without one.
        index_id: The index of the key.
        index_base: The number of the first field in operations.
        key: The keys.
        tuple: The tuples.
        operations: The operations.
        old: The tuples before the changes, if logged.
        new: The tuples after the changes, if logged in addition.
        values: The key of each row, or else its tuple, with its items; None if they were not located.
    """

    type: Offsets
    lsn: Offsets
    replica_id: Offsets
    tsn: Offsets
    timestamp: npt.NDArray[np.float64]
    space_id: Offsets
    index_id: Offsets
    index_base: Offsets
    key: Cells
    tuple: Cells
    operations: Cells
    old: Cells
    new: Cells
    values: Tuples | None = None

    def __len__(self) -> int:
        return len(self.type)

    def take(self, rows: npt.NDArray[Any]) -> LogRows:
        """Some of the rows, by indexes or by a mask."""
        if rows.dtype == np.bool_ and rows.all():
            return self
        some: dict[str, Any] = {name: getattr(self, name)[rows] for name in _NUMBERS}
        some |= {name: getattr(self, name).take(rows) for name in _CELLS}
        return LogRows(**some, values=None if self.values is None else self.values.take(rows))

    def members(self) -> list[int]:
        """The members that wrote the rows: usually one."""
        first = self.replica_id[:1]
        found = first if (self.replica_id == first).all() else np.unique(self.replica_id)
        members: list[int] = found.tolist()
        return members

    def within(self, low: Mapping[int, int], high: Mapping[int, int]) -> npt.NDArray[np.bool_]:
        """A mask of the rows with `low[member] < lsn <= high[member]`."""
        within = np.zeros(len(self), np.bool_)
        for member in self.members():
            # LSNs are limited to 63 bits.
            most = min(high[member], LSN_MAX)
            within |= (self.replica_id == member) & (self.lsn > low[member]) & (self.lsn <= most)
        return within

    def changes(self) -> Iterator[Change]:
        """The change of each row."""
        numbers = (self.type, self.lsn, self.replica_id, self.space_id)
        raws = (self.tuple, self.key, self.operations)
        return zip(
            *(column.tolist() for column in numbers),
            *(cells.raws() for cells in raws),
            self.index_id.tolist(),
            self.index_base.tolist(),
            strict=True,
        )

    def taken_apart(self, cells: Cells, wanted: int) -> Tuples:
        """Locate the items of the rows' keys or tuples.

        Parameters:
            cells: The key or tuple of each row; some may be missing.
            wanted: The number of items of each to locate.

        Raises:
            ValueError: If one is not an array, or malformed.
        """
        values = self.values
        if values is not None and wanted <= values.wanted:
            are_values = cells.start == values.cells.start
            if (are_values | (cells.start < 0)).all():
                return values.only(are_values)
        return Tuples(cells.buffer, cells.start, wanted, cells.end)

    @classmethod
    def of(cls, rows: Sequence[Row]) -> LogRows:
        """Create from individually decoded rows."""
        pieces: list[bytes] = []
        places: list[int] = []
        position = 0
        for row in rows:
            for raw in (row.key_raw, row.tuple_raw, row.operations_raw, *_carried(row)):
                if raw is None:
                    places += (-1, -1)
                else:
                    pieces.append(raw)
                    places += (position, position + len(raw))
                    position += len(raw)
        buffer = Buffer(b"".join(pieces))
        offsets = np.array(places, np.int64).reshape(-1, len(_CELLS), 2)
        numbers = np.array(
            [
                (
                    row.type,
                    row.lsn,
                    row.replica_id,
                    row.tsn,
                    -1 if row.space_id is None else row.space_id,
                    row.index_id,
                    row.index_base,
                )
                for row in rows
            ],
            np.int64,
        ).reshape(-1, 7)
        types, lsn, replica_id, tsn, space_id, index_id, index_base = numbers.T
        starts_and_ends = offsets.transpose(1, 2, 0)
        key, tuple_, operations, old, new = (Cells(buffer, *each) for each in starts_and_ends)
        return cls(
            types,
            lsn,
            replica_id,
            tsn,
            np.array([row.timestamp for row in rows], np.float64),
            space_id,
            index_id,
            index_base,
            key,
            tuple_,
            operations,
            old,
            new,
        )


_NUMBERS: Final = ("type", "lsn", "replica_id", "tsn", "timestamp", "space_id", "index_id", "index_base")
_CELLS: Final = ("key", "tuple", "operations", "old", "new")


def _carried(row: Row) -> tuple[bytes | None, bytes | None]:
    """The tuples before and after a change, if the row's body contains them."""
    body = row.body
    if not body or body[0] <= _PLAIN_PAIRS.get(row.type, 0x82):
        return None, None
    if _OLD_TUPLE not in body and _NEW_TUPLE not in body:
        return None, None
    pairs = dict(codec.split_map(body))
    return pairs.get(_OLD_TUPLE), pairs.get(_NEW_TUPLE)
