"""Checks the files after a kill: complete, in order, and all snapshots lead to the same database.

The rows are replayed here in the simplest way, independently of the server's recovery.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from iproto_server.codec import msgpack as codec
from iproto_server.codec.msgpack import split_array
from iproto_server.storage.directory import (
    StoredFile,
    find_logs,
    find_snapshots,
    has_end_marker,
    list_files,
    read_header,
)
from iproto_server.storage.errors import LogGapError, StorageError
from iproto_server.storage.snapshot import read_snapshot
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import FileType, OnDamage, Row, RowType, XlogReader
from tests.crash.checks.finding import Finding, Kind

INDEX_SPACE: Final = 288
TRUNCATE_SPACE: Final = 330
SEQUENCE_DATA_SPACE: Final = 285
"""The space with the values of sequences. A log contains them only as the rows that were numbered."""

SNAPSHOTS_LOADED: Final = 2
"""The number of snapshots whose rows are kept."""

KEYS_REMEMBERED: Final = 20_000
"""The number of rows whose keys are not computed again."""

Rows = dict[int, dict[bytes, bytes]]
"""The rows by their primary keys, by space id."""


Identity = tuple[str, int, int]
"""Name, size and time of the last change of a file. A file with the same ones has not changed."""


def check_files(directory: Path) -> list[Finding]:
    """Check a directory that no server uses.

    Returns:
        The problems found.
    """
    return FileChecks().check(directory)


class FileChecks:
    """Checks of one directory, again and again.

    Snapshots that were once compared, and have not changed since, are not compared again.
    """

    def __init__(self) -> None:
        self._compared: set[tuple[Identity, ...]] = set()
        self._loaded: dict[Identity, Replay] = {}

    def check(self, directory: Path) -> list[Finding]:
        """Check the directory, or a copy of it, while no server uses it.

        Returns:
            The problems found.
        """
        try:
            return list(self._check(directory))
        except StorageError as error:
            return [Finding(Kind.FILES, str(error))]

    def _check(self, directory: Path) -> Iterator[Finding]:
        for path in find_snapshots(directory).incomplete:
            yield Finding(Kind.FILES, f"{path.name} has its name, but no end")
        snapshots = [path for path in list_files(directory, FileType.SNAPSHOT) if has_end_marker(path)]
        if not snapshots:
            if logs := list_files(directory, FileType.LOG):
                yield Finding(Kind.FILES, f"there are logs, {logs[0].name} first, but no snapshot")
            return
        yield from check_numbers(directory, _vclock(snapshots[-1]))
        for older, newer in pairwise(snapshots):
            yield from self._compare(directory, older, newer)

    def _compare(self, directory: Path, older: Path, newer: Path) -> Iterator[Finding]:
        """Check that a snapshot has the rows of the one before and the logs in between."""
        begin, end = (_vclock(path).get(1, 0) for path in (older, newer))
        try:
            chain = find_logs(directory, _vclock(older)).logs
        except LogGapError:
            return  # its logs may have been removed: the newest snapshot counts
        logs = [log for log in chain if log.header.vclock.get(1, 0) < end]
        identities = tuple(map(_identity, (older, newer, *(log.path for log in logs))))
        if identities in self._compared:
            return
        replayed = self._load(older).copy()
        last = begin
        for row in (row for log in logs for row in read_rows(log)):
            if last < row.lsn <= end:
                replayed.apply(row)
                last = row.lsn
        findings = list(_differences(older.name, replayed.rows, newer.name, self._load(newer).rows))
        if last != end:
            text = f"the logs between {older.name} and {newer.name} end with row {last}, not {end}"
            findings.append(Finding(Kind.FILES, text))
        if not findings:
            self._compared.add(identities)
        yield from findings

    def _load(self, snapshot: Path) -> Replay:
        """Return the rows of a snapshot. The last ones remain loaded."""
        identity = _identity(snapshot)
        if identity not in self._loaded:
            replay = Replay()
            replay.load(snapshot)
            self._loaded[identity] = replay
            while len(self._loaded) > SNAPSHOTS_LOADED:
                del self._loaded[next(iter(self._loaded))]
        return self._loaded[identity]


def _identity(path: Path) -> Identity:
    status = path.stat()
    return path.name, status.st_size, status.st_mtime_ns


def _vclock(snapshot: Path) -> VClock:
    return read_header(snapshot, FileType.SNAPSHOT).vclock


def check_numbers(directory: Path, vclock: VClock) -> Iterator[Finding]:
    """Check that the logs after a snapshot have every LSN once, in order.

    Parameters:
        directory: The directory of the logs.
        vclock: The snapshot's vclock.
    """
    last = None
    for log in find_logs(directory, vclock).logs:
        begin = log.header.vclock.get(1, 0)
        if last is not None and last != begin:
            yield Finding(
                Kind.FILES, f"{log.path.name} begins behind row {begin}, the log before ends with {last}"
            )
        last = begin
        for row in read_rows(log):
            if row.lsn != last + 1:
                yield Finding(Kind.FILES, f"{log.path.name}: row {row.lsn} follows row {last}")
            last = row.lsn
    if last is not None and last < vclock.get(1, 0):
        yield Finding(Kind.FILES, f"the logs end with row {last}, but the snapshot says {vclock}")


def read_rows(log: StoredFile) -> Iterator[Row]:
    """Yield the rows of a log, whose last block may be torn."""
    with XlogReader.open(log.path, OnDamage.CUT_TAIL) as reader:
        for transaction in reader.transactions():
            yield from transaction


class Replay:
    """The rows of a snapshot, and of the logs after it.

    Attributes:
        rows: The rows by their primary keys, by space id.
    """

    def __init__(self) -> None:
        self.rows: Rows = {}
        # The fields of the primary key. Definitions come before the rows of their spaces.
        self._fields: dict[int, tuple[int, ...]] = {INDEX_SPACE: (0, 1)}

    def copy(self) -> Replay:
        """Return a copy that further rows can be applied to."""
        copy = Replay()
        copy.rows = {space_id: dict(rows) for space_id, rows in self.rows.items()}
        copy._fields = dict(self._fields)
        return copy

    def load(self, snapshot: Path) -> None:
        """Store all rows of a complete snapshot.

        Raises:
            StorageError: It is damaged.
        """
        with XlogReader.open(snapshot) as reader:
            for rows in read_snapshot(reader):
                for space_id, raw in rows:
                    self.store(space_id, raw)

    def store(self, space_id: int, raw: bytes) -> None:
        """Store a row."""
        if space_id == INDEX_SPACE:
            values = split_array(raw)
            described, index_id, parts = (codec.unpack(values[number]) for number in (0, 1, 5))
            if index_id == 0:
                self._fields[described] = tuple(_field(part) for part in parts)
        self.rows.setdefault(space_id, {})[_key(raw, self._fields.get(space_id, (0,)))] = raw

    def apply(self, row: Row) -> None:
        """Apply a row of a log."""
        assert row.space_id is not None
        if row.type in (RowType.INSERT, RowType.REPLACE):
            assert row.tuple_raw is not None
            self.store(row.space_id, row.tuple_raw)
            if row.space_id == TRUNCATE_SPACE:
                self.rows.pop(codec.unpack(split_array(row.tuple_raw)[0]), None)
        elif row.type == RowType.DELETE:
            assert row.key_raw is not None
            values = split_array(row.key_raw)
            self.rows.get(row.space_id, {}).pop(b"".join(values), None)
            if row.space_id == INDEX_SPACE and codec.unpack(values[1]) == 0:
                self.rows.pop(codec.unpack(values[0]), None)
        else:
            raise AssertionError(f"a log of whole rows has no {row}")


@lru_cache(KEYS_REMEMBERED)
def _key(raw: bytes, fields: tuple[int, ...]) -> bytes:
    """Return the packed fields of a row's primary key. The same rows are in many snapshots."""
    values = split_array(raw)
    return b"".join(values[field] for field in fields)


def _field(part: Any) -> int:
    field: int = part["field"] if isinstance(part, dict) else part[0]
    return field


def _differences(older: str, rows: Rows, newer: str, expected: Rows) -> Iterator[Finding]:
    """Report the differences between a snapshot and what an older one and the logs lead to."""
    for space_id in sorted((rows.keys() | expected.keys()) - {SEQUENCE_DATA_SPACE}):
        found, wanted = rows.get(space_id, {}), expected.get(space_id, {})
        different = [key for key in found.keys() | wanted.keys() if found.get(key) != wanted.get(key)]
        if different:
            yield Finding(
                Kind.FILES,
                f"space {space_id} has {len(different)} rows that are different when they come from {newer} "
                f"and not from {older}, such as that of the key {different[0].hex()}",
            )
