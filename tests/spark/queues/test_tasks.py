"""Tasks as the spaces of the three queues have them."""

from __future__ import annotations

from datetime import UTC
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from iproto_server.codec.msgpack import pack
from pyspark_tarantool.queues import TASKS, queue_kind
from pyspark_tarantool.queues.dialect import Dialect, QueueSpace
from pyspark_tarantool.queues.legacy import LegacyQueue
from pyspark_tarantool.queues.tasks import tasks_of
from pyspark_tarantool.queues.tubes import Tubes
from pyspark_tarantool.queues.tutorial import TutorialQueue
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.schema.definitions import Definitions, SpaceDefinition
from tests.spark.queues import test_legacy, test_tubes, test_tutorial
from tests.spark.queues.logs import BEGIN, micros

NEVER = 2**64 - 1


def tasks(
    spark: SparkSession, space: QueueSpace, dialect: Dialect, schema: str, *rows: list[Any]
) -> DataFrame:
    """What is told of rows, the last field of which is the data."""
    packed = [
        (*(Decimal(each) if isinstance(each, int) else each for each in row[:-1]), bytearray(pack(row)))
        for row in rows
    ]
    table = spark.createDataFrame(packed, f"{schema}, _raw binary")
    return tasks_of(table, space, dialect)


def test_tasks_of_the_three_queues(spark: SparkSession) -> None:
    nanoseconds = micros() * 1000
    due = micros(7.25)
    tutorial = tasks(
        spark,
        test_tutorial.SPACE,
        TutorialQueue.dialect,
        "id string, status string, runat string",
        [str(nanoseconds + 1), "W", repr(due / 1e6), {"to": "ann"}],
        ["17", "R", "0", None],
        [str(nanoseconds), "T", "0", "x" * 300],
    )
    whole = ", ".join(
        f"{name} {'string' if name in ('id', 'tube', 'status') else 'decimal(20,0)'}"
        for name in test_legacy.SPACE.names
    )
    legacy = tasks(
        spark,
        test_legacy.SPACE,
        LegacyQueue.dialect,
        whole,
        ["ab", "mails", "d", due, 127, 130, 0, micros(), 1, 1, 0, 0, "data"],
        ["cd", "mails", "*", due, 127, 130, 0, micros(), 1, 1, 0, 0, "data"],
    )
    timed = ", ".join(
        f"{name} {'string' if name == 'status' else 'decimal(20,0)'}" for name in test_tubes.TIMES
    )
    tubes = tasks(
        spark,
        test_tubes.FIFOTTL,
        Tubes.dialect,
        timed,
        [0, "t", due, NEVER, 1, 5, micros(), "data"],
        [1, "~", NEVER, NEVER, 1, 0, micros(), [1, 2]],
        [2, "!", due, NEVER, 1, 0, micros(), 1],
    )
    found = tutorial.unionByName(legacy).unionByName(tubes)
    assert found.schema.simpleString() == TASKS.simpleString()
    rows = [
        tuple(
            (value.astimezone(UTC) - BEGIN).total_seconds() if hasattr(value, "astimezone") else value
            for value in row
        )
        for row in found.collect()
    ]
    assert rows[1:] == [
        ("queue", "17", "ready", None, None, None, 1),
        ("queue", str(nanoseconds), "taken", 0, None, None, 303),
        ("queue_0/mails", "ab", "delayed", 0, 7.25, 130, 5),
        ("queue_0/mails", "cd", "done", 0, None, 130, 5),
        ("timed", "0", "taken", 0, 7.25, 5, 5),
        ("timed", "1", "delayed", 0, None, 0, 3),
        ("timed", "2", "buried", 0, None, 0, 1),
    ]
    assert rows[0][:5] == ("queue", str(nanoseconds + 1), "delayed", 0, 7.25)


def definition(space_id: int, name: str, *fields: str) -> SpaceDefinition:
    rows = tuple({"name": field, "type": "any"} for field in fields)
    return SpaceDefinition(space_id, name, 0, rows, (), {}, False)


TUTORIAL = definition(512, "queue", "id", "status", "runat", "data")
LEGACY = definition(513, "queue_0", *test_legacy.SPACE.names, "data")
FIFO = definition(514, "mails", "task_id", "status", "data")
UTUBETTL = definition(515, "jobs", *test_tubes.TIMES, "utube", "data")
HEADS = definition(516, "jobs_ready_buffer", "task_id", "utube", "pri")
OTHER = definition(517, "other", "id", "status")
ALL = Definitions([TUTORIAL, LEGACY, FIFO, UTUBETTL, HEADS, OTHER])


class TestSpaces:
    """Which spaces a queue's are."""

    @pytest.mark.parametrize(
        ("queue", "wanted", "spaces"),
        [
            (TutorialQueue(), None, [512]),
            (LegacyQueue(), None, [513]),
            (LegacyQueue(), "queue_0", [513]),
            (Tubes(), None, [514, 515]),
            (Tubes(), "jobs", [515]),
            (Tubes(), 514, [514]),
        ],
    )
    def test_they_are_found_by_name_and_format(
        self, queue: Tubes, wanted: str | int | None, spaces: list[int]
    ) -> None:
        assert [space.id for space in queue.spaces(ALL, wanted)] == spaces

    @pytest.mark.parametrize(
        ("queue", "wanted", "reason"),
        [
            (TutorialQueue(), "tasks", "there is no space 'tasks'"),
            (TutorialQueue(), "mails", "the space 'mails' is not the tutorial's queue"),
            (LegacyQueue(), "other", "the space 'other' is none of the older queue"),
            (Tubes(), "jobs_ready_buffer", "the space 'jobs_ready_buffer' is not a tube"),
        ],
    )
    def test_others_are_refused(self, queue: Tubes, wanted: str, reason: str) -> None:
        with pytest.raises(SourceError, match=reason):
            queue.spaces(ALL, wanted)

    @pytest.mark.parametrize(
        ("queue", "reason"),
        [
            (TutorialQueue(), "there is no space 'queue'"),
            (LegacyQueue(), "there is no space of the older queue"),
            (Tubes(), "there are no tubes"),
        ],
    )
    def test_a_database_without_queues_is_refused(self, queue: Tubes, reason: str) -> None:
        with pytest.raises(SourceError, match=reason):
            queue.spaces(Definitions([OTHER]), None)


def test_a_dialect_has_a_name() -> None:
    assert [queue_kind(name).name for name in ("tutorial", "legacy", "tubes")] == [
        "tutorial",
        "legacy",
        "tubes",
    ]
    with pytest.raises(ValueError, match="there is no queue 'redis': there are tutorial, legacy, tubes"):
        queue_kind("redis")
