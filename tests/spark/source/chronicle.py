"""Databases written down row by row: every request that logs can hold, and what is there after each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from iproto_server import Box
from iproto_server.box.memtx.row_applier import SpaceChanges
from iproto_server.codec import msgpack as codec
from iproto_server.storage.directory import file_name
from iproto_server.storage.snapshot import SnapshotWriter
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import FileType, Row, RowType, XlogWriter, encode_row
from iproto_server.storage.xlog.decoder import decode_rows
from tests.storage.files import Request, deletion, header, insertion, replacement, update, upsert

SPACE = 512
OTHER = 513
START = 1_700_000_000.0
STEP = 10.0
_SYSTEM = (276, 280, 288)
_NAMED = (280, 288)
"""The system spaces whose own definitions are in snapshots."""

ID = (0, "unsigned")


class Then(NamedTuple):
    """What there was.

    Attributes:
        clock: The LSN of each member.
        time: Of the last transaction.
        rows: The packed tuples, sorted.
    """

    clock: VClock
    time: float
    rows: list[bytes]


class Chronicle:
    """Writes a database's files and keeps its rows.

    Parameters:
        directory: Where the files go.
        parts: The primary key of the space `t`.
        kind: The type of its index.
        types: Those of its fields.
        clock: What has happened before: a snapshot comes first, then.
    """

    def __init__(
        self,
        directory: Path,
        parts: Sequence[Any] = (ID,),
        kind: str = "tree",
        types: Sequence[str] = ("any",) * 3,
        clock: Mapping[int, int] | None = None,
    ) -> None:
        self.directory = directory
        self.box = Box()
        fields = list(zip(("id", "text", "number"), types, strict=True))
        space = self.box.schema.create_space("t", id=SPACE, format=fields)
        space.create_index("primary", parts=list(parts), type=kind)
        self.box.schema.create_space("other", id=OTHER).create_index("primary")
        self.clock = VClock(clock or {})
        self.time = START
        self.then: list[Then] = []
        self._writer: XlogWriter | None = None
        self._log_clock: VClock | None = None
        self._remember()

    # -- requests --

    def insert(self, *row: Any) -> Request:
        return insertion(SPACE, *row)

    def replace(self, *row: Any) -> Request:
        return replacement(SPACE, *row)

    def delete(self, *key: Any) -> Request:
        return deletion(SPACE, *key)

    def update(self, key: Sequence[Any], *operations: Sequence[Any], base: int = 0) -> Request:
        return update(SPACE, key, operations, base)

    def upsert(self, row: Sequence[Any], *operations: Sequence[Any], base: int = 0) -> Request:
        return upsert(SPACE, row, operations, base)

    def truncate(self) -> Request:
        return upsert(330, [SPACE, 1], [["+", 1, 1]])

    # -- files --

    def commit(self, *requests: Request, member: int = 1, blocks: int = 1) -> None:
        """Write a transaction, and make its changes.

        Parameters:
            requests: What it does.
            member: Whose it is.
            blocks: In so many blocks.
        """
        if self._writer is None:
            self._begin()
        assert self._writer is not None
        self.time += STEP
        tsn = self.clock.get(member, 0) + 1
        rows = [
            Row(kind, tsn + number, body=body, timestamp=self.time, replica_id=member, tsn=tsn, flags=0)
            for number, (kind, body) in enumerate(requests)
        ]
        rows[-1] = rows[-1]._replace(flags=1)
        encoded = list(map(encode_row, rows))
        size = -(-len(encoded) // blocks)
        for start in range(0, len(encoded), size):
            self._writer.write((b"".join(encoded[start : start + size]),))
        self.clock[member] = rows[-1].lsn
        for row in rows:
            self.make(row)
        self._remember()

    def make_all(self, *requests: Request, member: int = 1) -> None:
        """Make changes that no log has."""
        for kind, body in requests:
            lsn = self.clock.get(member, 0) + 1
            self.make(Row(kind, lsn, body=body, timestamp=self.time, replica_id=member))
        self._remember()

    def make(self, row: Row) -> None:
        """Make a change as recovery makes it."""
        (read,) = decode_rows(encode_row(row))
        if read.space_id == 330:
            self.box.space.t.core().truncate()
        if read.space_id not in (SPACE, OTHER):
            return
        changes = SpaceChanges(self.box.catalog.space(read.space_id))
        if read.type == RowType.INSERT:
            changes.insert(read.tuple_raw or b"")
        elif read.type == RowType.REPLACE:
            changes.replace(read.tuple_raw or b"")
        elif read.type == RowType.DELETE:
            changes.delete(read.key_raw or b"")
        elif read.type == RowType.UPDATE:
            changes.update(read.key_raw or b"", read.operations_raw or b"", 0, read.index_base)
        elif read.type == RowType.UPSERT:
            changes.upsert(read.tuple_raw or b"", read.operations_raw or b"", read.index_base)

    def snapshot(self, timestamp: float | None = None) -> Path:
        """Write a snapshot: what defines the spaces that are used, and their rows."""
        head = header(FileType.SNAPSHOT, self.clock)
        with SnapshotWriter(self.directory, head, self.time if timestamp is None else timestamp) as writer:
            for space_id in (*_SYSTEM, OTHER, SPACE):
                rows = list(self.box.catalog.space(space_id).rows())
                if space_id in _SYSTEM[1:]:
                    rows = [raw for raw in rows if codec.unpack(raw)[0] in (*_NAMED, SPACE, OTHER)]
                writer.write(space_id, iter(rows if space_id != _SYSTEM[0] else rows[:5]))
        return writer.path

    def rotate(self, *, is_ended: bool = True) -> None:
        """Let a new log begin with the next transaction."""
        if self._writer is not None and is_ended:
            self._writer.end()
        self._writer = None

    def _begin(self) -> None:
        path = self.directory / file_name(FileType.LOG, self.clock.signature)
        head = header(FileType.LOG, self.clock, previous_vclock=self._log_clock)
        self._log_clock = self.clock.copy()
        # The file is closed with the writer, when nobody needs it.
        self._writer = XlogWriter.create(path.open("wb", buffering=0), head)

    def _remember(self) -> None:
        rows = sorted(self.box.space.t.core().rows())
        self.then.append(Then(self.clock.copy(), self.time, rows))

    @property
    def rows(self) -> list[bytes]:
        """The packed tuples that there are now, sorted."""
        return self.then[-1].rows
