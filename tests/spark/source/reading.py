"""Readers asked as Spark asks them, each task with a copy of its own, without a Spark."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter
from pyspark.sql.types import StructType

from pyspark_tarantool.data_source import TarantoolDataSource
from pyspark_tarantool.source.batch.filtered_reader import FilteredReader


class Read:
    """What a query has read.

    Parameters:
        path: The file, directory or glob; a JSON list of several.
        schema: The columns that the user wants; None for all.
        filters: The rows to read.
        options: More options of the data source.

    Attributes:
        reader: The driver's reader.
        unhandled: The filters that cannot be evaluated while reading.
        batches: What was read.
    """

    def __init__(
        self,
        path: str | Path,
        schema: StructType | None = None,
        filters: tuple[Filter, ...] = (),
        **options: object,
    ) -> None:
        name = "paths" if str(path).startswith("[") else "path"
        source = TarantoolDataSource({name: str(path), **{key: str(value) for key, value in options.items()}})
        self.reader: DataSourceReader = source.reader(schema or source.schema())
        self.unhandled: list[Filter] = []
        if filters:
            assert isinstance(self.reader, FilteredReader)
            self.unhandled = self.reader.restrict(filters)
        copies = [pickle.loads(pickle.dumps((self.reader, part))) for part in self.reader.partitions()]
        self.partitions = len(copies)
        self.batches: list[pa.RecordBatch] = [batch for copy, part in copies for batch in copy.read(part)]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All rows; strings must be UTF-8."""
        return [row for batch in self.batches for row in batch.to_pylist()]

    def column(self, name: str) -> list[Any]:
        """The values of a column."""
        return [value for batch in self.batches for value in batch.column(name).to_pylist()]

    def bytes_of(self, name: str) -> list[bytes | None]:
        """The values of a column of strings as bytes."""
        return [value for batch in self.batches for value in batch.column(name).cast(pa.binary()).to_pylist()]
