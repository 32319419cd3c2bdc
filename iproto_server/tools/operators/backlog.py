"""The depth and age of all queues: from a server, or from the snapshot and logs of a directory."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from iproto_server.box.api.box import Box
from iproto_server.managed_queue import STORED_QUEUES, StoredQueue, TaskState
from iproto_server.storage.directory import list_files
from iproto_server.storage.errors import TruncatedFileError
from iproto_server.storage.xlog import FileType, OnDamage, XlogReader
from iproto_server.tools.files.check import TRIES, is_in_use, load

Record = dict[str, Any]
Finder = Callable[[Mapping[str, Sequence[str]]], Iterable[StoredQueue]]


class NoDatabaseError(Exception):
    """There is nothing to read; the message is one line for the user."""


def backlog_of_directory(
    snapshot_directory: Path, log_directory: Path, now: float | None = None
) -> list[Record]:
    """Read the queues of a database. Nothing is changed; a server may work with it meanwhile.

    Parameters:
        snapshot_directory: where the snapshots are.
        log_directory: where the logs are.
        now: the time that ages refer to, in seconds since 1970; None for that of the newest change in the
            files, as in Spark's jobs: files of last month tell about last month.

    Returns:
        For each queue, by name: `name`, `dialect`, `tasks` by state; `oldest_ready`, the age of the oldest
        ready task since its put; `overdue`, the number of delayed tasks that were due by then, and
        `next_due`, the seconds until the first of the others is; and `as_of`, the time that these refer to.

    Raises:
        NoDatabaseError: there are neither snapshots nor logs.
        StorageError: the files cannot be loaded.
        BoxError: a row cannot be applied.
        OSError: a directory cannot be read.
    """
    if not list_files(snapshot_directory, FileType.SNAPSHOT) and not list_files(log_directory, FileType.LOG):
        where = dict.fromkeys((f"{snapshot_directory}", f"{log_directory}"))
        raise NoDatabaseError(f"there is no database in {' and '.join(where)}")
    box = Box()
    # What recovery logs is for those who start a server.
    logging.getLogger("iproto_server").addHandler(logging.NullHandler())
    tries = TRIES if is_in_use(log_directory) else 1
    load(box, snapshot_directory, log_directory, tries=tries)
    as_of = _newest_change(snapshot_directory, log_directory, tries) if now is None else now
    fields = {space.name: [str(field.get("name")) for field in space.format()] for space in box.space}
    queues: dict[str, _Depth] = {}
    for stored in _stored_queues(fields):
        if stored.tube is None:
            queues[stored.space] = _Depth(stored)
        for row in box.space[stored.space].pairs():
            name = stored.space if stored.tube is None else f"{stored.space}/{row[stored.tube]}"
            depth = queues.get(name)
            if depth is None:
                depth = queues[name] = _Depth(stored)
            depth.add(row, as_of)
    return [depth.record(name, as_of) for name, depth in sorted(queues.items())]


def backlog_of_queues(queues: Iterable[Record]) -> list[Record]:
    """Return the same of the queues that a server describes."""
    names = ("name", "dialect", "tasks", "oldest_ready", "waiting")
    return [{name: queue[name] for name in names} for queue in queues]


def _newest_change(snapshot_directory: Path, log_directory: Path, tries: int) -> float:
    """The time of the newest change; without any, of the snapshot."""
    for attempt in range(1, tries + 1):
        try:
            for path in reversed(list_files(log_directory, FileType.LOG)):
                moment = _timestamp_of(path, OnDamage.CUT_TAIL)
                if moment is not None:
                    return moment
            for path in reversed(list_files(snapshot_directory, FileType.SNAPSHOT)):
                # All rows of a snapshot have the same.
                moment = _timestamp_of(path, OnDamage.STOP, only_first=True)
                if moment is not None:
                    return moment
        except FileNotFoundError:
            # The server has removed it.
            if attempt == tries:
                raise
    return time.time()


def _timestamp_of(path: Path, on_damage: OnDamage, *, only_first: bool = False) -> float | None:
    """The time of the last row of a file, or of the first one; None without rows."""
    moment: float | None = None
    try:
        with XlogReader.open(path, on_damage) as reader:
            for rows in reader.transactions():
                moment = rows[-1].timestamp
                if only_first:
                    break
    except TruncatedFileError:
        # A server has just begun the log.
        return moment
    return moment


def _stored_queues(fields: Mapping[str, Sequence[str]]) -> list[StoredQueue]:
    found: list[StoredQueue] = []
    for entry_point in entry_points(group=STORED_QUEUES):
        find: Finder = entry_point.load()
        found += find(fields)
    return found


class _Depth:
    """Counts the tasks of a queue.

    Parameters:
        stored: where the fields are.
    """

    def __init__(self, stored: StoredQueue) -> None:
        self._stored = stored
        states = dict.fromkeys(stored.states.values())
        self._tasks = dict.fromkeys((state.value for state in states), 0)
        self._oldest: float | None = None
        self._overdue = 0
        self._next_due: float | None = None

    def add(self, row: Sequence[Any], now: float) -> None:
        """Count a row."""
        stored = self._stored
        state = stored.states.get(row[stored.state])
        if state is None:
            return
        self._tasks[state.value] += 1
        if state == TaskState.READY and stored.created is not None:
            created = row[stored.created] / stored.created_unit
            if self._oldest is None or created < self._oldest:
                self._oldest = created
        elif state == TaskState.DELAYED and stored.due is not None:
            due = row[stored.due] / stored.due_unit
            if due <= now:
                self._overdue += 1
            elif self._next_due is None or due < self._next_due:
                self._next_due = due

    def record(self, name: str, now: float) -> Record:
        """Return the figures."""
        return {
            "name": name,
            "dialect": self._stored.dialect,
            "tasks": self._tasks,
            "oldest_ready": None if self._oldest is None else max(now - self._oldest, 0.0),
            "overdue": self._overdue,
            "next_due": None if self._next_due is None else self._next_due - now,
            "as_of": now,
        }
