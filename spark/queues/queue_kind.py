"""What a dialect of queue tells of its tasks: the interface that all jobs work with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

READY: Final = "ready"
DELAYED: Final = "delayed"
TAKEN: Final = "taken"
BURIED: Final = "buried"
DONE: Final = "done"

STATUSES: Final = (READY, DELAYED, TAKEN, BURIED, DONE)
"""The statuses of all queues, by the names that they have here."""

TASKS: Final = StructType(
    [
        StructField("queue", StringType()),
        StructField("id", StringType()),
        StructField("status", StringType()),
        StructField("created", TimestampType()),
        StructField("due", TimestampType()),
        StructField("priority", LongType()),
        StructField("payload_bytes", LongType()),
    ]
)
"""The columns of `QueueKind.tasks`."""

EVENTS: Final = StructType(
    [
        StructField("queue", StringType()),
        StructField("id", StringType()),
        StructField("life", LongType()),
        StructField("number", LongType()),
        StructField("at", TimestampType()),
        StructField("lsn", LongType()),
        StructField("replica_id", IntegerType()),
        StructField("event", StringType()),
        StructField("status_before", StringType()),
        StructField("status_after", StringType()),
        StructField("since", TimestampType()),
        StructField("due_before", TimestampType()),
        StructField("due", TimestampType()),
        StructField("created", TimestampType()),
        StructField("payload_bytes", LongType()),
    ]
)
"""The columns of `QueueKind.events`."""


class QueueKind(ABC):
    """A dialect of queue, whose tasks are rows of certain spaces.

    Attributes:
        name: What it is called on the command line.
    """

    name: ClassVar[str]

    @abstractmethod
    def tasks(self, session: SparkSession, path: str | list[str], options: Mapping[str, str]) -> DataFrame:
        """The tasks as they are, or were at the moment that the options name.

        Parameters:
            session: The session, which knows the data source.
            path: What to read.
            options: The data source's: `mode`, `lsn`, `time`, `wal_dir`, `damaged`, `partition_bytes` …;
                `space` for one of the queue's spaces only.

        Returns:
            One row per task, with the columns `TASKS`. `queue` is its tube; `created` when it was put, if
            that is stored; `due` when a delayed task will be ready, or the time to run of a taken one ends;
            `priority` as it is stored; `payload_bytes` the size of its packed data.

        Raises:
            SourceError: If an option is wrong, or there is no such queue in the files.
            XlogError: If the files that define the spaces cannot be read.
        """

    @abstractmethod
    def events(self, session: SparkSession, path: str | list[str], options: Mapping[str, str]) -> DataFrame:
        """What has happened to the tasks, as far as there are logs of it.

        Parameters:
            session, path: As for `tasks`.
            options: The same, without those that name a moment. With `raw` = `true` the sizes of payloads are
                computed, which costs reading them.

        Returns:
            One row per event, with the columns `EVENTS`; see `history.py` for the events there are. A task's
            id may be given again: `life` counts the tasks that have had the same `id`, from 1, and is 0 for
            one that was there before the logs began. `number` orders the events of an `id`, from 1. `since`
            is when the task got its `status_before`; `due_before` is the moment that it was waiting for
            before the event, `due` the one since.

        Raises:
            SourceError, XlogError: As `tasks`.
        """
