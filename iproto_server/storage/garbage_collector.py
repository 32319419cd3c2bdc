"""Removes the files that a newer snapshot makes obsolete.

A snapshot needs the logs that follow it: the last one that does not begin later, and all after that one. The
newest snapshots are kept, one that a backup copies, and the logs that the oldest of them needs. The clocks of
an instance only grow, so their sums, which are the file names, order the files.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from threading import Lock

from iproto_server.storage.directory import has_end_marker, list_files, signature_of
from iproto_server.storage.xlog import FileType
from iproto_server.storage.xlog.writer import sync_directory

logger = logging.getLogger("iproto_server.checkpoint")


class Pin:
    """Keeps a snapshot, and the logs that follow it, while a backup copies them.

    Attributes:
        lock: Held by a thread that removes a file, or that changes the signature.
        signature: The signature of the snapshot's clock; None: there is no backup.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.signature: int | None = None


def complete_snapshots(directory: Path) -> list[Path]:
    """List the complete snapshots of a directory, oldest first.

    Parameters:
        directory: The directory of the snapshots.

    Raises:
        OSError: The directory or a file cannot be read.
    """
    return [path for path in list_files(directory, FileType.SNAPSHOT) if has_end_marker(path)]


def obsolete_files(
    snapshots: list[Path], logs: list[Path], keep: int, pinned: int | None = None
) -> list[Path]:
    """Find the files that no kept snapshot needs.

    Parameters:
        snapshots: The complete snapshots, oldest first.
        logs: The logs, oldest first.
        keep: Number of snapshots to keep.
        pinned: The signature of another snapshot to keep; None: there is none.

    Returns:
        The obsolete files, oldest first; of the same age, a snapshot before a log.
    """
    if not snapshots:
        return []
    old_snapshots = [path for path in snapshots[:-keep] if signature_of(path) != pinned]
    oldest = min(signature_of(path) for path in snapshots if path not in old_snapshots)
    # A log's rows end where the next log begins.
    old_logs = [log for log, after in pairwise(logs) if signature_of(after) <= oldest]
    return sorted(
        [*old_snapshots, *old_logs],
        key=lambda path: (signature_of(path), path.suffix == FileType.LOG.suffix),
    )


def collect_garbage(
    snapshot_directory: Path, log_directory: Path, keep: int, pin: Pin | None = None
) -> list[Path]:
    """Remove the obsolete files. A file that cannot be removed stays, and an error is logged.

    Parameters:
        snapshot_directory: The directory of the snapshots.
        log_directory: The directory of the logs.
        keep: Number of snapshots to keep.
        pin: The snapshot of a backup. If it changes meanwhile, the rest stays for the next time.

    Returns:
        The removed files, oldest first.
    """
    pin = pin or Pin()
    pinned = pin.signature
    try:
        snapshots = complete_snapshots(snapshot_directory)
        candidates = obsolete_files(snapshots, list_files(log_directory, FileType.LOG), keep, pinned)
    except OSError as error:
        logger.error("cannot look for obsolete files: %s", error)
        return []
    removed: list[Path] = []
    for path in candidates:
        with pin.lock:
            if pin.signature != pinned:
                break
            removed += remove_files([path])
    return removed


def remove_files(paths: Iterable[Path]) -> list[Path]:
    """Remove files one after another, so that a crash leaves the newest of them.

    Parameters:
        paths: The files, oldest first.

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
