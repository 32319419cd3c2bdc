"""The events of tasks, as far as their logged changes tell them apart.

| event | what has happened |
| --- | --- |
| put | The task is new. |
| ready | Its delay is over; if its earlier changes are not in the logs, it is ready for any reason. |
| taken | Somebody has taken it. |
| touched | Who has it has more time. |
| released | It was given back, at once or with a delay. |
| returned | It was given back because its connection had closed, or at a restart. |
| timed_out | It was given back when its time to run was over. |
| buried, kicked | It was set aside; it was made ready after that. |
| done | It was marked as done, and kept. |
| acked | It was taken, and is deleted. |
| expired | It is deleted, as its time to live is over. |
| deleted | It is deleted, and was not taken. |
| removed | It is deleted; what its status was is not in the logs. |
| truncated | It has gone with all others of its space. |
| changed | Something else, such as a change that a client has made itself. |

What the logs do not tell:

- whether a taken task that is deleted was acknowledged, or deleted by somebody else;
- whether a taken task that becomes ready before its time to run is over was released, or its connection has
  closed, or the server has started again: all of these are `released`. Only a real Tarantool with the
  tutorial's queue says it: a release sets `runat`, the others do not, and are `returned`;
- who has taken a task;
- touching a task without more time, and taking in vain: nothing is logged.

A row's timestamp is that of the batch it was written with, so it may be a few milliseconds before the moment
at which something was due. What happens up to `EARLY_US` before counts as due.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from spark.queues.dialect import TUBE, Dialect, QueueSpace
from spark.queues.logged_rows import clearings, logged_rows
from spark.queues.queue_kind import BURIED, DELAYED, DONE, EVENTS, READY, TAKEN
from spark.queues.task_timeline import CLEARED, task_timelines
from spark.queues.times import moment

EARLY_US: Final = 10_000
"""Microseconds that the timestamp of a logged row may be before the moment that it was due at."""


def events_of(
    changes: DataFrame, system_changes: DataFrame, spaces: Sequence[QueueSpace], dialect: Dialect
) -> DataFrame:
    """Tell what has happened to tasks.

    Parameters:
        changes: Rows of `mode=changes` with `tuples=json`.
        system_changes: The same; of them those of system spaces are looked at. The data source has to read
            them apart, for Spark has one set of pushed filters for all uses of what was loaded once.
        spaces: The spaces that have tasks.
        dialect: Whose tasks they are.

    Returns:
        The events, with the columns `EVENTS`.
    """
    rows = task_timelines(logged_rows(changes, spaces, dialect), clearings(system_changes, spaces))
    waits = sql.col("status_after").isin(DELAYED, TAKEN)
    waited = sql.col("status_before").isin(DELAYED, TAKEN)
    columns = {
        "queue": _queue(spaces),
        "event": _event(dialect),
        "due_before": sql.when(waited, moment(sql.col("due_before_us"))),
        "due": sql.when(waits, moment(sql.col("due_us"))),
        "created": moment(sql.col("created_us")),
    }
    return rows.withColumns(columns).select(*(sql.col(field.name).cast(field.dataType) for field in EVENTS))


def _queue(spaces: Sequence[QueueSpace]) -> Column:
    """The queue that a task is in: its space, or its tube there."""
    name = sql.lit(None).cast("string")
    for space in spaces:
        name = sql.when(sql.col("place") == space.id, space.name).otherwise(name)
    if TUBE not in spaces[0].meanings:
        return name
    return sql.concat_ws("/", name, sql.coalesce("tube", sql.lit("?")))


def _event(dialect: Dialect) -> Column:
    before, after = sql.col("status_before"), sql.col("status_after")
    return (
        sql.when(sql.col("starts"), "put")
        .when(sql.col("operation") == CLEARED, "truncated")
        .when(sql.col("operation") == "DELETE", _deletion(dialect))
        .when((after == TAKEN) & (before == TAKEN), _if_due_changed("touched"))
        .when(after == TAKEN, "taken")
        .when(after == BURIED, sql.when(before == BURIED, "changed").otherwise("buried"))
        .when(after == DONE, sql.when(before == DONE, "changed").otherwise("done"))
        .when(after == DELAYED, sql.when(before == DELAYED, "changed").otherwise("released"))
        .when((after == READY) & (before == TAKEN), _return(dialect))
        .when((after == READY) & (before == BURIED), "kicked")
        .when((after == READY) & (before.isNull() | (before == DELAYED)), "ready")
        .otherwise("changed")
    )


def _deletion(dialect: Dialect) -> Column:
    before = sql.col("status_before")
    is_over = sql.coalesce(_is_due("ends_us"), sql.lit(False))
    expires = is_over if dialect.expires_taken else is_over & (before != TAKEN)
    return (
        sql.when(before.isNull(), "removed")
        .when(expires, "expired")
        .when(before == TAKEN, "acked")
        .otherwise("deleted")
    )


def _return(dialect: Dialect) -> Column:
    event = sql.when(_is_due("due_before_us"), "timed_out")
    if dialect.release_sets_due:
        is_told = (sql.col("operation") == "UPDATE") & ~sql.col("sets_due")
        event = sql.when(is_told, "returned")
    return event.otherwise("released")


def _if_due_changed(event: str) -> Column:
    return sql.when(sql.col("due_us") != sql.col("due_before_us"), event).otherwise("changed")


def _is_due(name: str) -> Column:
    return sql.unix_micros("at") + EARLY_US >= sql.col(name)
