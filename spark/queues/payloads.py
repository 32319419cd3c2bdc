"""The beginning of tasks' data as text, which tells people what a task is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import StringType, StructField, StructType

from pyspark_tarantool.queues.dialect import DATA, ID, TUBE, QueueSpace
from pyspark_tarantool.source.arrow.columns import EXTRA

SHOWN: Final = 200
"""The maximum length of a payload, in characters."""


def state_columns(space: QueueSpace) -> StructType:
    """The columns of a space's state that `stored_payloads` needs."""
    names = [space.names[space.meanings[each]] for each in (ID, TUBE) if each in space.meanings]
    return StructType([StructField(name, StringType()) for name in (*names, _data_column(space))])


def stored_payloads(rows: DataFrame, space: QueueSpace) -> DataFrame:
    """The payloads of a space's present tasks.

    Parameters:
        rows: The space's rows, with `state_columns`.
        space: The space.

    Returns:
        `queue`, `id` and `payload`: the data as JSON, cut after `SHOWN` characters.
    """

    def column(meaning: str) -> Column:
        return sql.col(_quoted(space.names[space.meanings[meaning]])).cast("string")

    queue = sql.lit(space.name)
    if TUBE in space.meanings:
        queue = sql.concat_ws("/", queue, column(TUBE))
    payload = _cut(sql.col(_quoted(_data_column(space))))
    return rows.select(queue.alias("queue"), column(ID).alias("id"), payload.alias("payload"))


def logged_payloads(changes: DataFrame, spaces: Sequence[QueueSpace]) -> DataFrame:
    """The payloads of tasks whose whole tuple was logged.

    Parameters:
        changes: Rows of `mode=changes` with `tuples=json`.
        spaces: The spaces with tasks.

    Returns:
        `queue`, `id`, `lsn`, `at` and `payload`, a row for each put, and for each change of a whole tuple.
    """
    whole = changes.where(sql.col("operation").isin("INSERT", "REPLACE"))
    parsed = whole.withColumn("_tuple", sql.from_json("after", "array<string>"))
    queue, task, payload = (sql.lit(None).cast("string") for _ in range(3))
    for space in spaces:
        is_here = sql.col("space_id") == space.id

        def field(meaning: str, of: QueueSpace = space) -> Column:
            return sql.get("_tuple", sql.lit(of.meanings[meaning]))

        name = sql.lit(space.name)
        if TUBE in space.meanings:
            name = sql.concat_ws("/", name, field(TUBE))
        # Data without a field in the format is an array in states, too.
        number = space.meanings[DATA]
        rest = sql.to_json(sql.expr(f"slice(_tuple, {number + 1}, {2**31 - 1})"))
        # As JSON, with quotes around strings, like columns of states.
        value = f"try_variant_get(try_parse_json(after), '$[{number}]', 'variant')"
        data = sql.to_json(sql.expr(value)) if number < len(space.names) else rest
        queue = sql.when(is_here, name).otherwise(queue)
        task = sql.when(is_here, field(ID)).otherwise(task)
        payload = sql.when(is_here, data).otherwise(payload)
    columns = (queue.alias("queue"), task.alias("id"), "lsn", sql.col("timestamp").alias("at"))
    return parsed.where(sql.col("space_id").isin([space.id for space in spaces])).select(
        *columns, _cut(payload).alias("payload")
    )


def _data_column(space: QueueSpace) -> str:
    number = space.meanings[DATA]
    return space.names[number] if number < len(space.names) else EXTRA


def _cut(text: Column) -> Column:
    shown = sql.substring(text, 1, SHOWN)
    return sql.when(sql.length(text) > SHOWN, sql.concat(shown, sql.lit("…"))).otherwise(shown)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
