"""Where backups come from: the directory of a database, or a running server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol
from uuid import UUID

from iproto_server.storage.backup_set import OpenFile, open_newest, open_since
from iproto_server.storage.vclock import VClock


class BackupSource(Protocol):
    """A database whose files can be read."""

    @property
    def logs_name(self) -> str:
        """The logs, as the beginning of a sentence: "the logs in ./data"."""

    @property
    def directories(self) -> list[Path]:
        """The directories that are read, in which no backup can be made."""

    def open_newest(self, opened: ExitStack, directory: Path) -> tuple[OpenFile, Iterator[OpenFile]]:
        """Open the newest complete snapshot and the logs that follow it.

        Parameters:
            opened: closes what is opened.
            directory: a directory for temporary files.

        Returns:
            The snapshot and its logs. A log can be used until the next one is asked for.

        Raises:
            NothingToBackUpError: there is no snapshot.
            BackupError: the files cannot be copied.
            ClientError: the server cannot be reached, or the connection has broken.
            CallError: the server refuses it.
            StorageError: a file cannot be used.
            OSError: a file cannot be read or written.
        """

    def open_since(
        self, opened: ExitStack, directory: Path, vclock: VClock, instance_uuid: UUID
    ) -> Iterator[OpenFile]:
        """Open the logs that follow a clock.

        Parameters:
            opened: closes what is opened.
            directory: a directory for temporary files.
            vclock: the clock.
            instance_uuid: the instance that the logs must belong to.

        Returns:
            The logs, as those of `open_newest`; none if they do not reach back so far.

        Raises:
            BackupError, ClientError, CallError, StorageError, OSError: as for `open_newest`.
        """


class DirectorySource:
    """The directory of a database, whose server may be running.

    Parameters:
        snapshot_directory: the directory of the snapshots.
        log_directory: the directory of the logs.
    """

    def __init__(self, snapshot_directory: Path, log_directory: Path) -> None:
        self._snapshots = snapshot_directory
        self._logs = log_directory

    @property
    def logs_name(self) -> str:
        """See `BackupSource`."""
        return f"the logs in {self._logs}"

    @property
    def directories(self) -> list[Path]:
        """See `BackupSource`."""
        return [self._snapshots, self._logs]

    def open_newest(self, opened: ExitStack, directory: Path) -> tuple[OpenFile, Iterator[OpenFile]]:
        """See `BackupSource`."""
        found = open_newest(opened, self._snapshots, self._logs)
        return found.snapshot, iter(found.logs)

    def open_since(
        self, opened: ExitStack, directory: Path, vclock: VClock, instance_uuid: UUID
    ) -> Iterator[OpenFile]:
        """See `BackupSource`."""
        return iter(open_since(opened, self._logs, vclock, instance_uuid))
