"""The changes of the logs of a state, folded once by the driver and sent to all tasks.

Each task gets a share of the complete rows, and all changed keys that the snapshot may have. Most tasks of a
queue are put and acknowledged in the logs, so that nothing is left of them.
"""

from __future__ import annotations

import pickle
from typing import Any, Final, NamedTuple

import zstandard

from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.options import OnDamaged, ReadOptions
from pyspark_tarantool.source.state.changed_keys import KeyColumns, key_columns
from pyspark_tarantool.source.state.key_states import LoggedOperations
from pyspark_tarantool.source.state.log_folder import LogFolder
from pyspark_tarantool.source.state.state_files import StateFiles
from pyspark_tarantool.source.state.state_logs import fold_logs

FOLDED_BYTES: Final = 256 * 1024**2
"""The maximum size in bytes of the complete rows that the driver keeps."""

FOLDED_KEYS: Final = 10_000_000
"""The maximum number of changed keys that the driver keeps."""

WAITING_OPERATIONS: Final = 100_000
"""The maximum number of operations that wait for rows of the snapshot: each task gets all of them."""

SENT_BYTES: Final = 64 * 1024**2
"""The maximum size in bytes of what is sent to all tasks together."""

_COMPRESSION_LEVEL: Final = 1
_THREADS: Final = 4


class FoldedLogs(NamedTuple):
    """The changes of the logs that a task needs, packed.

    Attributes:
        packed_rows: The complete rows that the task returns.
        packed_keys: The changed keys that the snapshot may have, and the operations that wait for its rows.
    """

    packed_rows: bytes
    packed_keys: bytes

    def rows(self) -> list[bytes]:
        """The complete rows that the task returns."""
        rows: list[bytes] = unpack(self.packed_rows)
        return rows

    def give_keys(self, folder: LogFolder) -> None:
        """Set the changed keys of the task's folder."""
        columns: KeyColumns
        waiting: dict[bytes, list[LoggedOperations]]
        columns, waiting = unpack(self.packed_keys)
        folder.set_changed_keys(columns, waiting)


class _TooLarge(Exception):
    """The folded changes are too large to be sent to the tasks."""


class _SizeLimit:
    """Limits the size of folded changes.

    Without compiled code, adding up sizes takes time. So the intervals between checks grow with the amount of
    logs read.

    Parameters:
        folder: Folds the changes.
    """

    def __init__(self, folder: LogFolder) -> None:
        self._folder = folder
        self._steps = self._next_step = 0

    def check(self) -> None:
        """Check the size, if it is due.

        Raises:
            _TooLarge: If the states are too large.
        """
        self._steps += 1
        if self._steps > self._next_step:
            self._next_step = self._steps + self._steps // 8
            states, waiting = self._folder.states, self._folder.waiting().values()
            if (
                len(states) > FOLDED_KEYS
                or states.rows_size() > FOLDED_BYTES
                or sum(map(len, waiting)) > WAITING_OPERATIONS
            ):
                raise _TooLarge


def fold_for_tasks(state: StateFiles, options: ReadOptions, tasks: int) -> list[FoldedLogs] | None:
    """Fold the changes of the logs for several tasks.

    Parameters:
        state: The state to read.
        options: Of the query.
        tasks: The number of tasks.

    Returns:
        The changes for each task; None if they are too large to be sent, or need a full replay.

    Raises:
        XlogError: At damage that is not to be skipped.
        LogGapError: If rows are missing.
        SourceError: If a change does not fit its row.
        OSError: If a file cannot be read.
    """
    has_snapshot = state.has_snapshot_rows
    folder = LogFolder(
        state.space,
        has_snapshot=has_snapshot,
        is_renamed=state.is_renamed,
        is_lenient=options.damaged is OnDamaged.SKIP,
    )

    try:
        # An error leaves the report of damage to the tasks.
        with DamageHandler.of(options) as damage:
            limit = _SizeLimit(folder)
            if not fold_logs(state, folder, damage, checks_rows=True, on_progress=limit.check):
                raise _TooLarge
            folded = _split(folder, tasks, has_snapshot=has_snapshot)
            if sum(len(rows) + len(keys) for rows, keys in folded) > SENT_BYTES:
                raise _TooLarge
    except _TooLarge:
        return None
    return folded


def _split(folder: LogFolder, tasks: int, *, has_snapshot: bool) -> list[FoldedLogs]:
    """The shares of the tasks."""
    rows = folder.rows()
    keys = _pack((key_columns(folder.states.snapshot_keys()), folder.waiting()) if has_snapshot else ({}, {}))
    return [FoldedLogs(_pack(rows[task::tasks]), keys) for task in range(tasks)]


def _pack(value: object) -> bytes:
    pickled = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL, threads=_THREADS).compress(pickled)


def unpack(packed: bytes) -> Any:
    """A value from its packed form in `FoldedLogs`."""
    return pickle.loads(zstandard.ZstdDecompressor().decompress(packed))
