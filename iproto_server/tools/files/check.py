"""Checking a database's files, each by itself and all together."""

from __future__ import annotations

import logging
from pathlib import Path

from iproto_server.box.api.box import Box
from iproto_server.errors import BoxError
from iproto_server.storage.directory import IN_PROGRESS, DirectoryLock, list_files
from iproto_server.storage.errors import DirectoryLockedError, LogGapError, StorageError
from iproto_server.storage.recovery.recovery import recover
from iproto_server.storage.xlog import FileType
from iproto_server.tools.files.check_contents import check_contents
from iproto_server.tools.files.check_files import FileCheck, Findings

TRIES = 3
"""A server that makes snapshots removes old files, maybe while they are being looked at."""


class NothingToCheckError(Exception):
    """There is no database; the message is one line for the user."""


def check_database(snapshot_directory: Path, log_directory: Path, findings: Findings) -> int | None:
    """Check a database without changing anything.

    Every file is read and verified. Then the newest snapshot and the logs behind it are loaded, as a server
    does when it starts, and what comes out is verified.

    Parameters:
        snapshot_directory: where the snapshots are.
        log_directory: where the logs are.
        findings: is told what is found.

    Returns:
        How many rows the database has; None if it cannot be loaded.

    Raises:
        NothingToCheckError: there are neither snapshots nor logs.
        OSError: a directory cannot be read.
    """
    if not list_files(snapshot_directory, FileType.SNAPSHOT) and not list_files(log_directory, FileType.LOG):
        where = {snapshot_directory: None, log_directory: None}
        raise NothingToCheckError(f"there is no database in {' and '.join(map(str, where))}")
    in_use = is_in_use(log_directory)
    if in_use:
        findings.note(f"{log_directory}: a server works with this directory, so its last log may be growing")
    for directory in dict.fromkeys((snapshot_directory, log_directory)):
        for path in sorted(directory.glob(f"*{IN_PROGRESS}")):
            if not in_use:
                findings.note(f"{path}: it was never completed, and a server that starts removes it")
    files = FileCheck(findings, in_use=in_use)
    files.check_snapshots(snapshot_directory)
    files.check_logs(log_directory)
    known = findings.problems
    box = Box()
    # What recovery logs is among the findings.
    logging.getLogger("iproto_server").addHandler(logging.NullHandler())
    try:
        load(box, snapshot_directory, log_directory, tries=TRIES if in_use else 1)
    except (StorageError, BoxError) as error:
        refusal = f"a server does not start from these files: {error}"
        # If something is wrong with the files themselves, this is the same again, in other words.
        (findings.note if known else findings.problem)(refusal)
        return None
    return check_contents(box, findings)


def is_in_use(directory: Path) -> bool:
    """Whether a server works with a directory."""
    try:
        DirectoryLock(directory).release()
    except DirectoryLockedError:
        return True
    return False


def load(box: Box, snapshot_directory: Path, log_directory: Path, tries: int) -> None:
    """Load a database without changing its files.

    Parameters:
        box: an empty box.
        snapshot_directory, log_directory: where the files are.
        tries: the number of attempts while a server may remove files.

    Raises:
        StorageError: the files cannot be loaded.
        BoxError: a row cannot be applied.
    """
    for attempt in range(1, tries + 1):
        try:
            recover(box, snapshot_directory, log_directory, read_only=True)
        except (FileNotFoundError, LogGapError):
            if attempt == tries:
                raise
        else:
            return
