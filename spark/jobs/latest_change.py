"""The newest change that files tell of."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple, Self

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sql

from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import Row, decode_rows
from spark.source.errors import SourceError
from spark.source.io.byte_ranges import read_blocks, whole_file
from spark.source.io.damage import DamageHandler
from spark.source.io.data_files import DataFile, DataFiles
from spark.source.options import ReadOptions

_TAIL: Final = 256 * 1024
"""So many bytes at the end of a file are looked at first."""


class LatestChange(NamedTuple):
    """A change that was logged, or what a snapshot tells of when and after which change it was made.

    Attributes:
        moment: When.
        lsn: Its number in the log of its member; of a snapshot, its vector clock.
    """

    moment: datetime
    lsn: str

    @classmethod
    def newest(cls, files: DataFiles, damage: DamageHandler) -> Self:
        """Find the newest change, at the end of the newest log that has one.

        Parameters:
            files: The files; not more than their ends is read.
            damage: What is done about places that cannot be read.

        Raises:
            SourceError: If there is no change and no row.
            XlogError: At damage that is not to be skipped.
        """
        for file in [*reversed(files.logs), *reversed(files.snapshots)]:
            row = _last_row(file, damage)
            if row is not None:
                lsn = str(row.lsn if row.replica_id else file.header.vclock)
                return cls(datetime.fromtimestamp(row.timestamp, UTC), lsn)
        raise SourceError("there is no change in these files, so there is no newest one")


def _last_row(file: DataFile, damage: DamageHandler) -> Row | None:
    """The last row of a file; None if it has none."""
    whole = whole_file(file)
    tail = _TAIL
    while True:
        last = None
        part = whole._replace(start=max(whole.begin, whole.size - tail))
        for block in read_blocks(part, damage):
            last = block
        if last is not None:
            return decode_rows(last.payload)[-1]
        if part.start == whole.begin:
            return None
        tail *= 8


def latest_change(paths: Sequence[str], options: Mapping[str, str]) -> LatestChange:
    """Find the newest change that files have.

    Parameters:
        paths: Files, directories and globs.
        options: Of the data source, of which `wal_dir` and `damaged` count.
    """
    wanted = {name: options[name] for name in ("wal_dir", "damaged") if name in options}
    parsed = ReadOptions.parse({**wanted, "mode": "changes", "paths": json.dumps(list(paths))})
    return LatestChange.newest(DataFiles.find(parsed), DamageHandler.of(parsed))


def time_of_change(
    session: SparkSession, path: str | list[str], options: Mapping[str, str], lsn: str
) -> datetime | None:
    """Find when a change was made.

    Parameters:
        session: The session.
        path: What to read.
        options: Of the data source.
        lsn: The change: a number, or a vector clock as text.

    Returns:
        The moment; None if no log has it.
    """
    reader = session.read.format("tarantool").options(**{**options, "mode": "changes", "show_nop": "true"})
    row = reader.load(path).where(_members(lsn, Column.__eq__)).agg(sql.max("timestamp")).collect()[0]
    moment: datetime | None = row[0]
    return moment


def is_at_or_before(lsn: str) -> Column:
    """The condition that a row of changes is not behind a number, or a vector clock.

    Parameters:
        lsn: A number, which is then that of any member, or a vector clock as text.
    """
    return _members(lsn, Column.__le__)


def literal(moment: datetime) -> Column:
    """A moment as a column.

    Parameters:
        moment: With its zone, or of the local one.
    """
    # Through whole microseconds: no zone and no fraction of a float comes into it.
    return sql.timestamp_micros(sql.lit(round(moment.timestamp() * 1_000_000)))


def seconds_until(moment: datetime, column: str) -> Column:
    """How long the moments of a column were ago.

    Parameters:
        moment: The moment to count to.
        column: The column's name.

    Returns:
        Seconds; 0 for moments that are still to come, as by a clock that was set back.
    """
    passed = (sql.unix_micros(literal(moment)) - sql.unix_micros(column)) / 1_000_000
    return sql.when(sql.col(column).isNotNull(), sql.greatest(passed, sql.lit(0.0)))


def _members(lsn: str, compare: Callable[[Column, int], Column]) -> Column:
    if lsn.isdecimal():
        return compare(sql.col("lsn"), int(lsn))
    known = sql.lit(False)
    for member, number in VClock.parse(lsn).items():
        known = known | ((sql.col("replica_id") == member) & compare(sql.col("lsn"), number))
    return known
