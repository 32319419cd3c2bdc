"""The events of tasks, as far as logged changes distinguish them.

| event | meaning |
| --- | --- |
| put | The task was created. |
| ready | Its delay is over; without earlier changes in the logs, it became ready for any reason. |
| taken | A consumer has taken it. |
| touched | Its time to run was extended. |
| released | It was released, immediately or with a delay. |
| returned | It became ready because its connection was closed, or at a restart. |
| timed_out | It became ready because its time to run was over. |
| buried, kicked | It was buried; it was made ready after that. |
| done | It was marked as done and kept. |
| acked | It was deleted while taken. |
| expired | It was deleted because its time to live was over. |
| deleted | It was deleted while not taken. |
| removed | It was deleted; the logs lack its status. |
| truncated | Its space was truncated or dropped. |
| changed | Any other change, such as one that a client made directly. |

The logs do not show:

- whether a taken task that is deleted was acknowledged, or deleted by another client;
- whether a taken task that becomes ready before its time to run is over was released, or its connection was
  closed, or the server restarted: all of these are `released`. Only Tarantool's logs of the tutorial's queue
  distinguish them: a release sets `runat`; otherwise, the event is `returned`;
- the owner of a task;
- touching a task without extending its time, and takes without a result: these are not logged.

A row's timestamp is that of its batch, so it may be a few milliseconds before the due time. Events up to
`EARLY_US` earlier count as due.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from pyspark_tarantool.queues.dialect import TUBE, Dialect, QueueSpace
from pyspark_tarantool.queues.logged_rows import clearings, logged_rows
from pyspark_tarantool.queues.queue_kind import BURIED, DELAYED, DONE, EVENTS, READY, TAKEN
from pyspark_tarantool.queues.task_timeline import CLEARED, task_timelines
from pyspark_tarantool.queues.times import moment

EARLY_US: Final = 10_000
"""Microseconds by which the timestamp of a logged row may precede its due time."""


def events_of(
    changes: DataFrame, system_changes: DataFrame, spaces: Sequence[QueueSpace], dialect: Dialect
) -> DataFrame:
    """Compute the events of tasks.

    Parameters:
        changes: Rows of `mode=changes` with `tuples=json`.
        system_changes: The same, for changes of system spaces. They are loaded separately, because Spark has
            one set of pushed-down filters for all uses of a loaded table.
        spaces: The spaces with tasks.
        dialect: The kind of queue.

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
    """The name of a task's queue: its space, or its tube."""
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
