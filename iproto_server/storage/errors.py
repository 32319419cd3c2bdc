"""What goes wrong with files."""

from __future__ import annotations


class StorageError(Exception):
    """The files of a database cannot be used as they are."""


class XlogError(StorageError):
    """A log or snapshot that is not what it should be.

    Args:
        name: The file's name.
        offset: Where in the file the trouble starts, in bytes.
        reason: What is wrong.
    """

    def __init__(self, name: str, offset: int, reason: str) -> None:
        super().__init__(f"{name}: {reason} at offset {offset}")
        self.name = name
        self.offset = offset
        self.reason = reason


class TruncatedFileError(XlogError):
    """The file ends before what was begun there does, as when a write was interrupted."""


class LogGapError(StorageError):
    """The logs of a directory do not follow each other or the snapshot: rows between them are missing."""


class DirectoryLockedError(StorageError):
    """Another process works with the directory."""
