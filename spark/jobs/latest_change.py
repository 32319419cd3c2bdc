"""The newest change in files, and conditions on the position of changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, Self

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sql

from iproto_server.storage.vclock import VClock
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.io.data_files import DataFiles
from pyspark_tarantool.source.metadata.file_list import last_row
from pyspark_tarantool.source.options import ReadOptions


class LatestChange(NamedTuple):
    """A logged change, or the change up to which a snapshot was made.

    Attributes:
        moment: Its time.
        lsn: Its LSN; of a snapshot, its vector clock.
    """

    moment: datetime
    lsn: str

    @classmethod
    def newest(cls, files: DataFiles, damage: DamageHandler) -> Self:
        """Find the newest change, at the end of the newest log that has one.

        Parameters:
            files: The files; only their ends are read.
            damage: Handles damage.

        Raises:
            SourceError: If the files have no rows.
            XlogError: At damage that is not to be skipped.
        """
        for file in [*reversed(files.logs), *reversed(files.snapshots)]:
            row = last_row(file, damage)
            if row is not None:
                lsn = str(row.lsn if row.replica_id else file.header.vclock)
                return cls(datetime.fromtimestamp(row.timestamp, UTC), lsn)
        raise SourceError("these files contain no changes")


def latest_change(paths: Sequence[str], options: Mapping[str, str]) -> LatestChange:
    """Find the newest change in files.

    Parameters:
        paths: Files, directories and globs.
        options: The data source's, of which `wal_dir` and `damaged` are used.
    """
    wanted = {name: options[name] for name in ("wal_dir", "damaged") if name in options}
    parsed = ReadOptions.parse({**wanted, "mode": "changes", "paths": json.dumps(list(paths))})
    return LatestChange.newest(DataFiles.find(parsed), DamageHandler.of(parsed))


def time_of_change(
    session: SparkSession, path: str | list[str], options: Mapping[str, str], lsn: str
) -> datetime | None:
    """Find the time of a change.

    Parameters:
        session: The session.
        path: The path to read.
        options: The data source's.
        lsn: The change: a number, or a vector clock as text.

    Returns:
        The time; None if no log contains the change.
    """
    reader = session.read.format("tarantool").options(**{**options, "mode": "changes", "show_nop": "true"})
    row = reader.load(path).where(_members(lsn, Column.__eq__)).agg(sql.max("timestamp")).collect()[0]
    moment: datetime | None = row[0]
    return moment


def is_at_or_before(lsn: str) -> Column:
    """The condition for changes at or before an LSN, or a vector clock.

    Parameters:
        lsn: A number, for all members, or a vector clock as text.
    """
    return _members(lsn, Column.__le__)


def literal(moment: datetime) -> Column:
    """A timestamp as a column.

    Parameters:
        moment: The time, with its zone or in the local one.
    """
    # Whole microseconds avoid time zones and float fractions.
    return sql.timestamp_micros(sql.lit(round(moment.timestamp() * 1_000_000)))


def seconds_until(moment: datetime, column: str) -> Column:
    """The time elapsed since the timestamps of a column.

    Parameters:
        moment: The reference time.
        column: The column's name.

    Returns:
        Seconds; 0 for later timestamps, as with a clock that was set back.
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
