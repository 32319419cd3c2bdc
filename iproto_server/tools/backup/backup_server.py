"""A running server as the source of a backup: its files are read over the wire, a piece at a time.

The server's answers are not trusted: names are checked, and what was copied is verified as that of a
directory.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from io import RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple, cast
from uuid import UUID

from iproto_server.storage.backup_set import BackupError, OpenFile
from iproto_server.storage.directory import StoredFile
from iproto_server.storage.errors import XlogError
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog.header import HEADER_MAX, FileType, XlogHeader
from iproto_server.tools.client import ServerUri
from iproto_server.tools.operators.operator_client import OperatorClient

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

PIECE: Final = 1024**2
"""Bytes in a call; the server gives no more."""

_NAME: Final = re.compile(r"[0-9]{20}\.(snap|xlog)")


class _Listed(NamedTuple):
    """A file that the server keeps open for the backup."""

    name: str
    size: int


class ServerSource:
    """A running server. Use as a context manager, which holds a connection.

    Parameters:
        uri: the server, and a user who may make backups.

    Raises:
        ClientError: there is no connection to be had.
    """

    def __init__(self, uri: ServerUri) -> None:
        self._client = OperatorClient(uri)

    @property
    def logs_name(self) -> str:
        """See `BackupSource`."""
        return f"the logs of {self._client.address}"

    @property
    def directories(self) -> list[Path]:
        """See `BackupSource`."""
        return []

    def open_newest(self, opened: ExitStack, directory: Path) -> tuple[OpenFile, Iterator[OpenFile]]:
        """See `BackupSource`."""
        snapshots, logs = self._start({})
        if len(snapshots) != 1:
            raise BackupError(self._unexpected("there is not one snapshot"))
        remote = opened.enter_context(_RemoteFile(self, snapshots[0]))
        header = self._header(remote, snapshots[0].name, FileType.SNAPSHOT)
        stored = StoredFile(Path(snapshots[0].name), header)
        return OpenFile(stored, cast(BinaryIO, remote)), self._fetched(logs, directory, header.instance_uuid)

    def open_since(
        self, opened: ExitStack, directory: Path, vclock: VClock, instance_uuid: UUID
    ) -> Iterator[OpenFile]:
        """See `BackupSource`."""
        snapshots, logs = self._start({"since": dict(vclock)})
        if snapshots:
            raise BackupError(self._unexpected("there is a snapshot"))
        return self._fetched(logs, directory, instance_uuid)

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Read a part of a file.

        Parameters:
            name: the file.
            offset: where it begins, in bytes.
            size: its bytes, `PIECE` at most.

        Returns:
            The bytes; fewer at the end of the file.

        Raises:
            ClientError: the connection has broken.
            CallError: the server refuses it.
            BackupError: the answer is none.
        """
        values = self._client.call("operator.backup_read", name, offset, size)
        if len(values) != 1 or not isinstance(values[0], bytes) or len(values[0]) > size:
            raise BackupError(self._unexpected("it has no bytes of a file"))
        return values[0]

    def _start(self, options: Mapping[str, object]) -> tuple[list[_Listed], list[_Listed]]:
        """Let the server open the files; return the snapshots and the logs."""
        values = self._client.call("operator.backup_start", dict(options))
        answer = values[0] if len(values) == 1 else None
        files = answer.get("files") if isinstance(answer, dict) else None
        if not isinstance(files, list):
            raise BackupError(self._unexpected("it has no list of files"))
        listed = [self._listed(entry) for entry in files]
        return (
            [file for file in listed if file.name.endswith(FileType.SNAPSHOT.suffix)],
            [file for file in listed if file.name.endswith(FileType.LOG.suffix)],
        )

    def _listed(self, entry: Any) -> _Listed:
        name, size = (entry.get("name"), entry.get("size")) if isinstance(entry, dict) else (None, None)
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise BackupError(self._unexpected(f"{name!r} is not the name of a snapshot or log"))
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise BackupError(self._unexpected(f"{name} has no size"))
        return _Listed(name, size)

    def _unexpected(self, reason: str) -> str:
        return f"unexpected answer of {self._client.address}: {reason}"

    def _fetched(self, logs: list[_Listed], directory: Path, instance_uuid: UUID) -> Iterator[OpenFile]:
        """Yield the logs as temporary files, which have no names, so that nothing of them can remain."""
        for listed in logs:
            with _RemoteFile(self, listed) as remote, tempfile.TemporaryFile(dir=directory) as file:
                while piece := remote.read(PIECE):
                    file.write(piece)
                if file.tell() != listed.size:
                    raise BackupError("a file has become shorter while it was copied: try again")
                header = self._header(cast(RawIOBase, file), listed.name, FileType.LOG)
                if header.instance_uuid != instance_uuid:
                    reason = (
                        f"the log belongs to the instance {header.instance_uuid}, not to {instance_uuid},"
                    )
                    raise XlogError(listed.name, 0, reason)
                yield OpenFile(StoredFile(Path(listed.name), header), cast(BinaryIO, file))

    def _header(self, file: RawIOBase, name: str, file_type: FileType) -> XlogHeader:
        """Read the header of a file, and return to its beginning."""
        file.seek(0)
        header, _ = XlogHeader.decode(file.read(HEADER_MAX) or b"", name)
        file.seek(0)
        if header.file_type is not file_type or not name.startswith(f"{header.vclock.signature:020d}."):
            raise XlogError(name, 0, f"the name does not fit the clock {header.vclock}")
        return header

    def __enter__(self) -> ServerSource:
        return self

    def __exit__(self, *error: object) -> None:
        self._client.close()


class _RemoteFile(RawIOBase):
    """A file of the server, as it was when the backup began."""

    def __init__(self, source: ServerSource, listed: _Listed) -> None:
        self._source = source
        self._listed = listed
        self._position = 0

    def readable(self) -> bool:
        """Whether it can be read."""
        return True

    def seekable(self) -> bool:
        """Whether it has a position."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read into a buffer; return the number of bytes, 0 at the end."""
        view = memoryview(buffer).cast("B")
        size = min(len(view), PIECE, self._listed.size - self._position)
        if size <= 0:
            return 0
        data = self._source.read(self._listed.name, self._position, size)
        view[: len(data)] = data
        self._position += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Set the position."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._listed.size}[whence]
        self._position = base + offset
        return self._position
