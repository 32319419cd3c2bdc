"""Logs as the data source shows them, made by hand."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from iproto_server.codec.msgpack import pack
from pyspark_tarantool.queues.dialect import Dialect, QueueSpace
from pyspark_tarantool.queues.task_events import events_of

CHANGES = (
    "lsn bigint, timestamp timestamp, replica_id int, transaction bigint, space_id int, space string, "
    "operation string, index_id int, key string, before string, after string, operations string, "
    "upsert_tuple string, key_raw binary, tuple_raw binary, operations_raw binary"
)
"""The columns of `mode=changes` with `tuples=json` and `raw=true`."""

BEGIN = datetime(2026, 1, 31, 12, tzinfo=UTC)
SYSTEM_SPACE, TRUNCATE = 280, 330


def micros(seconds: float = 0.0) -> int:
    """A moment, some seconds after the log begins, in microseconds since 1970."""
    return (BEGIN - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) + round(seconds * 1e6)


class Log:
    """Changes, in order.

    Attributes:
        space_id: The space that is changed.
        member: Who makes the changes.
    """

    def __init__(self, space_id: int = 512) -> None:
        self.space_id = space_id
        self.member = 1
        self._seconds = 0.0
        self._lsns: defaultdict[int, int] = defaultdict(int)
        self._rows: list[tuple[Any, ...]] = []

    def at(self, seconds: float) -> Log:
        """What follows happens some seconds after the log begins."""
        self._seconds = seconds
        return self

    def insert(self, *row: object) -> None:
        """A row is inserted."""
        self._add("INSERT", row[0], row)

    def replace(self, *row: object) -> None:
        """A row is replaced: what this server logs of all that changes one."""
        self._add("REPLACE", row[0], row)

    def update(self, key: object, *operations: list[object]) -> None:
        """A row is changed, as a real Tarantool logs it; numbers of fields are from 0."""
        self._add("UPDATE", key, None, operations)

    def delete(self, key: object) -> None:
        """A row is deleted."""
        self._add("DELETE", key, None)

    def truncate(self) -> None:
        """The space is truncated, as a real Tarantool logs it."""
        self._add("UPSERT", None, [self.space_id, 1], [["+", 1, 1]], TRUNCATE)

    def truncate_again(self) -> None:
        """The space is truncated, as this server logs it."""
        self._add("REPLACE", self.space_id, [self.space_id, 2], None, TRUNCATE)

    def create(self) -> None:
        """The row of the space in `_truncate` is made, which truncates nothing."""
        self._add("INSERT", self.space_id, [self.space_id, 0], None, TRUNCATE)

    def drop(self) -> None:
        """The space is dropped."""
        self._add("DELETE", self.space_id, None, None, SYSTEM_SPACE)

    def _add(
        self, operation: str, key: object, row: Any, operations: Any = None, space_id: int | None = None
    ) -> None:
        self._lsns[self.member] += 1
        lsn, moment = self._lsns[self.member], BEGIN + timedelta(seconds=self._seconds)
        place = (self.space_id if space_id is None else space_id, None, operation, 0)
        is_upsert = operation == "UPSERT"
        texts = [None if value is None else json.dumps(value) for value in (row, operations)]
        self._rows.append(
            (
                *(lsn, moment, self.member, lsn),
                *place,
                None if key is None else json.dumps([key]),
                None,
                None if is_upsert else texts[0],
                texts[1],
                texts[0] if is_upsert else None,
                None,
                None if row is None else bytearray(pack(list(row))),
                None,
            )
        )

    def changes(self, spark: SparkSession) -> DataFrame:
        """The log as a table, its rows not in order, as executors may find them."""
        return spark.createDataFrame(self._rows[::-1], CHANGES)

    def events(
        self, spark: SparkSession, spaces: list[QueueSpace], dialect: Dialect
    ) -> dict[str, list[dict[str, Any]]]:
        """What has happened to each task, in order, by its id; moments are seconds after the log began."""
        changes = self.changes(spark)
        found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in events_of(changes, changes, spaces, dialect).orderBy("number").collect():
            event = row.asDict()
            for name in ("at", "since", "due_before", "due", "created"):
                if event[name] is not None:
                    event[name] = (event[name].astimezone(UTC) - BEGIN) / timedelta(seconds=1)
            found[row.id].append(event)
        return found


def told(events: list[dict[str, Any]], *names: str) -> list[Any]:
    """Of each event its name, and what else is asked for."""
    if not names:
        return [event["event"] for event in events]
    return [(event["event"], *(event[name] for name in names)) for event in events]
