"""Removes the files that a newer snapshot makes obsolete.

A snapshot needs the logs that follow it: the last one that does not begin later, and all after that one. The
newest snapshots are kept, and the logs that the oldest of them needs. The clocks of an instance only grow, so
their sums, which are the file names, order the files.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from iproto_server.storage.directory import has_end_marker, list_files, signature_of
from iproto_server.storage.xlog import FileType
from iproto_server.storage.xlog.writer import sync_directory

logger = logging.getLogger("iproto_server.checkpoint")


def obsolete_files(snapshots: list[Path], logs: list[Path], keep: int) -> list[Path]:
    """Find the files that no kept snapshot needs.

    Parameters:
        snapshots: the complete snapshots, oldest first.
        logs: the logs, oldest first.
        keep: number of snapshots to keep.

    Returns:
        The obsolete files, oldest first; of the same age, a snapshot before a log.
    """
    if not snapshots:
        return []
    kept = snapshots[-keep:]
    oldest = signature_of(kept[0])
    # A log's rows end where the next log begins.
    old_logs = [log for log, after in pairwise(logs) if signature_of(after) <= oldest]
    return sorted(
        [*snapshots[:-keep], *old_logs],
        key=lambda path: (signature_of(path), path.suffix == FileType.LOG.suffix),
    )


def collect_garbage(snapshot_directory: Path, log_directory: Path, keep: int) -> list[Path]:
    """Remove the obsolete files. A file that cannot be removed stays, and an error is logged.

    Parameters:
        snapshot_directory: the directory of the snapshots.
        log_directory: the directory of the logs.
        keep: number of snapshots to keep.

    Returns:
        The removed files, oldest first.
    """
    try:
        snapshots = [
            path for path in list_files(snapshot_directory, FileType.SNAPSHOT) if has_end_marker(path)
        ]
        candidates = obsolete_files(snapshots, list_files(log_directory, FileType.LOG), keep)
    except OSError as error:
        logger.error("cannot look for obsolete files: %s", error)
        return []
    return remove_files(candidates)


def remove_files(paths: Iterable[Path]) -> list[Path]:
    """Remove files one after another, so that a crash leaves the newest of them.

    Parameters:
        paths: the files, oldest first.

    Returns:
        The removed files.
    """
    removed: list[Path] = []
    for path in paths:
        try:
            path.unlink()
            sync_directory(path.parent)
        except OSError as error:
            logger.error("cannot remove %s: %s", path, error)
            continue
        logger.info("removed %s", path)
        removed.append(path)
    return removed
