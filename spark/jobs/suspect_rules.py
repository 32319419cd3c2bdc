"""Rules that find suspicious tasks and queues by their state and history."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from pyspark_tarantool.jobs.latest_change import literal, seconds_until
from pyspark_tarantool.queues.queue_kind import STATUSES

COMES_BACK: Final = "that come back"
STUCK: Final = "stuck in taken"
PAST_TTR: Final = "past their time to run"
BURIED: Final = "buried"
NEVER_TAKEN: Final = "never taken"

SUSPICIONS: Final = (STUCK, PAST_TTR, COMES_BACK, BURIED, NEVER_TAKEN)
"""In display order."""

_LEAST_FIT: Final = 0.5
"""The minimum R² of a growing queue: a fluctuating backlog has a lower one."""


class Thresholds(NamedTuple):
    """The thresholds of suspicious tasks and queues.

    Attributes:
        attempts: The number of takes.
        stuck: The time that a task has been taken, in seconds.
        waiting: The time that a task has been ready without any take, in seconds.
        growth: The number of ready tasks that a queue gains per hour.
    """

    attempts: int = 3
    stuck: float = 3600
    waiting: float = 3600
    growth: float = 60


def histories_of(events: DataFrame) -> DataFrame:
    """Summarize the history of each task.

    Parameters:
        events: With the columns of `QueueKind.events`.

    Returns:
        A row for each task in the logs, by `queue`, `id` and `life`: `attempts`, the number of takes;
        `first_taken`; `last_event` and the status after it, `last_status`, null for a removed task; `since`,
        the time of the last change of status; `first_at` and `last_at`, the times of the first and the last
        event; `created`, the time of the put; `is_last`, whether no later task has the same id. A task has
        the status of its put since `created`, not since the row was logged.
    """
    is_taken, is_put = sql.col("event") == "taken", sql.col("event") == "put"
    changes = ~sql.col("status_before").eqNullSafe(sql.col("status_after"))
    histories = events.groupBy("queue", "id", "life").agg(
        sql.count_if(is_taken).alias("attempts"),
        sql.min(sql.when(is_taken, sql.col("at"))).alias("first_taken"),
        sql.max_by("event", "number").alias("last_event"),
        sql.max_by("status_after", "number").alias("last_status"),
        sql.max_by(
            sql.when(is_put, sql.coalesce("created", "at")).otherwise(sql.col("at")),
            sql.when(changes, sql.col("number")),
        ).alias("since"),
        sql.coalesce(sql.min("created"), sql.min(sql.when(is_put, sql.col("at")))).alias("created"),
        sql.min("at").alias("first_at"),
        sql.max("at").alias("last_at"),
    )
    same_id = Window.partitionBy("queue", "id")
    return histories.withColumn("is_last", sql.col("life") == sql.max("life").over(same_id))


def suspects_of(tasks: DataFrame, histories: DataFrame, now: datetime, thresholds: Thresholds) -> DataFrame:
    """Find suspicious tasks.

    Parameters:
        tasks: With the columns of `QueueKind.tasks`.
        histories: As `histories_of` makes them.
        now: The reference time of durations.
        thresholds: The thresholds.

    Returns:
        One row for each task and rule: `queue`, `id`, `why`; `status`, or the last event of a removed task;
        `since`, when the task got this status, or was removed; `for_s`, the duration of the condition;
        `attempts`, as far as they are in the logs; `created`; `first_taken`; `due`. Conditions older than the
        logs count from their beginning.
    """
    is_taken = sql.col("status") == "taken"
    is_untouched = (sql.col("status") == "ready") & (sql.col("attempts") == 0)
    age = seconds_until(now, "since")
    suspicions = [
        _suspicion(STUCK, is_taken & (age > thresholds.stuck), now),
        _suspicion(PAST_TTR, is_taken & (sql.col("due") < literal(now)), now, begin="due"),
        _suspicion(COMES_BACK, sql.col("attempts") >= thresholds.attempts, now, begin="first_taken"),
        _suspicion(BURIED, sql.col("status") == "buried", now),
        _suspicion(NEVER_TAKEN, is_untouched & (age > thresholds.waiting), now),
    ]
    # One pass over the tasks, which may be millions.
    there = _tasks_with_histories(tasks, histories)
    found = there.withColumn("found", sql.explode(sql.array_compact(sql.array(*suspicions))))
    shown = found.select(
        *("queue", "id", "found.why", "status", "since", "found.for_s", "attempts", "created", "first_taken"),
        "due",
    )
    return shown.unionByName(_gone(histories, thresholds), allowMissingColumns=True).orderBy(
        place_of("why"), sql.desc_nulls_last("for_s"), "queue", "id"
    )


def _tasks_with_histories(tasks: DataFrame, histories: DataFrame) -> DataFrame:
    known = histories.where("is_last").select("queue", "id", "attempts", "since", "first_taken")
    logs_begin = histories.agg(sql.min("first_at").alias("logs_begin"))
    there = tasks.join(known, ["queue", "id"], "left").crossJoin(sql.broadcast(logs_begin))
    put = sql.when(sql.col("status") == "ready", sql.col("created"))
    return there.withColumns(
        {
            "since": sql.coalesce("since", put, "logs_begin"),
            "attempts": sql.coalesce("attempts", sql.lit(0)),
        }
    )


def _suspicion(why: str, condition: Column, now: datetime, begin: str = "since") -> Column:
    """The finding for a task that meets a condition, whose duration begins at a time; else null."""
    return sql.when(
        condition, sql.struct(sql.lit(why).alias("why"), seconds_until(now, begin).alias("for_s"))
    )


def _gone(histories: DataFrame, thresholds: Thresholds) -> DataFrame:
    """Removed tasks that were taken too often."""
    is_gone = sql.col("last_status").isNull() & (sql.col("attempts") >= thresholds.attempts)
    lasted = (sql.unix_micros("last_at") - sql.unix_micros("first_taken")) / 1_000_000
    return histories.where(is_gone).select(
        "queue",
        "id",
        sql.lit(COMES_BACK).alias("why"),
        sql.col("last_event").alias("status"),
        sql.col("last_at").alias("since"),
        lasted.alias("for_s"),
        *("attempts", "created", "first_taken"),
    )


def with_payloads(found: DataFrame, stored: DataFrame, logged: DataFrame) -> DataFrame:
    """Add to suspects what they are about.

    Parameters:
        found: As `suspects_of` finds them.
        stored: As `QueueKind.payloads` returns them.
        logged: As `QueueKind.logged_payloads` returns them, for removed tasks.

    Returns:
        The suspects in their order, with the column `payload`, null where the data is unknown.
    """
    tasks = sql.broadcast(found.select("queue", "id").distinct())
    stored = stored.join(tasks, ["queue", "id"], "semi").withColumnRenamed("payload", "stored")
    is_gone = ~sql.col("status").isin(list(STATUSES))
    # An id may be reused: a removed task has the last data that was logged before its end.
    gone = sql.broadcast(found.where(is_gone).select("queue", "id", sql.col("since").alias("end")).distinct())
    last = logged.join(gone, ["queue", "id"]).where(sql.col("at") <= sql.col("end"))
    last = last.groupBy("queue", "id", "end").agg(sql.max_by("payload", "lsn").alias("logged"))
    both = found.withColumn("end", sql.when(is_gone, sql.col("since")))
    both = both.join(sql.broadcast(stored), ["queue", "id"], "left")
    both = both.join(sql.broadcast(last), ["queue", "id", "end"], "left")
    payload = sql.when(is_gone, sql.col("logged")).otherwise(sql.col("stored"))
    return both.select(*found.columns, payload.alias("payload")).orderBy(
        place_of("why"), sql.desc_nulls_last("for_s"), "queue", "id"
    )


def levels_of(
    tasks: DataFrame, events: DataFrame, begin: datetime, end: datetime, interval: int
) -> DataFrame:
    """Compute the number of ready tasks in each interval.

    Parameters:
        tasks: With the columns of `QueueKind.tasks`, as of the end.
        events: With the columns of `QueueKind.events`.
        begin: The time of the first interval.
        end: The time of the last interval.
        interval: The length of the intervals in seconds.

    Returns:
        A row per queue and interval: `at`, its end, and the number of tasks `ready` then.
    """
    first, last = int(begin.timestamp()) // interval, int(end.timestamp()) // interval
    was_ready = (sql.col("status_before") == "ready") | (
        # A take implies that the task was ready, even if the logs lack its previous status.
        sql.col("status_before").isNull() & (sql.col("event") == "taken")
    )
    change = _one_if(sql.col("status_after") == "ready") - _one_if(was_ready)
    changes = (
        events.select(
            "queue", sql.floor(sql.unix_seconds("at") / interval).alias("number"), change.alias("change")
        )
        .where("change != 0")
        .groupBy("queue", "number")
        .agg(sql.sum("change").alias("change"))
    )
    ready_now = tasks.groupBy("queue").agg(sql.count_if(sql.col("status") == "ready").alias("ready_now"))
    queues = ready_now.join(changes.select("queue").distinct(), "queue", "full")
    numbers = sql.sequence(sql.lit(first), sql.lit(last)).alias("numbers")
    places = queues.select("queue", "ready_now", sql.explode(numbers).alias("number"))
    behind = Window.partitionBy("queue").orderBy("number").rowsBetween(1, Window.unboundedFollowing)
    changed_later = sql.coalesce(sql.sum("change").over(behind), sql.lit(0))
    return places.join(changes, ["queue", "number"], "left").select(
        "queue",
        sql.timestamp_seconds((sql.col("number") + 1) * interval).alias("at"),
        (sql.coalesce("ready_now", sql.lit(0)) - changed_later).alias("ready"),
    )


def growth_of(levels: DataFrame, thresholds: Thresholds) -> DataFrame:
    """Compute the growth of the number of ready tasks.

    Parameters:
        levels: As `levels_of` makes them.
        thresholds: The thresholds.

    Returns:
        A row per queue: `ready_first`, `ready_last` and `ready_most` tasks; `per_hour`, the slope of a linear
        regression; `fit`, its R² from 0 to 1, null if the number never changed; `growing`, whether the slope
        reaches the threshold, the fit is at least one half, and there are more tasks than at first.
    """
    hours = sql.unix_seconds("at") / 3600
    trend = levels.groupBy("queue").agg(
        sql.min_by("ready", "at").alias("ready_first"),
        sql.max_by("ready", "at").alias("ready_last"),
        sql.max("ready").alias("ready_most"),
        sql.regr_slope("ready", hours).alias("per_hour"),
        # SQL has 1 for a constant number, which no line explains.
        sql.when(sql.min("ready") < sql.max("ready"), sql.regr_r2("ready", hours)).alias("fit"),
    )
    grows = (
        (sql.col("per_hour") >= thresholds.growth)
        & (sql.col("fit") >= _LEAST_FIT)
        & (sql.col("ready_last") > sql.col("ready_first"))
    )
    grows = sql.coalesce(grows, sql.lit(False))
    return trend.withColumn("growing", grows).orderBy(
        sql.desc("growing"), sql.desc_nulls_last("per_hour"), "queue"
    )


def _one_if(condition: Column) -> Column:
    return sql.coalesce(condition, sql.lit(False)).cast("int")


def place_of(column: str) -> Column:
    """The place of a suspicion in `SUSPICIONS`, to order by.

    Parameters:
        column: The column that has it.
    """
    return sql.array_position(sql.array(*map(sql.lit, SUSPICIONS)), sql.col(column))
