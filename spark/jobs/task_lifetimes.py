"""From the events of queues to what became of each task: how long it waited, how long the work took, how it
ended; and the same for each queue and each minute, as percentiles and as throughput.

Everything here is a pure function of the events. Durations are differences of the log's timestamps, in
seconds: where a clock was set back meanwhile they may be negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from spark.queues.queue_kind import BURIED, DELAYED, DONE, READY, TAKEN
from spark.queues.times import seconds_between

SHARES: Final = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
"""The percentiles there are of everything, beside the greatest value."""

MEASURES: Final = ("waiting", "first_waiting", "service", "lateness", "in_system")
"""What there are percentiles of: for each queue of all, for each minute of `waiting` and `service`."""

_OUTCOMES: Final = {
    "acked": "acked",
    "done": "done",
    "deleted": "deleted",
    "truncated": "deleted",
    "expired": "expired",
    "removed": "removed",
}
"""What the events that end a task's time in the queue make of it."""


class Lifecycle(NamedTuple):
    """What the events of queues tell.

    Attributes:
        measured: The events, with what ended with them; see `measured_of`.
        tasks: A row for each task; see `tasks_of`.
        per_queue: A row for each queue; see `per_queue_of`.
        per_minute: A row for each queue and minute; see `per_minute_of`.
    """

    measured: DataFrame
    tasks: DataFrame
    per_queue: DataFrame
    per_minute: DataFrame


def lifecycle_of(events: DataFrame) -> Lifecycle:
    """Tell what became of tasks.

    Parameters:
        events: With the columns of `QueueKind.events`. They are used several times, so it pays to keep them.
    """
    measured = measured_of(events)
    tasks = tasks_of(measured)
    return Lifecycle(measured, tasks, per_queue_of(measured, tasks), per_minute_of(measured))


def measured_of(events: DataFrame) -> DataFrame:
    """Add to events the time that ended with them.

    Parameters:
        events: With the columns of `QueueKind.events`.

    Returns:
        The events, with `waiting_s` where a task is taken, since it became ready; `service_s` where one is no
        longer taken, since it was; `lateness_s` where a delay is over, since the moment that was asked for.
        They are null where it is not known when that began.
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
    """Tell what became of each task.

    Parameters:
        measured: As `measured_of` makes it.

    Returns:
        A row for each task, and each task that has had the same id: `put_at`, of those that were put before
        the logs began as far as id or row tell it; `is_put_logged`; `due_at`, the end of the delay that it
        was put with; `ready_at`, `first_taken_at`, `last_taken_at`; `done_at`, when it left the queue or was
        marked as done; `attempts`, how often it was taken; how often it was `released`, `timed_out` and
        `buried`; `first_waiting_s`, `waiting_s`, `service_s`, of all attempts together; `lateness_s`, the
        greatest; `in_system_s`, from put to done; `outcome` (acked, done, deleted, expired, buried, open;
        removed, if its status before is not known); `status`, the last one; `payload_bytes`.
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
        # Sums of doubles: what is behind microseconds is not of the logs.
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
    """Sum up what became of the tasks of each queue.

    Parameters:
        measured: As `measured_of` makes it.
        tasks: As `tasks_of` makes it.

    Returns:
        A row for each queue: `tasks`, and how many of them were put before the logs began
        (`tasks_before_logs`); how many are `acked`, `done`, `deleted`, `expired`, `removed`, `buried` and
        `open`; how many `attempts` there were, and how many times tasks were `released` or `timed_out`;
        `attempts_max`, of one task; and of each of `MEASURES` its `…_count`, `…_p50_s`, … and `…_max_s`.
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
    """Sum up what happened in each minute.

    Parameters:
        measured: As `measured_of` makes it.

    Returns:
        A row for each queue and each minute in which something happened there: how many `puts`, `takes`,
        `acks` (tasks done are among them), `releases`, `timeouts`, and `others_gone` (deleted, expired, …);
        `backlog`, how many tasks were in the queue at the end of the minute, of those that the logs have
        anything of; and `…_count`, `…_p50_s`, … and `…_max_s` of `waiting`, of the takes of that minute, and
        of `service`, of the work that ended in it.
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
    """Compute percentiles, exactly: the p99 is the smallest value that 99 of 100 do not exceed.

    Values are sorted, not collected, so there may be more of them than fit into memory.

    Parameters:
        values: The columns `keys`, `measure` and `value`.
        keys: What they are grouped by.
        measures: The measures there may be.

    Returns:
        A row for each group: of each measure `…_count`, `…_p50_s` and so on, and `…_max_s`.
    """
    group = Window.partitionBy(*keys, "measure")
    ranked = values.select(
        *(*keys, "measure", "value"),
        sql.row_number().over(group.orderBy("value")).alias("rank"),
        sql.count("*").over(group).alias("count"),
    )
    # A rank is a whole number of the group: 0.95 * 20 is a bit more than 19 in floating point.
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
    """The values of measures, each in a row of its own."""
    each = [
        sql.struct(sql.lit(name).alias("measure"), sql.col(f"{name}_s").alias("value")) for name in measures
    ]
    exploded = rows.select(*keys, sql.inline(sql.array(*each)))
    return exploded.where(sql.col("value").isNotNull())


def _first(value: Column) -> Column:
    """The first value of a task's events that is not null."""
    return sql.min_by(value, sql.when(value.isNotNull(), sql.col("number")))
