"""Reads the files of a backup for clients.

A client's backup opens the files, and a client reads only those that its own backup has open: a name from a
client is looked up among them and never becomes a path. Files that the server removes meanwhile stay
readable, so nothing is kept from removal, and the backup ends with the connection.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from iproto_server.box import Waiter
from iproto_server.box.access.session import Session
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.logging.log_setup import event
from iproto_server.storage.backup_set import (
    BackupError,
    NothingToBackUpError,
    OpenFile,
    open_newest,
    open_since,
)
from iproto_server.storage.errors import StorageError
from iproto_server.storage.vclock import VCLOCK_MAX, VClock

logger = logging.getLogger("iproto_server.operator")

PIECE_MAX: Final = 1024**2
"""The maximum number of bytes in an answer."""

BACKUPS_MAX: Final = 4
"""The maximum number of backups at a time."""


class _File(NamedTuple):
    """An open file, and its size when it was opened, in bytes."""

    file: BinaryIO
    size: int


class _Backup:
    """The backup of a session."""

    def __init__(self) -> None:
        self.opened = ExitStack()
        self.files: dict[str, _File] = {}


class BackupReader:
    """Opens and reads the files of backups, in a thread of its own.

    Parameters:
        snapshot_directory: the directory of the snapshots.
        log_directory: the directory of the logs.
    """

    def __init__(self, snapshot_directory: Path, log_directory: Path) -> None:
        self._snapshots = snapshot_directory
        self._logs = log_directory
        self._backups: dict[Session, _Backup] = {}
        self._executor = ThreadPoolExecutor(1, "backup")
        self._is_closed = False

    def start(self, session: Session, since: object = None) -> Waiter:
        """Open the files of a backup; one that the session has is ended.

        Parameters:
            session: the client's session.
            since: the clock where an earlier backup ends, LSNs by member; None: a whole backup.

        Returns:
            A waiter for `{"files": [{"name": …, "size": bytes}, …]}`: the newest snapshot and the logs after
            it, or with `since` the logs alone; none if they do not reach back so far.

        Raises:
            BoxError: PROC_LUA if the clock is none, or there are too many backups; UNSUPPORTED while the
                server stops.
        """
        if self._is_closed:
            raise BoxError(ErrorCode.UNSUPPORTED, "A server that is stopping", "backups")
        clock = None if since is None else _clock(since)
        self.stop(session)
        if len(self._backups) >= BACKUPS_MAX:
            raise BoxError.procedure(f"{BACKUPS_MAX} backups are being read already: try again later")
        backup = self._backups[session] = _Backup()
        session.on_close[backup] = partial(self.stop, session)
        who = {"user": session.user.name, "peer": session.peer, "session": session.id}
        event(logger, logging.INFO, "a backup is being read", **who)
        opened = partial(self._opened, session, backup)
        return self._in_thread(session, partial(self._open, backup, clock), opened)

    def read(self, session: Session, name: object, offset: object, size: object) -> Waiter:
        """Read a part of a file.

        Parameters:
            session: the client's session.
            name: a name that `start` has returned.
            offset: where the part begins, in bytes.
            size: its bytes, `PIECE_MAX` at most.

        Returns:
            A waiter for the bytes; fewer at the end of the file.

        Raises:
            BoxError: PROC_LUA if the session has no backup, or an argument is wrong.
        """
        backup = self._backups.get(session)
        if backup is None:
            raise BoxError.procedure("this connection has no backup: call operator.backup_start first")
        file = backup.files.get(name) if isinstance(name, str) else None
        if file is None:
            raise BoxError.procedure(f"the backup has no file {name!r}")
        start, length = _whole("offset", offset, 0, 2**63 - 1), _whole("size", size, 1, PIECE_MAX)
        length = max(0, min(length, file.size - start))
        descriptor = file.file.fileno()
        return self._in_thread(session, lambda: os.pread(descriptor, length, start), lambda data: data)

    def stop(self, session: Session) -> None:
        """End the backup of a session, if there is one.

        Parameters:
            session: the client's session.
        """
        backup = self._backups.pop(session, None)
        if backup is None:
            return
        session.on_close.pop(backup, None)
        backup.files = {}
        event(logger, logging.INFO, "the reading of a backup has ended", session=session.id)
        # Behind a read that is going on.
        self._executor.submit(backup.opened.close)

    def close(self) -> None:
        """End all backups, and begin no more."""
        self._is_closed = True
        for session in list(self._backups):
            self.stop(session)
        self._executor.shutdown(wait=False)

    def _open(self, backup: _Backup, clock: VClock | None) -> list[OpenFile]:
        if clock is not None:
            return open_since(backup.opened, self._logs, clock)
        found = open_newest(backup.opened, self._snapshots, self._logs)
        return [found.snapshot, *found.logs]

    def _opened(self, session: Session, backup: _Backup, found: list[OpenFile]) -> dict[str, object]:
        if self._backups.get(session) is backup:
            backup.files = {
                each.stored.path.name: _File(each.file, each.file.seek(0, os.SEEK_END)) for each in found
            }
        return {"files": [{"name": name, "size": file.size} for name, file in backup.files.items()]}

    def _in_thread(
        self, session: Session, work: Callable[[], Any], result: Callable[[Any], object]
    ) -> Waiter:
        """Do work in the thread; the waiter gets what becomes of its result in the event loop."""
        waiter = Waiter(session, lambda: None)
        session.on_close[waiter] = waiter.finish
        future = asyncio.get_running_loop().run_in_executor(self._executor, work)
        future.add_done_callback(partial(_answer, waiter, result))
        return waiter


def _answer(waiter: Waiter, result: Callable[[Any], object], future: asyncio.Future[Any]) -> None:
    failure = None if future.cancelled() else future.exception()
    if isinstance(failure, OSError):
        text = f"cannot read the files of the backup: {failure.strerror}"
        waiter.finish(error=BoxError.with_message(ErrorCode.SYSTEM, text, type="SystemError"))
    elif isinstance(failure, BackupError | NothingToBackUpError | StorageError):
        waiter.finish(error=BoxError.procedure(str(failure)))
    elif failure is not None or future.cancelled():
        logger.error("a backup cannot be read", exc_info=failure)
        waiter.finish(error=BoxError.procedure("the backup cannot be read; the log says why"))
    else:
        waiter.finish(result(future.result()))


def _clock(value: object) -> VClock:
    """Check a clock of a client: a map, or an array of the LSNs of the members from 1 on, as Lua packs it."""
    if isinstance(value, list | tuple):
        value = dict(enumerate(value, start=1))
    if not isinstance(value, dict):
        raise BoxError.procedure("since must be a map of LSNs by member")
    clock = VClock()
    for member, lsn in value.items():
        clock[_whole("a member of since", member, 0, VCLOCK_MAX - 1)] = _whole("an LSN", lsn, 0, 2**63 - 1)
    return clock


def _whole(what: str, value: object, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise BoxError.procedure(f"{what} must be a whole number from {low} to {high}")
    return value
