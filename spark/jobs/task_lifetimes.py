"""Computes waiting times, service times and outcomes of tasks from the events of queues; also percentiles and
throughput for each queue and each minute.

All functions are pure functions of the events. Durations are differences of the log's timestamps in seconds;
they may be negative if a clock was set back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from pyspark_tarantool.queues.queue_kind import BURIED, DELAYED, DONE, READY, TAKEN
from pyspark_tarantool.queues.times import seconds_between

SHARES: Final = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
"""The computed percentiles, in addition to the maximum."""

MEASURES: Final = ("waiting", "first_waiting", "service", "lateness", "in_system")
"""The measures with percentiles: all for each queue; `waiting` and `service` for each minute."""

_OUTCOMES: Final = {
    "acked": "acked",
    "done": "done",
    "deleted": "deleted",
    "truncated": "deleted",
    "expired": "expired",
    "removed": "removed",
}
"""The outcomes of tasks by the events that end their time in the queue."""


class Lifecycle(NamedTuple):
    """The results of the computation.

    Attributes:
        measured: The events with their durations; see `measured_of`.
        tasks: A row for each task; see `tasks_of`.
        per_queue: A row for each queue; see `per_queue_of`.
        per_minute: A row for each queue and minute; see `per_minute_of`.
    """

    measured: DataFrame
    tasks: DataFrame
    per_queue: DataFrame
    per_minute: DataFrame


def lifecycle_of(events: DataFrame) -> Lifecycle:
    """Compute all results.

    Parameters:
        events: With the columns of `QueueKind.events`. They are used several times, so cache them.
    """
    measured = measured_of(events)
    tasks = tasks_of(measured)
    return Lifecycle(measured, tasks, per_queue_of(measured, tasks), per_minute_of(measured))


def measured_of(events: DataFrame) -> DataFrame:
    """Add to each event the duration that it ends.

    Parameters:
        events: With the columns of `QueueKind.events`.

    Returns:
        The events, with `waiting_s` of takes, since the task became ready; `service_s` of events that end a
        take, since the take; `lateness_s` of events that end a delay, since its requested end. They are null
        if the beginning is unknown.
    """
    passed = seconds_between(sql.col("since"), sql.col("at"))
    before, after = sql.col("status_before"), sql.col("status_after")
    is_over = after.isNull() | (after != TAKEN)
    return events.withColumns(
        {
            "waiting_s": sql.when((before == READY) & (after == TAKEN), passed),
            "service_s": sql.when((before == TAKEN) & is_over, passed),
            "lateness_s": sql.when(
                (before == DELAYED) & (after == READY),
                seconds_between(sql.col("due_before"), sql.col("at")),
            ),
        }
    )


def tasks_of(measured: DataFrame) -> DataFrame:
    """Summarize each task.

    Parameters:
        measured: The result of `measured_of`.

    Returns:
        A row per task, with separate rows for tasks with the same id: `put_at`, for tasks put before the logs
        began only if the id or a row contains it; `is_put_logged`; `due_at`, the end of its initial delay;
        `ready_at`, `first_taken_at`, `last_taken_at`; `done_at`, when it left the queue or was marked as
        done; the number of `attempts`, and how often it was `released`, `timed_out` and `buried`;
        `first_waiting_s`; `waiting_s` and `service_s`, summed over all attempts; `lateness_s`, the maximum;
        `in_system_s`, from put to done; `outcome` (acked, done, deleted, expired, buried, open; removed, if
        its previous status is unknown); `status`, the last one; `payload_bytes`.
    """
    event, number = sql.col("event"), sql.col("number")
    has_begun = sql.col("life") > 0
    begins = event == "put"
    ends = event.isin(list(_OUTCOMES)) & ~((event != DONE) & (sql.col("status_before") == DONE))
    is_taken = event == "taken"
    grouped = measured.groupBy("queue", "id", "life").agg(
        sql.coalesce(sql.min(sql.when(begins, sql.col("at"))), sql.min("created")).alias("put_at"),
        sql.first(has_begun).alias("is_put_logged"),
        sql.min(sql.when(begins, sql.col("due"))).alias("due_at"),
        _first(sql.when(sql.col("status_after") == READY, sql.col("at"))).alias("ready_at"),
        _first(sql.when(is_taken, sql.col("at"))).alias("first_taken_at"),
        sql.max_by(sql.when(is_taken, sql.col("at")), sql.when(is_taken, number)).alias("last_taken_at"),
        _first(sql.when(ends, sql.col("at"))).alias("done_at"),
        sql.count_if(is_taken).alias("attempts"),
        sql.count_if(event.isin("released", "returned")).alias("released"),
        sql.count_if(event == "timed_out").alias("timed_out"),
        sql.count_if(event == "buried").alias("buried"),
        sql.min_by("waiting_s", sql.when(is_taken, number)).alias("first_waiting_s"),
        # The logs have microseconds: round off the error of sums of doubles.
        *(sql.round(sql.sum(name), 6).alias(name) for name in ("waiting_s", "service_s")),
        sql.max("lateness_s").alias("lateness_s"),
        _first(sql.when(ends, event)).alias("end"),
        sql.max_by("status_after", number).alias("status"),
        sql.max("payload_bytes").alias("payload_bytes"),
    )
    outcome = sql.when(sql.col("status") == BURIED, "buried").otherwise("open")
    for end, name in _OUTCOMES.items():
        outcome = sql.when(sql.col("end") == end, name).otherwise(outcome)
    left = {
        "in_system_s": seconds_between(sql.col("put_at"), sql.col("done_at")),
        "outcome": outcome,
    }
    return grouped.withColumns(left).drop("end")


def per_queue_of(measured: DataFrame, tasks: DataFrame) -> DataFrame:
    """Summarize each queue.

    Parameters:
        measured: The result of `measured_of`.
        tasks: The result of `tasks_of`.

    Returns:
        A row per queue: the number of `tasks`, and of those put before the logs began (`tasks_before_logs`);
        the number of tasks `acked`, `done`, `deleted`, `expired`, `removed`, `buried` and `open`; the number
        of `attempts`, and how often tasks were `released` or `timed_out`; `attempts_max`, of one task; and
        for each of `MEASURES`, `…_count`, `…_p50_s`, … and `…_max_s`.
    """
    outcomes = ("acked", "done", "deleted", "expired", "removed", "buried", "open")
    counts = tasks.groupBy("queue").agg(
        sql.count("*").alias("tasks"),
        sql.count_if(~sql.col("is_put_logged")).alias("tasks_before_logs"),
        *(sql.count_if(sql.col("outcome") == name).alias(name) for name in outcomes),
        *(sql.sum(name).alias(name) for name in ("attempts", "released", "timed_out")),
        sql.max("attempts").alias("attempts_max"),
    )
    values = _values(measured, ("waiting", "service", "lateness"), ["queue"])
    values = values.unionByName(_values(tasks, ("first_waiting", "in_system"), ["queue"]))
    return counts.join(percentiles_of(values, ["queue"], MEASURES), "queue", "left").orderBy("queue")


def per_minute_of(measured: DataFrame) -> DataFrame:
    """Summarize each minute.

    Parameters:
        measured: The result of `measured_of`.

    Returns:
        A row per queue and minute with events: the number of `puts`, `takes`, `acks` (including tasks done),
        `releases`, `timeouts`, and `others_gone` (deleted, expired, …); `backlog`, the number of tasks in the
        queue at the end of the minute, of those with events in the logs; and `…_count`, `…_p50_s`, … and
        `…_max_s` of `waiting`, for the takes of that minute, and of `service`, for work that ended in it.
    """
    event = sql.col("event")
    was_done = sql.coalesce(sql.col("status_before") == DONE, sql.lit(False))
    is_left = event.isin(list(_OUTCOMES)) & ~was_done
    is_acked = event.isin("acked", "done") & ~was_done
    was_there = (sql.col("life") == 0) & (sql.col("number") == 1)
    by_minute = measured.withColumn("minute", sql.date_trunc("minute", "at"))
    counts = by_minute.groupBy("queue", "minute").agg(
        sql.count_if(event == "put").alias("puts"),
        sql.count_if(event == "taken").alias("takes"),
        sql.count_if(is_acked).alias("acks"),
        sql.count_if(event.isin("released", "returned")).alias("releases"),
        sql.count_if(event == "timed_out").alias("timeouts"),
        sql.count_if(is_left & ~is_acked).alias("others_gone"),
        sql.count_if(was_there).alias("_were_there"),
        (sql.count_if(event == "put") - sql.count_if(is_left)).alias("_more"),
    )
    queue = Window.partitionBy("queue")
    until_then = queue.orderBy("minute").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    backlog = sql.sum("_were_there").over(queue) + sql.sum("_more").over(until_then)
    counts = counts.withColumn("backlog", backlog).drop("_were_there", "_more")
    values = _values(by_minute, ("waiting", "service"), ["queue", "minute"])
    percentiles = percentiles_of(values, ["queue", "minute"], ("waiting", "service"))
    return counts.join(percentiles, ["queue", "minute"], "left").orderBy("queue", "minute")


def percentiles_of(values: DataFrame, keys: Sequence[str], measures: Sequence[str]) -> DataFrame:
    """Compute exact percentiles: the p99 is the smallest value that 99 of 100 do not exceed.

    Values are sorted, not collected, so they need not fit into memory.

    Parameters:
        values: The columns `keys`, `measure` and `value`.
        keys: The columns to group by.
        measures: The possible measures.

    Returns:
        A row per group: for each measure, `…_count`, `…_p50_s` and so on, and `…_max_s`.
    """
    group = Window.partitionBy(*keys, "measure")
    ranked = values.select(
        *(*keys, "measure", "value"),
        sql.row_number().over(group.orderBy("value")).alias("rank"),
        sql.count("*").over(group).alias("count"),
    )
    # Rounding before ceil: 0.95 * 20 is slightly more than 19 in floating point.
    wanted = {name: sql.ceil(sql.round(sql.col("count") * share, 6)) for name, share in SHARES.items()}
    return (
        ranked.groupBy(*keys)
        .pivot("measure", list(measures))
        .agg(
            sql.max("count").alias("count"),
            *(
                sql.max(sql.when(sql.col("rank") == rank, sql.col("value"))).alias(f"{name}_s")
                for name, rank in wanted.items()
            ),
            sql.max("value").alias("max_s"),
        )
    )


def _values(rows: DataFrame, measures: Sequence[str], keys: Sequence[str]) -> DataFrame:
    """The values of measures, one per row."""
    each = [
        sql.struct(sql.lit(name).alias("measure"), sql.col(f"{name}_s").alias("value")) for name in measures
    ]
    exploded = rows.select(*keys, sql.inline(sql.array(*each)))
    return exploded.where(sql.col("value").isNotNull())


def _first(value: Column) -> Column:
    """The first value of a task's events that is not null."""
    return sql.min_by(value, sql.when(value.isNotNull(), sql.col("number")))
