"""An existing database that provides all rows except those of one space."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from iproto_server.box.catalog.system_space_ids import SEQUENCE, SEQUENCE_DATA, SPACE_SEQUENCE
from iproto_server.codec import msgpack as codec
from iproto_server.storage.snapshot import read_snapshot
from iproto_server.storage.xlog import XlogReader, decode_rows
from pyspark_tarantool.sink.database import LAST_SYSTEM_SPACE, AttachedSequence, Database, Rows
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.io.byte_ranges import read_blocks, whole_file
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.io.data_files import DataFile, DataFiles
from pyspark_tarantool.source.io.filesystem import open_file
from pyspark_tarantool.source.options import OnDamaged, ReadOptions
from pyspark_tarantool.source.schema.system_rows import read_definitions

_STEP = 3
"""The field of `_sequence` that contains the step."""


class TemplateDatabase(Database):
    """The newest snapshot of a database.

    Parameters:
        path: A directory, or a snapshot.
        space: The loaded space, by name or id.

    Raises:
        SourceError: If there is no snapshot, no such space, or there are changes after the snapshot.
        XlogError: If the files are damaged.
        OSError: If they cannot be read.
    """

    def __init__(self, path: str, space: str) -> None:
        files = DataFiles.find(ReadOptions(paths=(path,)))
        self._file = files.newest_snapshot()
        header = self._file.header
        self.instance_uuid, self.vclock = header.instance_uuid, header.vclock
        self.server_version = header.server_version
        for log in files.logs_after(self.vclock):
            if _goes_beyond(log.file, self.vclock):
                raise SourceError(
                    f"the template {path} has changes after its newest snapshot, which would be lost: "
                    "create a new one on its server (box.snapshot())"
                )
        definitions = read_definitions(self._file, [], DamageHandler(OnDamaged.FAIL))
        self.space = definitions.space(int(space) if space.isdecimal() else space)
        if self.space.id <= LAST_SYSTEM_SPACE:
            raise SourceError(f"'{self.space.name}' is a system space")
        self._local = frozenset(each.id for each in definitions.values() if each.is_local)
        self.sequence = self._attached_sequence()

    def rows(self) -> Iterator[Rows]:
        """The rows of all other spaces, in the order of the snapshot."""
        with XlogReader(open_file(self._file.uri), self._file.uri) as reader:
            for block in read_snapshot(reader):
                for space_id, pairs in groupby(block, key=lambda pair: pair[0]):
                    if space_id != self.space.id:
                        yield Rows(space_id, int(space_id in self._local), [raw for _, raw in pairs])

    def _attached_sequence(self) -> AttachedSequence | None:
        found: dict[int, dict[int, Any]] = {SEQUENCE: {}, SEQUENCE_DATA: {}, SPACE_SEQUENCE: {}}
        for rows in self.rows():
            if rows.space_id > LAST_SYSTEM_SPACE:
                break
            if rows.space_id in found:
                found[rows.space_id] |= {row[0]: row for row in map(codec.unpack, rows.tuples)}
        attached = found[SPACE_SEQUENCE].get(self.space.id)
        if attached is None:
            return None
        number, field_no = attached[1], attached[3]
        value = found[SEQUENCE_DATA].get(number, [number, None])[1]
        return AttachedSequence(number, field_no, value, found[SEQUENCE][number][_STEP])


def _goes_beyond(log: DataFile, vclock: dict[int, int]) -> bool:
    """Whether a log has rows that a snapshot lacks."""
    return any(
        row.lsn > vclock.get(row.replica_id, 0)
        for block in read_blocks(whole_file(log), DamageHandler(OnDamaged.FAIL))
        for row in decode_rows(block.payload)
    )
