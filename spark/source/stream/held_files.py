"""Hard links to the files that a stream still has to read, so that no checkpoint removes them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Final

from iproto_server.storage.xlog import FileType
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.io.filesystem import find_files, locate

_INTERVAL: Final = 0.2
"""Seconds between two looks for new logs."""


_MARK: Final = ".held-files"
"""A file that marks directories of links."""


class HeldFiles:
    """Links new logs into a directory, until they are released.

    A batch may take longer than the server keeps a log, and Spark does not ask for new logs meanwhile: a
    thread looks for them.

    Parameters:
        directory: The directory for the links, on the same filesystem; created if it does not exist.
        paths: The directories of the server's files.

    Raises:
        SourceError: If a path is not on the local filesystem, or the directory cannot be created or has
            other files.
    """

    def __init__(self, directory: str, paths: Sequence[str]) -> None:
        self._directory = _local(directory)
        self._paths = [*paths]
        for path in paths:
            _local(path)
        self._first = ""
        self._lock = Lock()
        self._stop = Event()
        self._thread: Thread | None = None
        self._failure: SourceError | None = None
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            mark = self._directory / _MARK
            # Links are removed later: never from a directory that has other files.
            if not mark.exists():
                if any(self._directory.iterdir()):
                    raise SourceError(
                        f'the option "hold_path": {directory} has files of others: give each query an empty '
                        "directory of its own"
                    )
                mark.touch()
        except OSError as error:
            raise _failed(self._directory, error) from None

    @property
    def directory(self) -> str:
        """The directory of the links."""
        return str(self._directory)

    def refresh(self) -> None:
        """Link the logs that are new, or were created again.

        Raises:
            SourceError: If they cannot be linked, now or in the thread.
        """
        if self._failure is not None:
            raise self._failure
        with self._lock:
            for found in find_files(self._paths, (FileType.LOG.suffix,)):
                path = _local(found.uri)
                if path.suffix == FileType.LOG.suffix and path.name >= self._first:
                    self._link(path)

    def hold(self, uri: str) -> str:
        """Link a file.

        Parameters:
            uri: The file.

        Returns:
            The link.

        Raises:
            SourceError: If it cannot be linked.
            FileNotFoundError: If it does not exist.
        """
        path = _local(uri)
        with self._lock:
            self._link(path)
        link = self._directory / path.name
        if not link.exists():
            raise FileNotFoundError(uri)
        return str(link)

    def release(self, first_log: str) -> None:
        """Remove the links to logs before one, and to snapshots.

        Parameters:
            first_log: The name of the first log that is still needed.

        Raises:
            SourceError: If a link cannot be removed.
        """
        with self._lock:
            self._first = max(self._first, first_log)
            try:
                for link in self._directory.iterdir():
                    is_old_log = link.suffix == FileType.LOG.suffix and link.name < self._first
                    if is_old_log or link.suffix == FileType.SNAPSHOT.suffix:
                        link.unlink()
            except OSError as error:
                raise _failed(self._directory, error) from None

    def start(self) -> None:
        """Look for new logs from now on, in a thread."""
        if self._thread is None:
            self._thread = Thread(target=self._watch, name="held files", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the thread; the links stay for the next run of the query."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(_INTERVAL):
            try:
                self.refresh()
            except SourceError as error:
                self._failure = error
                return

    def _link(self, path: Path) -> None:
        link = self._directory / path.name
        try:
            if link.exists():
                if os.path.samefile(link, path):
                    return
                link.unlink()
            os.link(path, link)
        except FileNotFoundError:
            # Removed since the directory was listed: an older link, if there is one, remains.
            return
        except OSError as error:
            raise _failed(self._directory, error) from None


def _local(uri: str) -> Path:
    if "://" in uri and not uri.startswith("file:"):
        raise SourceError(f'the option "hold_path" is for local files, and {uri} is not one')
    return Path(locate(uri)[1])


def _failed(directory: Path, error: OSError) -> SourceError:
    must = "it must be a writable directory on the filesystem of the logs, and the driver run as their owner"
    reason = f"{error.strerror or error}: {must}"
    return SourceError(f'the option "hold_path": {directory}: {reason}')
