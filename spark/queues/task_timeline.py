"""Timelines of tasks: their logged changes in order, each with the state before and after it.

A task's id may be reused (those of tubes are, once a tube is empty), so rows with the same id may belong to
several consecutive tasks, each with its own `life`. A life begins with an INSERT, or after a DELETE.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as sql

CLEARED: Final = "CLEARED"
"""The operation of the row added for a task whose space was truncated or dropped."""

_POSITION: Final = ("moment", "replica_id", "lsn")
_BEFORE: Final = {
    "status_before": "status_after",
    "since": "since_after",
    "due_before_us": "due_us",
    "ends_us": "ends_after_us",
}
"""Columns with the state before a change, and the corresponding ones after it."""


def task_timelines(rows: DataFrame, clearings: DataFrame) -> DataFrame:
    """Compute the timeline of each task.

    Changes of one member of a replica set are ordered by LSN, regardless of its clock; those of several
    members by time.

    Parameters:
        rows: The result of `logged_rows`.
        clearings: The result of `clearings`.

    Returns:
        The rows, and one for each task whose space was cleared: `place`, `id`, `at`, `lsn`, `replica_id`,
        `operation`, `starts`, `sets_due`; `life`, from 1, and 0 for tasks older than the logs; `number`, the
        order of rows; `status_before` and `status_after`, `due_before_us` and `due_us`; `since`, the time
        when the previous status began; `ends_us`, the end of the time to live before the change; `tube`,
        `created_us` and `payload_bytes` if known.
    """
    ordered = Window.partitionBy("place", "id").orderBy(*_POSITION)
    known = ordered.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    placed = _with_clearings(rows, clearings, ordered)
    is_first = sql.lag("operation").over(ordered).isNull()
    is_new = (sql.lag("operation").over(ordered) == "DELETE") | sql.lag("cleared").over(ordered).isNotNull()
    starts = (sql.col("operation") == "INSERT") | (~is_first & is_new)
    carried = placed.withColumn("starts", starts).select(
        *("place", "id", *_POSITION, "at", "operation", "starts", "sets_due", "cleared"),
        sql.sum(sql.col("starts").cast("int")).over(known).alias("life"),
        (sql.row_number().over(ordered) + _clearings_before(ordered)).alias("number"),
        *(_newest(name, known).alias(name) for name in ("created_us", "payload_bytes")),
        sql.first("tube", ignorenulls=True).over(_whole(ordered)).alias("tube"),
        _newest("status", known).alias("status_after"),
        *(column for name in ("due", "ttl") for column in _set_and_added(name, known)),
    )
    carried = carried.withColumns({name: _sum(name, known) for name in ("due_us", "ttl_us")})
    carried = carried.withColumn("ends_after_us", sql.col("created_us") + sql.col("ttl_us"))
    is_same = ~sql.col("starts") & (sql.lag("status_after").over(ordered) == sql.col("status_after"))
    began = sql.when(~sql.coalesce(is_same, sql.lit(False)), sql.col("at"))
    carried = carried.withColumn("began", began).withColumn("since_after", _newest("began", known))
    before = {name: sql.when(~sql.col("starts"), sql.lag(of).over(ordered)) for name, of in _BEFORE.items()}
    return _with_cleared(carried.withColumns(before))


def _with_clearings(rows: DataFrame, clearings: DataFrame, ordered: WindowSpec) -> DataFrame:
    """Add `moment`, which orders the changes of several members, and `cleared`: the clearing of the space
    that ended the task between the change and its next one, if any."""
    by_member = Window.partitionBy("place", "id", "replica_id").orderBy("lsn")
    # One exchange for all windows: otherwise the first one would cause another.
    placed = rows.repartition("place", "id").withColumn("moment", sql.max("at").over(by_member))
    placed = placed.withColumns({f"next_{name}": sql.lead(name).over(ordered) for name in _POSITION})
    # Joined after sorting, so that the arrays are not sorted with the rows.
    placed = placed.join(sql.broadcast(clearings), "place", "left")

    def is_between(each: Column) -> Column:
        begins = (
            sql.when(each["replica_id"] == sql.col("replica_id"), each["lsn"] > sql.col("lsn"))
        ).otherwise(each["at"] > sql.col("moment"))
        ends = sql.when(
            each["replica_id"] == sql.col("next_replica_id"), each["lsn"] < sql.col("next_lsn")
        ).otherwise(each["at"] < sql.col("next_moment"))
        return begins & (sql.col("next_lsn").isNull() | ends)

    cleared = sql.when(
        sql.col("operation") != "DELETE", sql.get(sql.filter("clearings", is_between), sql.lit(0))
    )
    return placed.withColumn("cleared", cleared).drop("clearings", *(f"next_{name}" for name in _POSITION))


def _clearings_before(ordered: WindowSpec) -> Column:
    """The number of earlier clearings of tasks with the same id."""
    before = ordered.rowsBetween(Window.unboundedPreceding, -1)
    return sql.coalesce(sql.sum(sql.col("cleared").isNotNull().cast("int")).over(before), sql.lit(0))


def _newest(name: str, known: WindowSpec) -> Column:
    return sql.last(name, ignorenulls=True).over(known)


def _whole(ordered: WindowSpec) -> WindowSpec:
    return ordered.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)


def _set_and_added(name: str, known: WindowSpec) -> list[Column]:
    """The value that a change sets, the last value set so far, and the sum of all additions so far."""
    added = sql.sum(sql.coalesce(f"{name}_more_us", sql.lit(0))).over(known)
    return [
        sql.col(f"{name}_us").alias(f"{name}_given"),
        _newest(f"{name}_us", known).alias(f"{name}_set"),
        added.alias(f"{name}_added"),
    ]


def _sum(name: str, known: WindowSpec) -> Column:
    """A number after a change: the last value set, plus the additions since."""
    short = name.removesuffix("_us")
    added = sql.col(f"{short}_added")
    when_set = sql.when(sql.col(f"{short}_given").isNotNull(), added)
    return sql.col(f"{short}_set") + added - sql.last(when_set, ignorenulls=True).over(known)


def _with_cleared(rows: DataFrame) -> DataFrame:
    """Add the rows of tasks whose space was cleared."""
    parts = sql.when(sql.col("cleared").isNull(), sql.array(sql.lit(False)))
    exploded = rows.withColumn(
        "is_clearing", sql.explode(parts.otherwise(sql.array(sql.lit(False), sql.lit(True))))
    )
    is_gone = sql.col("is_clearing") | (sql.col("operation") == "DELETE")

    def either(ours: str, cleared: Column) -> Column:
        return sql.when(sql.col("is_clearing"), cleared).otherwise(sql.col(ours)).alias(ours)

    return exploded.select(
        *("place", "id", "life", "tube", "created_us", "payload_bytes"),
        *(either(name, sql.col("cleared")[name]) for name in ("at", "lsn", "replica_id")),
        either("number", sql.col("number") + 1),
        either("operation", sql.lit(CLEARED)),
        either("starts", sql.lit(False)),
        either("sets_due", sql.lit(False)),
        *(either(name, sql.col(of)) for name, of in _BEFORE.items()),
        *(sql.when(~is_gone, sql.col(name)).alias(name) for name in ("status_after", "due_us")),
    )
