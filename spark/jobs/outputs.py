"""Where a job writes its results: each into a directory of its name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, BinaryType, MapType, StructType

from spark.source.errors import SourceError

FORMATS: Final = ("parquet", "csv", "json")


class Outputs:
    """The directory that `--output` names, on any filesystem that Spark knows.

    Parameters:
        session: The session that writes.
        directory: A path or URI; it need not be there.
        file_format: One of FORMATS.
        overwrite: Whether results that are there are replaced.
    """

    def __init__(self, session: SparkSession, directory: str, file_format: str, overwrite: bool) -> None:
        self._session = session
        self._directory = directory.rstrip("/") or "/"
        self._format = file_format
        self._overwrite = overwrite

    def refuse_existing(self, names: Iterable[str]) -> None:
        """Find out before the work that results would be in the way of others.

        Parameters:
            names: The results.

        Raises:
            SourceError: If one is there and may not be replaced.
        """
        if self._overwrite:
            return
        for name in names:
            if self._exists(self.path_of(name)):
                raise SourceError(
                    f"{self.path_of(name)} is there already: choose another --output, or --overwrite it"
                )

    def _exists(self, path: str) -> bool:
        # Only Spark's own Hadoop knows which filesystem a path without scheme belongs to.
        context = self._session.sparkContext
        assert context._jvm is not None
        hadoop_path = context._jvm.org.apache.hadoop.fs.Path(path)
        return bool(hadoop_path.getFileSystem(context._jsc.hadoopConfiguration()).exists(hadoop_path))

    def path_of(self, name: str) -> str:
        """The directory of a result.

        Parameters:
            name: Its name.
        """
        return f"{self._directory}/{name}"

    def write(
        self, rows: DataFrame, name: str, partition_by: Sequence[str] = (), files: int | None = 1
    ) -> int:
        """Write a result.

        Parameters:
            rows: The result. In CSV, structs and lists are JSON text, and binary columns base64.
            name: Its name.
            partition_by: Columns that become directories.
            files: At most so many files in a directory; None for as many as Spark makes.

        Returns:
            How many rows it has.
        """
        written = Observation()
        rows = rows.observe(written, sql.count("*").alias("rows"))
        if files is not None:
            rows = rows.coalesce(files)
        writer = (_flat(rows) if self._format == "csv" else rows).write
        writer = writer.mode("overwrite" if self._overwrite else "errorifexists").format(self._format)
        if self._format == "csv":
            # A quote within quotes is doubled, as RFC 4180 has it; Spark's own way is a backslash.
            writer = writer.options(header=True, escape='"')
        if self._format == "json":
            writer = writer.option("ignoreNullFields", False)
        if partition_by:
            writer = writer.partitionBy(*partition_by)
        writer.save(self.path_of(name))
        return int(written.get["rows"])


def _flat(rows: DataFrame) -> DataFrame:
    """Make columns that CSV has no form for texts."""
    columns = []
    for column in rows.schema.fields:
        value = sql.col(f"`{column.name.replace('`', '``')}`")
        if isinstance(column.dataType, StructType | ArrayType | MapType):
            value = sql.to_json(value).alias(column.name)
        elif isinstance(column.dataType, BinaryType):
            value = sql.base64(value).alias(column.name)
        columns.append(value)
    return rows.select(columns)
