"""Errors of logs, snapshots and their directories."""

from __future__ import annotations


class StorageError(Exception):
    """The files of a database cannot be used as they are."""


class XlogError(StorageError):
    """A log or snapshot is damaged, or is not the expected file.

    Parameters:
        name: The file's name.
        offset: Where the damage starts, in bytes from the beginning of the file.
        reason: The problem.
    """

    def __init__(self, name: str, offset: int, reason: str) -> None:
        super().__init__(f"{name}: {reason} at offset {offset}")
        self.name = name
        self.offset = offset
        self.reason = reason


class TruncatedFileError(XlogError):
    """The file ends within a header, block or transaction, as after an interrupted write."""


class LogGapError(StorageError):
    """Rows are missing between two logs, or between the snapshot and the first log."""


class DirectoryLockedError(StorageError):
    """Another process uses the directory."""
