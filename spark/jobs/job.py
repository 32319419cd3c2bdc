"""The context of a job: the session, the tables it reads, and its outputs.

A job is a function that takes a `Job`; `job_command` in `command_line.py` makes a command of it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Final

import click
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sql
from pyspark.storagelevel import StorageLevel

from pyspark_tarantool.jobs.fail_if import Condition, check
from pyspark_tarantool.jobs.latest_change import (
    LatestChange,
    is_at_or_before,
    latest_change,
    literal,
    time_of_change,
)
from pyspark_tarantool.jobs.outputs import Outputs
from pyspark_tarantool.jobs.text_table import text_table
from pyspark_tarantool.report import Report
from pyspark_tarantool.report.quantities import duration, moment, number, size
from pyspark_tarantool.source.io.filesystem import find_files

if TYPE_CHECKING:
    from pyspark.sql import Column

    from pyspark_tarantool.queues import QueueKind

SHOWN_ROWS: Final = 40
"""The default number of rows of a result that are printed."""

_SHUFFLE: Final = "spark.sql.shuffle.partitions"
_SHUFFLE_BYTES: Final = 16 * 1024**2
_SHUFFLE_MOST: Final = 2000


@dataclass
class Job:
    """The context of a job.

    Attributes:
        name: The job's name, such as `backlog`.
        session: The session.
        paths: The files, directories and globs to read.
        queue: The kind of queue; None for a job without a queue.
        options: The data source's options, without `mode`, `lsn` and `time`.
        at_lsn: The last change to read: a number, or a vector clock as text; None for all.
        at_time: The time to read up to, in seconds since 1970; None for all.
        outputs: Writes results; None if they are only printed.
        report_file: The HTML page to write; None for none.
        conditions: Those of `--fail-if`.
        refresh_s: How often a browser loads the page again, in seconds, with `--follow`; None for never.
        begun: When the job was started, by `time.monotonic()`; messages show the seconds since.
    """

    name: str
    session: SparkSession
    paths: tuple[str, ...]
    queue: QueueKind | None
    options: Mapping[str, str]
    at_lsn: str | None = None
    at_time: float | None = None
    outputs: Outputs | None = None
    report_file: str | None = None
    begun: float = field(default_factory=time.monotonic)
    conditions: Sequence[Condition] = ()
    refresh_s: int | None = None
    _kept: list[DataFrame] = field(default_factory=list)

    @property
    def path(self) -> str | list[str]:
        """The paths, as `DataFrameReader.load` takes them."""
        return self.paths[0] if len(self.paths) == 1 else list(self.paths)

    @property
    def state_options(self) -> dict[str, str]:
        """The data source's options for the state at the requested time."""
        if self.at_lsn is not None:
            return {**self.options, "mode": "at_lsn", "lsn": self.at_lsn}
        if self.at_time is not None:
            return {**self.options, "mode": "at_time", "time": repr(self.at_time)}
        return {**self.options, "mode": "current"}

    def tasks(self) -> DataFrame:
        """The queue's tasks at the requested time, with the columns of `QueueKind.tasks`."""
        assert self.queue is not None, "only jobs with --queue have tasks"
        return self.queue.tasks(self.session, self.path, self.state_options)

    def events(self) -> DataFrame:
        """The queue's events up to the requested time, with the columns of `QueueKind.events`."""
        assert self.queue is not None, "only jobs with --queue have events"
        events = self.queue.events(self.session, self.path, dict(self.options))
        until = self.until()
        return events if until is None else events.where(until)

    def payloads(self) -> tuple[DataFrame, DataFrame]:
        """The beginning of tasks' data: of present tasks, and of all tasks in the logs."""
        assert self.queue is not None, "only jobs with --queue have tasks"
        stored = self.queue.payloads(self.session, self.path, self.state_options)
        return stored, self.queue.logged_payloads(self.session, self.path, dict(self.options))

    def until(self, timestamp: str = "at") -> Column | None:
        """The condition that selects logged rows up to the requested time.

        Parameters:
            timestamp: The column of their timestamps.

        Returns:
            A condition on that column or on `lsn` and `replica_id`; None to select all rows.
        """
        if self.at_time is not None:
            return sql.col(timestamp) <= literal(self.now)
        return None if self.at_lsn is None else is_at_or_before(self.at_lsn)

    @cached_property
    def newest(self) -> LatestChange:
        """The newest change to read: the one of `--at-lsn`, else the last one in the files."""
        newest = latest_change(self.paths, self.options)
        if self.at_lsn is None:
            return newest
        made = time_of_change(self.session, self.path, self.options, self.at_lsn)
        return LatestChange(made or newest.moment, self.at_lsn)

    @property
    def now(self) -> datetime:
        """The reference time of ages: the requested time, else that of the newest change read."""
        return self.newest.moment if self.at_time is None else datetime.fromtimestamp(self.at_time, UTC)

    def as_of(self) -> str:
        """A description of the state that is read."""
        if self.at_time is not None:
            return moment(self.now)
        return f"{moment(self.newest.moment)}, after the change with LSN {self.newest.lsn}"

    def keep(self, rows: DataFrame) -> DataFrame:
        """Cache rows that several results use.

        Parameters:
            rows: The rows; they are kept in memory, or on disk if memory is full, until the job ends.
        """
        kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
        self._kept.append(kept)
        return kept

    def log_inputs(self) -> None:
        """Log the files to read, and choose the number of shuffle partitions."""
        found = find_files([*self.paths, *filter(None, [self.options.get("wal_dir")])])
        total = sum(file.size for file in found)
        self.say(
            f"reading {len(found)} file{'s' * (len(found) != 1)} of {size(total)} in {', '.join(self.paths)}"
        )
        if not self.session.sparkContext.getConf().contains(_SHUFFLE):
            # Spark's default of 200 is too high for small files: a partition costs more than its rows.
            wanted = max(2 * self.session.sparkContext.defaultParallelism, total // _SHUFFLE_BYTES)
            self.session.conf.set(_SHUFFLE, min(wanted, _SHUFFLE_MOST))

    def say(self, text: str) -> None:
        """Log progress to stderr."""
        click.echo(f"{time.monotonic() - self.begun:7.1f} s  {text}", err=True)

    def show(
        self,
        rows: DataFrame | Sequence[Row],
        title: str,
        limit: int = SHOWN_ROWS,
        columns: Sequence[str] | None = None,
    ) -> list[Row]:
        """Print the first rows of a result as a table.

        Parameters:
            rows: The result. Columns whose names end in `_s` are seconds, in `_bytes` bytes.
            title: The heading.
            limit: The maximum number of rows to print.
            columns: The columns; None for all.

        Returns:
            The printed rows, and one more if there are more.
        """
        first = rows.take(limit + 1) if isinstance(rows, DataFrame) else list(rows[: limit + 1])
        click.echo(f"\n{title}\n")
        names = columns or (first[0].__fields__ if first else [])
        shown = [[row[name] for name in names] for row in first[:limit]]
        click.echo(text_table(names, shown) if first else "  (no rows)")
        if len(first) > limit:
            click.echo("  ... and more" + ("; --output writes all of them" if self.outputs is None else ""))
        return first

    def write(
        self, rows: DataFrame, name: str, partition_by: Sequence[str] = (), files: int | None = 1
    ) -> None:
        """Write a result into its directory, if `--output` asks for it.

        Parameters:
            rows: The result.
            name: Its name, one of the `results` of the job's command.
            partition_by: Columns that become directories.
            files: The maximum number of files; None for Spark's choice.
        """
        if self.outputs is None:
            return
        begun = time.monotonic()
        written = self.outputs.write(rows, name, partition_by, files)
        took = duration(time.monotonic() - begun)
        self.say(
            f"wrote {number(written)} row{'s' * (written != 1)} into {self.outputs.path_of(name)} in {took}"
        )

    def report(self, title: str, subtitle: str = "") -> Report:
        """Create the page for `--report`, with facts about the input; pass it to `finish` at the end."""
        report = Report(title, subtitle)
        if self.refresh_s is not None:
            report.refresh_every(self.refresh_s)
        logs = self.options.get("wal_dir")
        report.add_facts([("Files", ", ".join([*self.paths, *([f"{logs} (logs)"] if logs else [])]))])
        if self.queue is not None:
            report.add_facts([("Kind of queue", self.queue.name)])
        report.add_facts([("As of", self.as_of())])
        return report

    @property
    def wants_report(self) -> bool:
        """Whether `--report` is given."""
        return self.report_file is not None

    def finish(self, report: Report) -> None:
        """Write the page to the file of `--report`."""
        assert self.report_file is not None, "there is no --report"
        report.write(self.report_file)
        self.say(f"the report is in {self.report_file}")

    def check(self, values: Mapping[str, float | None]) -> None:
        """Check the conditions of `--fail-if`; call it at the end.

        Parameters:
            values: The metrics of the job by name; None for those without a value.

        Raises:
            ConditionError: If one holds.
        """
        check(self.conditions, values)

    def close(self) -> None:
        """Release the cached rows."""
        while self._kept:
            self._kept.pop().unpersist()
