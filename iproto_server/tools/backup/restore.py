"""Restoring a backup with its continuations, as a whole or up to an LSN or a time.

The rows keep their order, so a database as of an LSN or a time has the transactions before the first one that
has a later row. The log is cut there; within a block, between two of its transactions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import zstandard

from iproto_server.codec import msgpack as codec
from iproto_server.storage.backup_set import BackupError, open_file
from iproto_server.storage.directory import (
    StoredFile,
    find_logs,
    find_snapshots,
    list_files,
    read_header,
)
from iproto_server.storage.errors import XlogError
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import Block, FileType, OnDamage, Row, XlogReader
from iproto_server.storage.xlog.block import COMPRESSION_LEVEL, encode_block
from iproto_server.tools.backup.backup_files import (
    LogPart,
    Moment,
    Saved,
    check_target,
    copy_log,
    copy_snapshot,
    log_blocks,
    lsn_text,
    new_directory,
    rounded_up,
    snapshot_time,
    time_text,
    verify,
)


class Restored(NamedTuple):
    """A restored database.

    Attributes:
        saved: what it has.
        reachable: the end of the backup, up to which it could have been restored.
    """

    saved: Saved
    reachable: Moment


class _Place(NamedTuple):
    """A place between two transactions.

    Attributes:
        log: the number of the log.
        block: the offset of the block.
        rows: the number of the block's rows that are before the place.
        before: the end of the rows before.
    """

    log: int
    block: int
    rows: int
    before: Moment


class _Target:
    """The first transaction that is left out.

    Parameters:
        is_late: whether a row is to be left out.

    Attributes:
        place: where that transaction begins; None: there is none yet.
    """

    def __init__(self, is_late: Callable[[Row], bool]) -> None:
        self.is_late = is_late
        self.place: _Place | None = None


class _History:
    """Reads the rows of all logs in order.

    Parameters:
        begin: the snapshot.
        logs: the logs.
        target: what is left out; None: nothing.

    Attributes:
        end: the end of the rows.
        parts: the logs as far as they can be read.
    """

    def __init__(self, begin: Moment, logs: Sequence[StoredFile], target: _Target | None) -> None:
        self.end = begin
        self.parts: list[LogPart] = []
        self._begin = begin.vclock
        self._target = target
        # Where the transaction begins whose last row has not come yet.
        self._open: _Place | None = None
        for number, log in enumerate(logs):
            next_clock = logs[number + 1].header.vclock if number + 1 < len(logs) else None
            self._read(number, log, next_clock)

    def _read(self, number: int, log: StoredFile, next_clock: VClock | None) -> None:
        vclock, time = self.end.vclock.copy(), self.end.time
        with XlogReader.open(log.path, OnDamage.CUT_TAIL) as reader:
            for block, rows in reader.row_blocks():
                for index, row in enumerate(rows):
                    known = row.lsn <= self._begin.get(row.replica_id, 0)
                    # The rest of a failed write, which the next log replaces.
                    lost = next_clock is not None and row.lsn > next_clock.get(row.replica_id, 0)
                    if self._open is None:
                        before = Moment(vclock.copy(), time) if self._target else self.end
                        self._open = _Place(number, block.start, index, before)
                    if not known and not lost:
                        self._look_at(row)
                        vclock[row.replica_id] = max(row.lsn, vclock.get(row.replica_id, 0))
                        time = max(time, row.timestamp)
                    if row.is_last:
                        self._open = None
            self._open = None
            self.parts.append(LogPart(log, reader.good_end, vclock.copy()))
        self.end = Moment(vclock, time)

    def _look_at(self, row: Row) -> None:
        target = self._target
        if target is not None and target.place is None and target.is_late(row):
            target.place = self._open


def restore(
    backups: Sequence[Path], target: Path, *, to_lsn: int | None = None, to_time: float | None = None
) -> Restored:
    """Build a database's directory from a backup and its continuations.

    Parameters:
        backups: the backup, then its continuations in their order.
        target: the directory to make.
        to_lsn: the last LSN; None: that of the backup.
        to_time: the time of the last row, in seconds since 1970; None: that of the backup. Not with `to_lsn`.

    Returns:
        What was restored.

    Raises:
        BackupError: the target cannot be used, the backups do not continue each other, or the LSN or time is
            outside of their range.
        StorageError: a file is damaged.
        OSError: a file cannot be read or written.
    """
    resolved = check_target(target, backups)
    snapshot, logs = _find_files(backups)
    begin = Moment(snapshot.header.vclock, snapshot_time(snapshot.path))
    late = _target(to_lsn, to_time)
    history = _History(begin, logs, late)
    if to_lsn is not None:
        _check_lsn(to_lsn, begin.vclock, history.end.vclock)
    if to_time is not None and not begin.time <= to_time <= rounded_up(history.end.time):
        reach = f"{time_text(begin.time)} to {time_text(history.end.time)}"
        raise BackupError(f"{time_text(to_time)} cannot be reached: the backup has {reach}")
    place = None if late is None else late.place
    end = history.end if place is None else place.before
    with new_directory(resolved) as directory:
        with open_file(snapshot.path) as source:
            copy_snapshot(source, directory, snapshot.path.name)
        for number, part in enumerate(history.parts):
            if place is not None and number >= place.log:
                _copy_before(part, place, directory)
                break
            with open_file(part.log.path) as source:
                start = XlogReader(source, str(part.log.path)).good_end
                copy_log(source, start, part.size, directory, part.log.header)
        verified = verify(directory, begin.vclock, snapshot.header.instance_uuid)
    return Restored(Saved(*verified, begin, end), history.end)


def _find_files(backups: Sequence[Path]) -> tuple[StoredFile, list[StoredFile]]:
    """Find the snapshot and all logs in order, and check that none is missing."""
    base, *continuations = backups
    snapshot = find_snapshots(base).newest
    if snapshot is None:
        raise BackupError(
            f"{base}: there is no complete snapshot: name the backup first, then its continuations in order"
        )
    instance_uuid = snapshot.header.instance_uuid
    logs = find_logs(base, snapshot.header.vclock, instance_uuid).logs
    end = _end(snapshot.header.vclock, logs)
    for directory in continuations:
        if list_files(directory, FileType.SNAPSHOT):
            raise BackupError(f"{directory}: this is a backup of its own, no continuation: it has a snapshot")
        added = [
            StoredFile(path, read_header(path, FileType.LOG)) for path in list_files(directory, FileType.LOG)
        ]
        if not added:
            raise BackupError(f"{directory}: there is no backup in this directory")
        begin = added[0].header.vclock
        if not begin.same_as(end):
            raise BackupError(
                f"{directory} begins after LSN {lsn_text(begin)}, but what is named before it ends at "
                f"{lsn_text(end)}"
            )
        find_logs(directory, begin, instance_uuid)
        if logs and logs[-1].header.vclock.same_as(begin):
            # It has no rows, and the next one has the same name.
            logs.pop()
        logs += added
        end = _end(end, added)
    return snapshot, logs


def _end(begin: VClock, logs: Sequence[StoredFile]) -> VClock:
    """The clock after the last row of a chain of logs."""
    if not logs:
        return begin
    end = logs[-1].header.vclock.copy()
    with XlogReader.open(logs[-1].path, OnDamage.CUT_TAIL) as reader:
        for _ in log_blocks(reader, end):
            pass  # the clock moves on
    return end if end.covers(begin) else begin


def _target(to_lsn: int | None, to_time: float | None) -> _Target | None:
    if to_lsn is not None:
        return _Target(lambda row: bool(row.replica_id) and row.lsn > to_lsn)
    if to_time is not None:
        return _Target(lambda row: row.timestamp > to_time)
    return None


def _check_lsn(lsn: int, begin: VClock, end: VClock) -> None:
    """Check that an LSN can be reached, and that it is one member's."""
    members = [member for member in end if member and end[member] > begin.get(member, 0)]
    if len(members) > 1:
        text = f"the backup has rows of several members, from {begin} to {end}: use --to-time"
        raise BackupError(text)
    member = members[0] if members else next((member for member in end if member), 1)
    first, last = begin.get(member, 0), end.get(member, 0)
    if not first <= lsn <= last:
        raise BackupError(f"LSN {lsn} cannot be reached: the backup has LSN {first} to {last}")


def _copy_before(part: LogPart, place: _Place, directory: Path) -> None:
    """Copy a log up to a place. A log without rows is left out, as a server that starts makes another one."""
    with open_file(part.log.path) as source:
        reader = XlogReader(source, str(part.log.path))
        start = reader.good_end
        if place.block == start and not place.rows:
            return
        last_block = b""
        if place.rows:
            block = reader.block_at(place.block)
            assert block is not None
            rows = _first_rows(reader, block, place.rows)
            last_block = encode_block(rows, zstandard.ZstdCompressor(level=COMPRESSION_LEVEL))
        copy_log(source, start, place.block, directory, part.log.header, last_block)


def _first_rows(reader: XlogReader, block: Block, count: int) -> bytes:
    """The packed rows at the beginning of a block."""
    end = 0
    try:
        for row in reader.rows(block)[:count]:
            end = codec.skip(block.payload, end) + len(row.body)
    except ValueError as error:
        raise XlogError(reader.name, block.start, str(error)) from None
    return block.payload[:end]
