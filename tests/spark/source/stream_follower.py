"""A query that follows a live directory, as Spark runs it, without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import IntegerType, LongType, StructField, StructType, TimestampType

from pyspark_tarantool.source.options import ReadOptions
from pyspark_tarantool.source.stream.log_tail import LogTail
from pyspark_tarantool.source.stream.stream_parts import StreamPart
from pyspark_tarantool.source.stream.stream_reader import ChangesStreamReader

COLUMNS = StructType(
    [
        StructField("replica_id", IntegerType()),
        StructField("lsn", LongType()),
        StructField("timestamp", TimestampType()),
    ]
)

Offset = dict[str, Any]


class Follower:
    """Plans batches and reads them; its checkpoint is JSON.

    Parameters:
        directory: Where the logs are.
        options: More options.
        clock: The time.

    Attributes:
        rows: What was read: member, LSN and time of each row.
        start: Where the last batch that was finished has ended.
        batches: How many rows the batches had.
    """

    def __init__(self, directory: Path, clock: Callable[[], float] | None = None, **options: str) -> None:
        self._given = {"path": str(directory), **options}
        self._clock = clock
        self.rows: list[tuple[int, int, int]] = []
        self.batches: list[int] = []
        self.start: Offset | None = None
        self._planned: Offset | None = None
        self.restart()

    def restart(self, directory: Path | None = None) -> None:
        """Forget all but the checkpoint.

        Parameters:
            directory: Where the logs are now; None if they are where they were.
        """
        if directory is not None:
            self._given["path"] = str(directory)
        options = ReadOptions.parse(self._given, streaming=True)
        logs = None if self._clock is None else LogTail(options, self._clock, self._clock)
        self.reader = ChangesStreamReader(options, COLUMNS, logs)

    def plan(self) -> bool:
        """Plan a batch; its end goes to the checkpoint. Tell whether there is one."""
        if self._planned is None:
            # Spark asks for the limit, and gives it back.
            limit: ReadLimit = self.reader.getDefaultReadLimit()
            start = self._begin()
            end = _checkpointed(self.reader.latestOffset(start, limit))
            if end == self.start:
                return False
            self._planned = end
        return True

    def parts(self) -> list[StreamPart]:
        """The parts of the batch that is planned."""
        assert self._planned is not None
        parts = self.reader.partitions(self._begin(), self._planned)
        return [part for part in parts if isinstance(part, StreamPart)]

    def finish(self) -> None:
        """Read the batch that is planned, and let the checkpoint say so."""
        before = len(self.rows)
        for part in self.parts():
            for batch in self.reader.read(part):
                columns = batch.to_pydict()
                times = [int(each.timestamp()) for each in columns["timestamp"]]
                self.rows += zip(columns["replica_id"], columns["lsn"], times, strict=True)
        self.batches.append(len(self.rows) - before)
        self.start, self._planned = self._planned, None

    def follow(self) -> None:
        """Read batches while there are any."""
        while self.plan():
            self.finish()

    def _begin(self) -> Offset:
        return _checkpointed(self.reader.initialOffset() if self.start is None else self.start)


def _checkpointed(offset: Offset) -> Offset:
    told: Offset = json.loads(json.dumps(offset))
    return told
