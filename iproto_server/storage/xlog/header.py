"""The text header of a log or snapshot."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from enum import StrEnum

from iproto_server.storage.errors import TruncatedFileError, XlogError
from iproto_server.storage.vclock import VClock

FORMAT_VERSION = "0.13"
READABLE_VERSIONS = frozenset({"0.12", "0.13"})

HEADER_MAX = 4096
"""Maximum size of a header in bytes, with clocks of any size."""


class FileType(StrEnum):
    """Type of a file, as in its first line."""

    LOG = "XLOG"
    SNAPSHOT = "SNAP"

    @property
    def suffix(self) -> str:
        """Suffix of the names of such files."""
        return f".{self.value.lower()}"


_FILE_TYPES = frozenset(file_type.value for file_type in FileType)


def _may_begin_header(data: bytes) -> bool:
    """Whether data may be a torn header: a part of one, possibly with zeros, without rows."""
    written = data.rstrip(b"\0")
    first, newline, _ = written.partition(b"\n")
    types = [file_type.encode() for file_type in _FILE_TYPES]
    return written.isascii() and (first in types if newline else any(t.startswith(first) for t in types))


@dataclass(frozen=True, slots=True)
class XlogHeader:
    """Origin of a file and position of its rows.

    Attributes:
        file_type: Log or snapshot.
        instance_uuid: The instance that wrote it.
        vclock: The clock before the log's first row, or that of the snapshot.
        previous_vclock: The clock of the log before it; None in snapshots and older logs.
        server_version: Version of the program that wrote it.
    """

    file_type: FileType
    instance_uuid: uuid.UUID
    vclock: VClock
    previous_vclock: VClock | None = None
    server_version: str = ""

    def encode(self) -> bytes:
        """Encode the header as in the file."""
        lines = [
            self.file_type.value,
            FORMAT_VERSION,
            f"Version: {self.server_version}",
            f"Instance: {self.instance_uuid}",
            f"VClock: {self.vclock}",
        ]
        if self.previous_vclock is not None:
            lines.append(f"PrevVClock: {self.previous_vclock}")
        return ("\n".join(lines) + "\n\n").encode()

    @classmethod
    def decode(cls, data: bytes, name: str) -> tuple[XlogHeader, int]:
        """Decode a header.

        Parameters:
            data: The first `HEADER_MAX` bytes of the file, or all of it.
            name: The file's name, for errors.

        Returns:
            The header and its size in bytes.

        Raises:
            XlogError: The header cannot be read; TruncatedFileError if the file ends within it.
        """
        size = data.find(b"\n\n", 0, HEADER_MAX)
        if size < 0:
            if len(data) < HEADER_MAX and _may_begin_header(data):
                raise TruncatedFileError(name, 0, "the file ends within its header")
            raise XlogError(name, 0, "no header")
        try:
            file_type, version, *lines = data[:size].decode("utf-8").split("\n")
        except ValueError:
            raise XlogError(name, 0, "no header") from None
        if file_type not in _FILE_TYPES:
            raise XlogError(name, 0, f"unknown file type {file_type!r}")
        if version not in READABLE_VERSIONS:
            raise XlogError(name, 0, f"unsupported format version {version!r}")
        values: dict[str, str] = {}
        for line in lines:
            key, colon, value = line.partition(":")
            if not colon:
                raise XlogError(name, 0, f"header line {line!r} is not 'key: value'")
            values[key] = value.strip(" \t")
        # The key was renamed within 1.7.
        instance = values.get("Instance", values.get("Server"))
        if instance is None:
            raise XlogError(name, 0, "the header does not name the instance")
        previous = values.get("PrevVClock")
        try:
            header = cls(
                FileType(file_type),
                _read_uuid(instance),
                VClock.parse(values.get("VClock", "{}")),
                None if previous is None else VClock.parse(previous),
                values.get("Version", ""),
            )
        except ValueError as error:
            raise XlogError(name, 0, f"unreadable header: {error}") from None
        return header, size + 2


def _read_uuid(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError:
        raise ValueError(f"not a UUID: {text!r}") from None
