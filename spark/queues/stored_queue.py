"""A queue whose tasks are rows of spaces, read by the data source."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Mapping
from functools import reduce
from typing import ClassVar, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from pyspark_tarantool.queues.dialect import DATA, Dialect, QueueSpace
from pyspark_tarantool.queues.payloads import logged_payloads, state_columns, stored_payloads
from pyspark_tarantool.queues.queue_kind import QueueKind
from pyspark_tarantool.queues.spaces import spaces_of
from pyspark_tarantool.queues.task_events import events_of
from pyspark_tarantool.queues.tasks import tasks_of
from pyspark_tarantool.source.arrow.columns import RAW, row_columns
from pyspark_tarantool.source.options import ReadOptions
from pyspark_tarantool.source.schema.definitions import Definitions, SpaceDefinition

logger = logging.getLogger("pyspark_tarantool.queues")

_NOT_FOR_CHANGES: Final = ("mode", "lsn", "time", "space")
_CHANGES: Final = (
    "lsn bigint, timestamp timestamp, replica_id int, space_id int, operation string, key string, "
    "after string, operations string, upsert_tuple string"
)
_PACKED: Final = ", tuple_raw binary"
"""The columns of changes that are read."""


class StoredQueue(QueueKind):
    """Finds its spaces by their definitions, and interprets their rows.

    Attributes:
        dialect: The properties of the queue.
    """

    dialect: ClassVar[Dialect]

    @abstractmethod
    def spaces(self, definitions: Definitions, wanted: str | int | None) -> list[QueueSpace]:
        """Find the spaces with tasks.

        Parameters:
            definitions: All spaces.
            wanted: The name or id of the requested space; None for all.

        Raises:
            SourceError: If there is none.
        """

    def tasks(self, session: SparkSession, path: str | list[str], options: Mapping[str, str]) -> DataFrame:
        """See `QueueKind.tasks`."""
        definitions = spaces_of(path, options, with_dropped=False)
        states = []
        for space in _in_files(self.spaces(definitions, _wanted(options)), definitions):
            given = {**options, "space": str(space.id), "raw": "true"}
            schema = _without_data(definitions[space.id], space, given)
            rows = session.read.format("tarantool").options(**given).schema(schema).load(path)
            states.append(tasks_of(rows, space, self.dialect))
        return reduce(DataFrame.unionByName, states)

    def payloads(self, session: SparkSession, path: str | list[str], options: Mapping[str, str]) -> DataFrame:
        """See `QueueKind.payloads`."""
        definitions = spaces_of(path, options, with_dropped=False)
        states = []
        for space in _in_files(self.spaces(definitions, _wanted(options)), definitions):
            reader = session.read.format("tarantool").options(**{**options, "space": str(space.id)})
            states.append(stored_payloads(reader.schema(state_columns(space)).load(path), space))
        return reduce(DataFrame.unionByName, states)

    def logged_payloads(
        self, session: SparkSession, path: str | list[str], options: Mapping[str, str]
    ) -> DataFrame:
        """See `QueueKind.logged_payloads`."""
        spaces = self.spaces(spaces_of(path, options, with_dropped=True), _wanted(options))
        given = {name: text for name, text in options.items() if name not in _NOT_FOR_CHANGES}
        reader = session.read.format("tarantool").options(**given, mode="changes", tuples="json")
        return logged_payloads(reader.schema(_CHANGES).load(path), spaces)

    def events(self, session: SparkSession, path: str | list[str], options: Mapping[str, str]) -> DataFrame:
        """See `QueueKind.events`."""
        spaces = self.spaces(spaces_of(path, options, with_dropped=True), _wanted(options))
        given = {name: text for name, text in options.items() if name not in _NOT_FOR_CHANGES}

        def changes() -> DataFrame:
            reader = session.read.format("tarantool").options(**given, mode="changes", tuples="json")
            return reader.schema(_CHANGES + (_PACKED if given.get("raw") == "true" else "")).load(path)

        return events_of(changes(), changes(), spaces, self.dialect)


def _in_files(spaces: list[QueueSpace], definitions: Definitions) -> list[QueueSpace]:
    """The spaces without temporary ones, which are named in a warning.

    Raises:
        SourceError: If there are only temporary ones.
    """
    temporary = [space for space in spaces if definitions[space.id].is_temporary]
    if len(temporary) == len(spaces):
        definitions[spaces[0].id].check_logged()
    for space in temporary:
        logger.warning("the queue %s is temporary: its tasks are in no file, and left out", space.name)
    return [space for space in spaces if space not in temporary]


def _without_data(space: SpaceDefinition, of: QueueSpace, options: Mapping[str, str]) -> StructType:
    """The columns of a space's state without those of tasks' data, whose packed size is measured."""
    looked_at = {of.names[number] for meaning, number in of.meanings.items() if meaning != DATA}
    columns = row_columns(space, ReadOptions.parse({**options, "path": "."})).schema
    return StructType([column for column in columns if column.name in (*looked_at, RAW)])


def _wanted(options: Mapping[str, str]) -> str | int | None:
    """The space that the options name; digits are an id."""
    name = options.get("space")
    return int(name) if name is not None and name.isdecimal() else name
