"""The job `export`: a space, a queue's tasks, or logged changes, as Parquet, CSV or JSON.

python -m pyspark_tarantool export ./data --space users --output ./tables
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Final

import click
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, MapType, StructType, TimestampType

from pyspark_tarantool.jobs.command_line import job_command
from pyspark_tarantool.jobs.job import Job
from pyspark_tarantool.source.errors import SourceError

_DAY: Final = re.compile(r"day\((.+)\)")


@job_command(
    [],
    """\
python -m pyspark_tarantool export ./data --space users --output ./tables
python -m pyspark_tarantool export ./data --space 512 --at-time 2026-01-31T12:00:00Z --output ./then
python -m pyspark_tarantool export ./data --queue tubes --output ./tables --partition-by queue
python -m pyspark_tarantool export ./data --changes --output ./history --partition-by "day(timestamp)\"""",
    queue=None,
)
@click.option("--space", metavar="SPACE", help="The space to export, by name or id.")
@click.option(
    "--changes", is_flag=True, help="Export the logged changes: of all spaces, of --space, or of --queue."
)
@click.option("--snapshot", is_flag=True, help="Export the newest snapshot, without the logs.")
@click.option(
    "--partition-by",
    metavar="COLUMN",
    multiple=True,
    help="Create a directory per value, or with day(COLUMN) per day of a timestamp. May be repeated.",
)
@click.option("--files", metavar="N", type=click.IntRange(1), help="Write at most N files per directory.")
@click.option(
    "--unsigned",
    type=click.Choice(["decimal", "bigint"]),
    default="decimal",
    help="The type of unsigned and integer fields.  [default: decimal]",
)
@click.option(
    "--number",
    type=click.Choice(["text", "bigint", "double"]),
    default="text",
    help="The type of number fields.  [default: text]",
)
@click.option("--raw", is_flag=True, help="Also export the MessagePack values.")
@click.option(
    "--passwords",
    type=click.Choice(["mask", "show"]),
    default="mask",
    help="The treatment of password hashes of users.  [default: mask]",
)
@click.option(
    "--recreated",
    type=click.Choice(["fail", "skip"]),
    default="fail",
    help="Changes from before the space was created again with other fields.  [default: fail]",
)
def export(
    job: Job,
    space: str | None,
    changes: bool,
    snapshot: bool,
    partition_by: tuple[str, ...],
    files: int | None,
    recreated: str,
    **shown: object,
) -> None:
    """Export a space's tuples, a queue's tasks, or logged changes.

    Tuples and tasks are the newest logged ones, or those of the requested time.

    Results: tuples, of --space; tasks, of --queue; changes, of --changes; events, of --queue and --changes.
    """
    name = _result(job, space, changes, snapshot)
    if job.outputs is None:
        raise click.UsageError("--output is required: the directory for the results")
    job.outputs.refuse_existing([name])
    options = {option: str(value).lower() for option, value in shown.items()}
    if changes and space is not None:
        options["recreated"] = recreated
    rows, partitions = _with_days(_rows(job, name, space, snapshot, options), partition_by)
    job.write(rows, name, partitions, files)


def _result(job: Job, space: str | None, changes: bool, snapshot: bool) -> str:
    """The name of the result to export."""
    if space is not None and job.queue is not None:
        raise click.UsageError("--space and --queue exclude each other")
    if snapshot and (changes or job.at_lsn is not None or job.at_time is not None):
        raise click.UsageError("--snapshot excludes --changes, --at-lsn and --at-time")
    if job.queue is not None:
        return "events" if changes else "tasks"
    if changes:
        return "changes"
    if space is None:
        raise click.UsageError("--space, --queue or --changes is required")
    return "tuples"


def _rows(job: Job, name: str, space: str | None, snapshot: bool, options: dict[str, str]) -> DataFrame:
    if name == "events":
        return job.events()
    state = {**job.options, "mode": "snapshot"} if snapshot else job.state_options
    if name == "tasks":
        assert job.queue is not None
        return job.queue.tasks(job.session, job.path, state)
    if name == "changes":
        state = {**job.options, "mode": "changes"}
    if space is not None:
        state["space"] = space
    rows = job.session.read.format("tarantool").options(**state, **options).load(job.path)
    until = job.until("timestamp") if name == "changes" else None
    return rows if until is None else rows.where(until)


def _with_days(rows: DataFrame, partition_by: Sequence[str]) -> tuple[DataFrame, list[str]]:
    """Add the computed columns that directories are named by.

    Returns:
        The rows, and the columns to partition by.
    """
    partitions = []
    for text in partition_by:
        match = _DAY.fullmatch(text)
        column = match[1] if match else text
        if column not in rows.columns:
            raise SourceError(
                f'there is no column "{column}" to partition by: there are {", ".join(rows.columns)}'
            )
        kind = rows.schema[column].dataType
        if match:
            if not isinstance(kind, TimestampType):
                raise SourceError(
                    f'the column "{column}" has no days: its type is {kind.simpleString()}, not timestamp'
                )
            rows = rows.withColumn(f"{column}_day", sql.to_date(sql.col(f"`{column}`")))
            column = f"{column}_day"
        elif isinstance(kind, StructType | ArrayType | MapType):
            raise SourceError(
                f'the column "{column}" cannot be partitioned by: its type is {kind.simpleString()}'
            )
        partitions.append(column)
    return rows, partitions


if __name__ == "__main__":
    sys.exit(export.run())
