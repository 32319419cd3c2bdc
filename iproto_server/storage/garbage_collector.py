"""Checkpoints: which files of a database are still needed once there is a newer snapshot.

A snapshot needs the logs that follow it: the last one that does not begin later, and all behind that. So the
newest snapshots stay, as many as there shall be, and the logs that the oldest of them needs. The clocks of
one instance are in one order, which their sums show, and the sums are the files' names.
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
    """Tell which files nobody needs.

    Args:
        snapshots: The complete ones, oldest first.
        logs: Oldest first.
        keep: How many snapshots stay.

    Returns:
        The files, oldest first and, of the same age, a snapshot before a log.
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
    """Remove the files that nobody needs. What cannot be removed stays, and the log says so.

    Args:
        snapshot_directory: Where the snapshots are.
        log_directory: Where the logs are.
        keep: How many snapshots stay.

    Returns:
        The files that were removed, oldest first.
    """
    try:
        snapshots = [
            path for path in list_files(snapshot_directory, FileType.SNAPSHOT) if has_end_marker(path)
        ]
        candidates = obsolete_files(snapshots, list_files(log_directory, FileType.LOG), keep)
    except OSError as error:
        logger.error("cannot look for files that are not needed any more: %s", error)
        return []
    return remove_files(candidates)


def remove_files(paths: Iterable[Path]) -> list[Path]:
    """Remove files one after the other, so that a crash leaves the newest of them.

    Args:
        paths: The files, in that order.

    Returns:
        Those that are removed now.
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
