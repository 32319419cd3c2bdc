"""Selects the table about files or database that the option `mode` names."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from pyspark.sql.datasource import DataSourceReader
from pyspark.sql.types import StructType

from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.options import ReadOptions


class MetadataMode(StrEnum):
    """The content of the rows."""

    SNAPSHOTS = "snapshots"
    """The snapshots."""

    LOGS = "logs"
    """The logs."""

    SPACES = "spaces"
    """The spaces, after all logged changes."""

    INDEXES = "indexes"
    """Their indexes."""

    USERS = "users"
    """The users and roles."""


class MetadataQuery(NamedTuple):
    """A query of such a table.

    Attributes:
        mode: The table.
        options: The options that select the files.
    """

    mode: MetadataMode
    options: ReadOptions

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> MetadataQuery | None:
        """Parse the options of a query.

        Parameters:
            given: Names in any case, and values as text.

        Returns:
            The query; None if the mode is that of another kind of query.

        Raises:
            SourceError: If another option is missing, unknown or wrong.
        """
        options = {name.lower(): text for name, text in given.items()}
        mode = options.pop("mode", "").lower()
        if mode not in [each.value for each in MetadataMode]:
            return None
        if "space" in options:
            raise SourceError(f'mode={mode} is about the whole database, without the option "space"')
        if "where" in options:
            raise SourceError(f'the option "where" is for the rows of spaces, not for mode={mode}')
        return cls(MetadataMode(mode), ReadOptions.parse({**options, "mode": "changes"}))

    def schema(self) -> StructType:
        """The columns."""
        # Import only what the query needs: each plan runs in a new process.
        if self.mode in (MetadataMode.SNAPSHOTS, MetadataMode.LOGS):
            from pyspark_tarantool.source.metadata.file_list import COLUMNS

            return COLUMNS[self.mode]
        from pyspark_tarantool.source.metadata.system_spaces import SYSTEM_SPACES

        return SYSTEM_SPACES[self.mode].schema()

    def reader(self) -> DataSourceReader:
        """Create the reader.

        Raises:
            SourceError: If there are no files.
            XlogError: If the files that define the system spaces cannot be read.
        """
        if self.mode in (MetadataMode.SNAPSHOTS, MetadataMode.LOGS):
            from pyspark_tarantool.source.metadata.file_list import FileListReader

            return FileListReader(self.mode, self.options)
        from pyspark_tarantool.source.metadata.system_spaces import SYSTEM_SPACES, SystemSpaceReader

        return SystemSpaceReader(SYSTEM_SPACES[self.mode], self.options)
