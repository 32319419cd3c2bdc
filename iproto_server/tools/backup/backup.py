"""Making a backup: copies the newest snapshot and the logs that follow it, or only what another backup lacks.

The server may be running: the last log is copied up to its last complete block, so the copy is the database
at the moment of that row. The source has opened all files before they are copied, because a server removes
old ones.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from iproto_server.storage.backup_set import BackupError, OpenFile
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import FileType, OnDamage, XlogHeader, XlogReader
from iproto_server.tools.backup.backup_files import (
    LogPart,
    Moment,
    Saved,
    check_target,
    copy_log,
    copy_snapshot,
    end_of,
    log_blocks,
    lsn_text,
    new_directory,
    snapshot_time,
    verify,
)
from iproto_server.tools.backup.backup_source import BackupSource


def back_up(source: BackupSource, target: Path) -> Saved:
    """Copy a database.

    Parameters:
        source: the database.
        target: the directory to make.

    Returns:
        What was saved.

    Raises:
        NothingToBackUpError: there is no complete snapshot.
        BackupError: the target cannot be used, or the source has files that cannot be copied.
        ClientError: the server cannot be reached, or the connection has broken.
        CallError: the server refuses it.
        StorageError: a file of the source is damaged.
        OSError: a file cannot be read or written.
    """
    resolved = check_target(target, source.directories)
    with ExitStack() as opened, new_directory(resolved) as directory:
        snapshot, logs = source.open_newest(opened, directory)
        header = snapshot.stored.header
        copy_snapshot(snapshot.file, directory, snapshot.stored.path.name)
        begin = end = Moment(header.vclock, snapshot_time(directory / snapshot.stored.path.name))
        for log in logs:
            end = _copy_whole(log, directory, end.time)
        if not end.vclock.covers(header.vclock):
            # The server has gone on without a log.
            end = Moment(header.vclock, end.time)
        return Saved(*verify(directory, header.vclock, header.instance_uuid), begin, end)


def continue_backup(source: BackupSource, since: Path, target: Path) -> Saved:
    """Copy what a database has got since an earlier backup.

    Parameters:
        source: the database.
        since: the earlier backup, or a continuation of one.
        target: the directory to make.

    Returns:
        What was saved.

    Raises:
        BackupError: the target cannot be used, or the logs do not continue the earlier backup.
        ClientError: the server cannot be reached, or the connection has broken.
        CallError: the server refuses it.
        StorageError: a file is damaged, or belongs to another instance.
        OSError: a file cannot be read or written.
    """
    resolved = check_target(target, [*source.directories, since])
    begin, instance_uuid, last = end_of(since)
    with ExitStack() as opened, new_directory(resolved) as directory:
        logs = source.open_since(opened, directory, begin.vclock, instance_uuid)
        first = next(logs, None)
        if first is None:
            raise BackupError(
                f"{source.logs_name} do not reach back to LSN {lsn_text(begin.vclock)}, where {since} ends: "
                "make a backup without --since"
            )
        end = _copy_rest(first, directory, begin, last, since)
        for number, log in enumerate(logs):
            # The log before the second one begins later than in the source.
            previous = begin.vclock if number == 0 else None
            end = _copy_whole(log, directory, end.time, previous)
        return Saved(*verify(directory, begin.vclock, instance_uuid), begin, end)


def _copy_whole(log: OpenFile, directory: Path, time: float, previous: VClock | None = None) -> Moment:
    """Copy a log up to its last complete block.

    Parameters:
        log: the log.
        directory: the new directory.
        time: the greatest time of the rows before.
        previous: the clock of the log before it, if that is another one than in the source.

    Returns:
        The end of what is copied now.
    """
    header = log.stored.header
    vclock = header.vclock.copy()
    reader = XlogReader(log.file, str(log.stored.path), OnDamage.CUT_TAIL)
    start = reader.good_end
    for _, rows in log_blocks(reader, vclock):
        time = max(time, *(row.timestamp for row in rows))
    if previous is not None and header.previous_vclock is not None:
        header = _with_previous(header, previous)
    copy_log(log.file, start, reader.good_end, directory, header)
    return Moment(vclock, time)


def _copy_rest(log: OpenFile, directory: Path, begin: Moment, last: LogPart | None, since: Path) -> Moment:
    """Copy the blocks of a log that an earlier backup does not have.

    Parameters:
        log: the log in which the backup ended.
        directory: the new directory.
        begin: the end of the earlier backup.
        last: its last log.
        since: its directory.

    Returns:
        The end of what is copied.
    """
    vclock, time = log.stored.header.vclock.copy(), begin.time
    reader = XlogReader(log.file, str(log.stored.path), OnDamage.CUT_TAIL)
    position = reader.good_end
    start = position if vclock.same_as(begin.vclock) else None
    known: bytes | None = None
    for block, rows in log_blocks(reader, vclock):
        if start is not None:
            time = max(time, *(row.timestamp for row in rows))
        elif vclock.same_as(begin.vclock):
            start = block.start
            time = max(time, *(row.timestamp for row in rows))
        else:
            known = block.payload
    if start is None and vclock.same_as(begin.vclock):
        start = reader.good_end
    if start is None or (known is not None and last is not None and not _ends_with(last, known)):
        raise BackupError(_not_continued(since, begin.vclock, vclock, log.stored.path))
    previous = None
    if last is not None:
        before = last.log.header
        is_same = before.vclock.same_as(begin.vclock)
        previous = before.previous_vclock if is_same else before.vclock
    origin = log.stored.header
    header = XlogHeader(FileType.LOG, origin.instance_uuid, begin.vclock, previous, origin.server_version)
    copy_log(log.file, start, reader.good_end, directory, header)
    return Moment(vclock, time)


def _ends_with(part: LogPart, payload: bytes) -> bool:
    """Whether the last block of a log has these rows; also true of a log without rows."""
    last = payload
    with XlogReader.open(part.log.path, OnDamage.CUT_TAIL) as reader:
        for block in reader.blocks():
            last = block.payload
    return last == payload


def _not_continued(since: Path, begin: VClock, end: VClock, source: Path) -> str:
    return (
        f"{source}, which ends at LSN {lsn_text(end)}, does not continue {since}, which ends at LSN "
        f"{lsn_text(begin)}: its rows are others; make a backup without --since"
    )


def _with_previous(header: XlogHeader, previous: VClock) -> XlogHeader:
    return XlogHeader(header.file_type, header.instance_uuid, header.vclock, previous, header.server_version)
