"""The end of the logs of a live directory, and the rows between two positions."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from pyspark_tarantool.source.batch.changes_range import ChangesRange
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.io.data_files import DataFile, LogPart
from pyspark_tarantool.source.io.retries import with_retries
from pyspark_tarantool.source.options import ReadOptions
from pyspark_tarantool.source.schema.definitions import Definitions
from pyspark_tarantool.source.stream.initial_snapshot import SnapshotPlace, snapshot_named
from pyspark_tarantool.source.stream.live_logs import START_OVER, LiveLogs, covers, name_of
from pyspark_tarantool.source.stream.live_schema import LiveSchema
from pyspark_tarantool.source.stream.log_walk import LogWalk, Span
from pyspark_tarantool.source.stream.offset import Offset


class Advance(NamedTuple):
    """The log blocks after a position.

    Attributes:
        start: The position.
        end: The end; equal to the start if there are no new rows.
        spans: The blocks to read.
        definitions: The space definitions.
        holds_back: Whether there are further rows that may count later.
    """

    start: Offset
    end: Offset
    spans: tuple[Span, ...]
    definitions: Definitions
    holds_back: bool


class LogTail:
    """Follows the logs of a directory; each call reads only new rows.

    Parameters:
        options: Of the query.
        clock: The filesystem's time, in seconds since 1970.
        monotonic: A monotonic clock, in seconds.
    """

    def __init__(
        self,
        options: ReadOptions,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._logs = LiveLogs(options, clock, monotonic)
        self._on_damaged = options.damaged
        self._spaces: LiveSchema | None = None

    def newest(self) -> DataFile | None:
        """The newest log with its current size; None if there is none.

        Raises:
            SourceError: If the path does not exist.
            XlogError: If a file is not a log.
            OSError: If one cannot be read.
        """

        def look() -> DataFile | None:
            logs = self._logs.find()
            return self._logs.newest(logs).file if logs else None

        return with_retries(look)

    def earliest(self) -> Offset | None:
        """The beginning of the oldest log; None if there is no log. See `newest`."""
        logs = with_retries(self._logs.find)
        return Offset(logs[0].header.vclock) if logs else None

    def latest(self) -> Offset | None:
        """The end of the newest log; None if there is no log. See `newest` and `advance`."""
        newest = self.newest()
        if newest is None:
            return None
        return self.advance(Offset(newest.header.vclock)).end

    def since(self, options: ReadOptions) -> Offset | None:
        """The position before the changes of `starting_lsn` or `starting_time`; None if there is no log.

        Parameters:
            options: Of the query.

        Raises:
            SourceError: If an LSN is a number and several members have written, or changes are gone.
            XlogError: At damage that is not to be skipped.
            OSError: If a file cannot be read.
        """

        def look() -> Offset | None:
            logs = self._logs.find()
            damage = DamageHandler(self._on_damaged)
            clock = ChangesRange.find(options, logs, damage).after
            return Offset(clock) if logs and clock is not None else None

        return with_retries(look)

    def newest_snapshot(self) -> SnapshotPlace | None:
        """The beginning of the newest complete snapshot with the logs after it; None if there is none.

        Raises:
            SourceError: If the path does not exist, or the logs after the snapshot are gone.
            LogGapError: If a log is missing between others.
            XlogError: If a file is not a snapshot or log.
            OSError: If a file cannot be read.
        """

        def look() -> SnapshotPlace | None:
            logs, snapshots = self._logs.find(), self._logs.snapshots()
            if not snapshots:
                return None
            if self._logs.held is not None:
                self._logs.held.hold(snapshots[-1].uri)
            if logs:
                self._logs.after(logs, Offset(snapshots[-1].header.vclock))
            return SnapshotPlace.start_of(snapshots[-1])

        return with_retries(look)

    def snapshot_at(self, place: SnapshotPlace) -> DataFile:
        """The snapshot of a place.

        Parameters:
            place: The place.

        Raises:
            SourceError: If it is gone.
            OSError: If it cannot be read.
        """
        return with_retries(lambda: snapshot_named(place, self._logs.snapshots(), self._logs.where))

    def hold(self) -> None:
        """Keep new logs from now on, if the option `hold_path` is given."""
        if self._logs.held is not None:
            self._logs.held.start()

    def release(self, position: Offset) -> None:
        """Give up the files before a position, if the option `hold_path` is given.

        Parameters:
            position: All rows up to it were processed.

        Raises:
            SourceError: If a link cannot be removed.
        """
        held = self._logs.held
        if held is None:
            return
        logs = with_retries(self._logs.find)
        needed = [log for log in logs if covers(position.vclock, log)]
        if needed:
            held.release(name_of(needed[-1]))

    def stop(self) -> None:
        """End the thread of `hold`."""
        if self._logs.held is not None:
            self._logs.held.stop()

    def advance(
        self,
        start: Offset,
        *,
        max_bytes: int | None = None,
        until: Offset | None = None,
        target: DataFile | None = None,
    ) -> Advance:
        """Find the log blocks after a position.

        Parameters:
            start: The position.
            max_bytes: The approximate limit, in whole blocks and at least one; None for no limit.
            until: A position reached before, at which to end; None for none.
            target: The newest log at an earlier time: later rows are ignored.

        Raises:
            SourceError: If the logs lack rows after the position or before it.
            LogGapError: If a log is missing.
            XlogError: At damage that is not to be skipped.
            OSError: If a file cannot be read.
        """
        return with_retries(lambda: self._advance(start, max_bytes, until, target))

    def _advance(
        self, start: Offset, max_bytes: int | None, until: Offset | None, target: DataFile | None
    ) -> Advance:
        logs = self._logs.find()
        if not logs:
            if until is not None and not start.vclock.covers(until.vclock):
                raise SourceError(f"{self._logs.where}: the logs are gone; {START_OVER}")
            return Advance(start, start, (), Definitions(), False)
        newest = self._logs.newest(logs)
        parts = _before(self._logs.after(logs, start), target)
        damage = DamageHandler(self._on_damaged)
        spaces = self._schema_at(start, logs, damage)
        spaces.begin_batch()
        walk = LogWalk(
            start,
            damage,
            spaces,
            # Rows delivered before were settled at that time.
            newest=newest if until is None else newest._replace(is_settled=True),
            target=target,
            max_bytes=max_bytes,
            until=None if until is None else until.vclock,
        )
        walk.run(parts)
        # Kept only after success: otherwise a retry would apply rows twice.
        self._spaces = spaces
        return Advance(start, walk.end, tuple(walk.spans), spaces.definitions(), walk.holds_back)

    def _schema_at(self, start: Offset, logs: list[DataFile], damage: DamageHandler) -> LiveSchema:
        spaces, self._spaces = self._spaces, None
        if spaces is None or not spaces.vclock.same_as(start.vclock):
            spaces = LiveSchema.at(start, self._logs.snapshots(), logs, damage)
        return spaces


def _before(parts: list[LogPart], target: DataFile | None) -> list[LogPart]:
    """The logs that existed when the target was the newest one."""
    if target is None:
        return parts
    last = target.header.vclock.signature
    return [part for part in parts if part.file.header.vclock.signature <= last]
