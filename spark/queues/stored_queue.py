"""A queue whose tasks are rows of spaces, read by the data source."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import reduce
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession

from spark.queues.dialect import Dialect, QueueSpace
from spark.queues.history import events_of
from spark.queues.queue_kind import QueueKind
from spark.queues.spaces import spaces_of
from spark.queues.state import tasks_of
from spark.source.definitions import Definitions

_NOT_FOR_CHANGES = ("mode", "lsn", "time", "space")


class StoredQueue(QueueKind):
    """Finds its spaces by their definitions, reads them, and tells what they mean.

    Attributes:
        dialect: The habits of the queue.
    """

    dialect: ClassVar[Dialect]

    @abstractmethod
    def spaces(self, definitions: Definitions, wanted: str | int | None) -> list[QueueSpace]:
        """Find the spaces with tasks.

        Args:
            definitions: All spaces.
            wanted: The only one that is wanted: a name or an id; None for all.

        Raises:
            SourceError: If there is none.
        """

    def tasks(self, session: SparkSession, path: str | list[str], options: Mapping[str, str]) -> DataFrame:
        """See `QueueKind.tasks`."""
        states = []
        for space in self.spaces(spaces_of(path, options, with_dropped=False), _wanted(options)):
            given = {**options, "space": str(space.id), "raw": "true"}
            rows = session.read.format("tarantool").options(**given).load(path)
            states.append(tasks_of(rows, space, self.dialect))
        return reduce(DataFrame.unionByName, states)

    def events(self, session: SparkSession, path: str | list[str], options: Mapping[str, str]) -> DataFrame:
        """See `QueueKind.events`."""
        spaces = self.spaces(spaces_of(path, options, with_dropped=True), _wanted(options))
        given = {name: text for name, text in options.items() if name not in _NOT_FOR_CHANGES}

        def changes() -> DataFrame:
            return session.read.format("tarantool").options(**given, mode="changes", tuples="json").load(path)

        return events_of(changes(), changes(), spaces, self.dialect)


def _wanted(options: Mapping[str, str]) -> str | int | None:
    """The space that the options name: a number in digits is its id."""
    name = options.get("space")
    return int(name) if name is not None and name.isdecimal() else name
