"""A query that follows the changes of a directory with all their columns, as Spark runs it, without Spark."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import InputPartition

from pyspark_tarantool.data_source import TarantoolDataSource
from pyspark_tarantool.source.options import ReadOptions
from pyspark_tarantool.source.stream.log_tail import LogTail
from pyspark_tarantool.source.stream.stream_reader import ChangesStreamReader

_PATIENCE = 60
"""Seconds after which a test fails because nothing happens."""

Offset = dict[str, Any]


def _a_year_later() -> float:
    """A time at which all rows of logs count."""
    return time.time() + 3e7


class ChangeFollower:
    """Plans batches and reads them; its checkpoint is JSON.

    Parameters:
        directory: The directory of the database.
        options: Further options of the source.

    Attributes:
        reader: The driver's reader.
        rows: The rows read.
        ends: The end offset of each finished batch.
    """

    def __init__(self, directory: Path, **options: str) -> None:
        self._given = {"path": str(directory), "mode": "changes", **options}
        self.rows: list[dict[str, Any]] = []
        self.ends: list[Offset] = []
        self._planned: Offset | None = None
        self.reader = self._new_reader()

    def _new_reader(self) -> ChangesStreamReader:
        options = ReadOptions.parse(self._given, streaming=True)
        logs = LogTail(options, _a_year_later)
        return ChangesStreamReader(options, TarantoolDataSource(self._given).schema(), logs)

    def restart(self, **options: str) -> None:
        """Forget all but the checkpoint.

        Parameters:
            options: Options that change.
        """
        self.reader.stop()
        self._given |= options
        self.reader = self._new_reader()

    def plan(self) -> bool:
        """Plan a batch, whose end goes to the checkpoint; return whether there is one."""
        if self._planned is None:
            start = self._start()
            end = _stored(self.reader.latestOffset(start, self.reader.getDefaultReadLimit()))
            if end == start:
                return False
            self._planned = end
        return True

    def parts(self) -> Sequence[InputPartition]:
        """The parts of the planned batch."""
        assert self._planned is not None
        return self.reader.partitions(self._start(), self._planned)

    def read(self, parts: Sequence[InputPartition]) -> list[dict[str, Any]]:
        """Read parts of a batch, each with a copy of the reader."""
        copies = [pickle.loads(pickle.dumps((self.reader, part))) for part in parts]
        return [row for copy, part in copies for batch in copy.read(part) for row in batch.to_pylist()]

    def finish(self) -> None:
        """Read the planned batch, and record that in the checkpoint."""
        assert self._planned is not None
        self.rows += self.read(self.parts())
        self.ends.append(self._planned)
        self._planned = None
        self.reader.commit(self.ends[-1])

    def follow(self, *, restarts: bool = False) -> list[dict[str, Any]]:
        """Read batches while there are any.

        Parameters:
            restarts: Whether the query is started again before each batch is read.

        Returns:
            The rows.
        """
        first = len(self.rows)
        while self.plan():
            if restarts:
                self.restart()
            self.finish()
        return self.rows[first:]

    def look_for_logs(self) -> None:
        """Look for new logs now, as the thread that holds them does."""
        self.reader._logs.newest()

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds."""
        deadline = time.monotonic() + _PATIENCE
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def _start(self) -> Offset:
        return self.ends[-1] if self.ends else _stored(self.reader.initialOffset())


def _stored(offset: Offset) -> Offset:
    stored: Offset = json.loads(json.dumps(offset))
    return stored
