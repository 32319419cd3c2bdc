"""Interprets logged changes of tasks: the effect of each row on the task's fields.

A row contains the whole tuple (INSERT and REPLACE; otherwise, this server logs only DELETE), or, if Tarantool
wrote it, the operations of an UPDATE: assignments and additions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from iproto_server.box.catalog.system_space_ids import SPACE, TRUNCATE
from pyspark_tarantool.queues.dialect import (
    CREATED,
    DATA,
    DUE,
    STATUS,
    TTL,
    TUBE,
    Dialect,
    QueueSpace,
)
from pyspark_tarantool.queues.packed_size import size_behind
from pyspark_tarantool.queues.times import MICROSECONDS, microseconds

_TUPLE: Final = "_tuple"
_OPERATIONS: Final = "_operations"
_NANOSECONDS_FROM: Final = 10**17
"""Smaller ids are not times in nanoseconds: those would be before 1973."""


def logged_rows(changes: DataFrame, spaces: Sequence[QueueSpace], dialect: Dialect) -> DataFrame:
    """Interpret changes of tasks.

    Parameters:
        changes: Rows of `mode=changes` with `tuples=json`.
        spaces: The spaces with tasks.
        dialect: The kind of queue.

    Returns:
        One row per change of a task: `place` (see `place_of`), `id`, `at`, `lsn`, `replica_id`, `operation`;
        `tube`, `status`, `due_us`, `ttl_us`, `created_us` if the change sets them, else null; the increments
        `due_more_us` and `ttl_more_us`; `sets_due`; `payload_bytes` if the changes have `tuple_raw`. Times
        and durations are microseconds.
    """
    parsed = changes.where(sql.col("space_id").isin([space.id for space in spaces])).select(
        "space_id",
        place_of(spaces).alias("place"),
        sql.get(_texts("key"), sql.lit(0)).alias("id"),
        sql.col("timestamp").alias("at"),
        *("lsn", "replica_id", "operation"),
        _texts("after").alias(_TUPLE),
        sql.from_json("operations", "array<array<string>>").alias(_OPERATIONS),
        *(["tuple_raw"] if "tuple_raw" in changes.columns else []),
    )
    fields = _Fields(spaces)
    created = microseconds(fields.new(CREATED), dialect.units)
    if dialect.id_is_creation:
        created = creation_of_id("id")
    return parsed.select(
        *("place", "id", "at", "lsn", "replica_id", "operation"),
        sql.expr(fields.new(TUBE)).alias("tube"),
        named_status(fields.new(STATUS), dialect).alias("status"),
        microseconds(fields.new(DUE), dialect.units).alias("due_us"),
        microseconds(fields.added(DUE), dialect.units).alias("due_more_us"),
        microseconds(fields.new(TTL), MICROSECONDS).alias("ttl_us"),
        microseconds(fields.added(TTL), MICROSECONDS).alias("ttl_more_us"),
        created.alias("created_us"),
        sql.expr(f"{fields.new(DUE)} is not null").alias("sets_due"),
        _payload(changes, spaces).alias("payload_bytes"),
    )


def clearings(changes: DataFrame, spaces: Sequence[QueueSpace]) -> DataFrame:
    """Find truncations and drops of spaces, which remove all of their tasks.

    Parameters:
        changes: As for `logged_rows`.
        spaces: The spaces with tasks.

    Returns:
        One row per place that was cleared: `place`, and `clearings`, an array of structs, oldest first: `at`,
        `replica_id`, `lsn`.
    """
    # Tarantool logs the first truncation of a space as UPSERT, and this server as REPLACE, because its INSERT
    # truncates nothing.
    truncates = (sql.col("space_id") == TRUNCATE) & sql.col("operation").isin("REPLACE", "UPDATE", "UPSERT")
    drops = (sql.col("space_id") == SPACE) & (sql.col("operation") == "DELETE")
    number = sql.coalesce(*(sql.get(_texts(name), sql.lit(0)) for name in ("key", "after", "upsert_tuple")))
    cleared = changes.where(sql.col("space_id").isin(TRUNCATE, SPACE)).where(truncates | drops)
    cleared = cleared.withColumn("space_id", number.try_cast("int"))
    cleared = cleared.where(sql.col("space_id").isin([space.id for space in spaces]))
    position = sql.struct(sql.col("timestamp").alias("at"), "replica_id", "lsn")
    return cleared.groupBy(place_of(spaces).alias("place")).agg(
        sql.array_sort(sql.collect_list(position)).alias("clearings")
    )


def place_of(spaces: Sequence[QueueSpace]) -> Column:
    """The id of a task's space; for dropped spaces, that of the newest one with the same name, so that a tube
    that was dropped and re-created is one queue.

    Parameters:
        spaces: The spaces with tasks.
    """
    newest = {space.name: max(each.id for each in spaces if each.name == space.name) for space in spaces}
    if len(newest) == len(spaces):
        return sql.col("space_id")
    return sql.expr(_by_space(spaces, lambda space: newest[space.name], "int"))


def named_status(stored: str, dialect: Dialect) -> Column:
    """The name of a stored status; unknown ones are unchanged.

    Parameters:
        stored: The stored value, in SQL.
        dialect: The kind of queue.
    """
    cases = " ".join(f"when '{letter}' then '{name}'" for letter, name in dialect.statuses.items())
    return sql.expr(f"case {stored} {cases} else {stored} end")


def creation_of_id(task_id: str) -> Column:
    """The time in microseconds since 1970 of an id in nanoseconds; null for other ids.

    Parameters:
        task_id: The id as text, in SQL.
    """
    nanoseconds = f"try_cast({task_id} as bigint)"
    return sql.expr(f"case when {nanoseconds} >= {_NANOSECONDS_FROM} then {nanoseconds} div 1000 end")


class _Fields:
    """SQL for the fields of tasks in tuples and operations; their positions depend on the space."""

    def __init__(self, spaces: Sequence[QueueSpace]) -> None:
        self._spaces = spaces

    def new(self, meaning: str) -> str:
        """The value that a change assigns to a field; null if it does not."""
        return f"coalesce(get({_TUPLE}, {self._number(meaning)}), {self._operand(meaning, '=')})"

    def added(self, meaning: str) -> str:
        """The number that a change adds to a field; null if it does not."""
        return f"coalesce({self._operand(meaning, '+')}, concat('-', {self._operand(meaning, '-')}))"

    def _operand(self, meaning: str, operation: str) -> str:
        field = f"get(each, 1) in (cast({self._number(meaning)} as string), {self._name(meaning)})"
        return f"get(get(filter({_OPERATIONS}, each -> get(each, 0) = '{operation}' and {field}), 0), 2)"

    def _number(self, meaning: str) -> str:
        return _by_space(self._spaces, lambda space: space.meanings.get(meaning), "int")

    def _name(self, meaning: str) -> str:
        return _by_space(
            self._spaces,
            lambda space: space.names[space.meanings[meaning]] if meaning in space.meanings else None,
            "string",
        )


def _by_space(
    spaces: Sequence[QueueSpace], value: Callable[[QueueSpace], int | str | None], kind: str
) -> str:
    """A constant that depends on the space of a row."""
    ids: defaultdict[int | str | None, list[int]] = defaultdict(list)
    for space in spaces:
        ids[value(space)].append(space.id)
    (chosen, _), *others = ids.items()
    cases = [f"when space_id in ({', '.join(map(str, of))}) then {_literal(each)}" for each, of in others]
    text = f"case {' '.join(cases)} else {_literal(chosen)} end" if cases else _literal(chosen)
    return f"cast({text} as {kind})"


def _literal(value: int | str | None) -> str:
    if value is None:
        return "null"
    # Field names are arbitrary; hexadecimal avoids special characters of SQL.
    return str(value) if isinstance(value, int) else f"cast(x'{value.encode().hex()}' as string)"


def _payload(changes: DataFrame, spaces: Sequence[QueueSpace]) -> Column:
    """The size of a task's data, if the row has the whole tuple."""
    size = sql.lit(None).cast("bigint")
    if "tuple_raw" not in changes.columns:
        return size
    has_tuple = sql.col("operation").isin("INSERT", "REPLACE")
    for number in {space.meanings[DATA] for space in spaces}:
        ids = [space.id for space in spaces if space.meanings[DATA] == number]
        chosen = has_tuple & sql.col("space_id").isin(ids)
        size = sql.when(chosen, size_behind("tuple_raw", number)).otherwise(size)
    return size


def _texts(name: str) -> Column:
    """The elements of a JSON array: strings as they are, others as JSON."""
    return sql.from_json(name, "array<string>")
