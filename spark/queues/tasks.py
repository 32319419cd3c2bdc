"""The tasks of a queue in a state of its spaces."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from pyspark_tarantool.queues.dialect import (
    CREATED,
    DATA,
    DUE,
    ID,
    PRIORITY,
    STATUS,
    TUBE,
    Dialect,
    QueueSpace,
)
from pyspark_tarantool.queues.logged_rows import creation_of_id, named_status
from pyspark_tarantool.queues.packed_size import size_behind
from pyspark_tarantool.queues.queue_kind import DELAYED, TAKEN, TASKS
from pyspark_tarantool.queues.times import microseconds, moment


def tasks_of(rows: DataFrame, space: QueueSpace, dialect: Dialect) -> DataFrame:
    """Interpret the rows of a space.

    Parameters:
        rows: The space's rows, with the column `_raw` to measure payloads.
        space: The space.
        dialect: The kind of queue.

    Returns:
        The tasks, with the columns `TASKS`.
    """

    def text(meaning: str) -> str:
        if meaning not in space.meanings:
            return "cast(null as string)"
        name = space.names[space.meanings[meaning]].replace("`", "``")
        return f"cast(`{name}` as string)"

    status = named_status(text(STATUS), dialect)
    due = moment(microseconds(text(DUE), dialect.units))
    created = microseconds(text(CREATED), dialect.units)
    if dialect.id_is_creation:
        created = creation_of_id(text(ID))
    queue = sql.lit(space.name)
    if TUBE in space.meanings:
        queue = sql.concat_ws("/", queue, sql.expr(text(TUBE)))
    payload = sql.lit(None)
    if "_raw" in rows.columns:
        payload = size_behind("_raw", space.meanings[DATA])
    columns = {
        "queue": queue,
        "id": sql.expr(text(ID)),
        "status": status,
        "created": moment(created),
        "due": sql.when(status.isin(DELAYED, TAKEN), due),
        "priority": sql.expr(text(PRIORITY)).try_cast("bigint"),
        "payload_bytes": payload,
    }
    return rows.select(*(columns[field.name].cast(field.dataType).alias(field.name) for field in TASKS))
