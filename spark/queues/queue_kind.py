"""The interface of a kind of queue that all jobs use."""

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
"""The common names of statuses of all queues."""

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
    """A kind of queue, whose tasks are rows of certain spaces.

    Attributes:
        name: Its name on the command line.
    """

    name: ClassVar[str]

    @abstractmethod
    def tasks(self, session: SparkSession, path: str | list[str], options: Mapping[str, str]) -> DataFrame:
        """The tasks now, or as of the options' cutoff.

        Parameters:
            session: The session, with the data source registered.
            path: The path to read.
            options: The data source's: `mode`, `lsn`, `time`, `wal_dir`, `damaged`, `partition_bytes` …;
                `space` for one of the queue's spaces only.

        Returns:
            One row per task, with the columns `TASKS`. `queue` is its tube; `created` the time of its
            put, if stored; `due` the time when a delayed task will be ready, or when the time to run of a
            taken one ends; `priority` as stored; `payload_bytes` the size of its packed data.

        Raises:
            SourceError: If an option is wrong, or there is no such queue in the files.
            XlogError: If the files that define the spaces cannot be read.
        """

    @abstractmethod
    def payloads(self, session: SparkSession, path: str | list[str], options: Mapping[str, str]) -> DataFrame:
        """The beginning of the data of present tasks.

        Parameters:
            session, path, options: As for `tasks`.

        Returns:
            `queue`, `id` and `payload`, the first characters of the data as JSON.

        Raises:
            SourceError, XlogError: As `tasks`.
        """

    @abstractmethod
    def logged_payloads(
        self, session: SparkSession, path: str | list[str], options: Mapping[str, str]
    ) -> DataFrame:
        """The beginning of the data of all tasks that were put while the logs were written.

        Parameters:
            session, path, options: As for `events`.

        Returns:
            `queue`, `id`, `payload`, and the `lsn` and the time, `at`, of the row; ids may be reused.

        Raises:
            SourceError, XlogError: As `tasks`.
        """

    @abstractmethod
    def events(self, session: SparkSession, path: str | list[str], options: Mapping[str, str]) -> DataFrame:
        """The events of tasks in the logs.

        Parameters:
            session, path: As for `tasks`.
            options: The same, without a cutoff. With `raw` = `true`, payload sizes are computed, which
                requires reading the payloads.

        Returns:
            One row per event, with the columns `EVENTS`; see `task_events.py` for the kinds of events. A
            task's id may be reused: `life` counts the tasks with the same `id`, from 1, and is 0 for one that
            existed before the logs began. `number` orders the events of an `id`, from 1. `since` is the time
            when the task got its `status_before`; `due_before` is the due time before the event, `due` the
            one after it.

        Raises:
            SourceError, XlogError: As `tasks`.
        """
