"""The outputs of a job: one directory per result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, BinaryType, MapType, StructType

from pyspark_tarantool.source.errors import SourceError

FORMATS: Final = ("parquet", "csv", "json")


class Outputs:
    """The directory that `--output` names, on any filesystem that Spark knows.

    Parameters:
        session: The session that writes.
        directory: A path or URI; it need not exist.
        file_format: One of FORMATS.
        overwrite: Whether existing results are replaced.
    """

    def __init__(self, session: SparkSession, directory: str, file_format: str, overwrite: bool) -> None:
        self._session = session
        self._directory = directory.rstrip("/") or "/"
        self._format = file_format
        self._overwrite = overwrite

    def refuse_existing(self, names: Iterable[str]) -> None:
        """Refuse existing results, before the work begins.

        Parameters:
            names: The results.

        Raises:
            SourceError: If one exists and may not be replaced.
        """
        if self._overwrite:
            return
        for name in names:
            if self._exists(self.path_of(name)):
                raise SourceError(
                    f"{self.path_of(name)} already exists: choose another --output, or use --overwrite"
                )

    def _exists(self, path: str) -> bool:
        # Only Hadoop's configuration determines the filesystem of a path without a scheme.
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
            files: The maximum number of files per directory; None for Spark's choice.

        Returns:
            The number of rows.
        """
        written = Observation()
        rows = rows.observe(written, sql.count("*").alias("rows"))
        if files is not None:
            rows = rows.coalesce(files)
        writer = (_flat(rows) if self._format == "csv" else rows).write
        writer = writer.mode("overwrite" if self._overwrite else "errorifexists").format(self._format)
        if self._format == "csv":
            # RFC 4180 doubles quotes within quotes; Spark's default is a backslash.
            writer = writer.options(header=True, escape='"')
        if self._format == "json":
            writer = writer.option("ignoreNullFields", False)
        if partition_by:
            writer = writer.partitionBy(*partition_by)
        writer.save(self.path_of(name))
        return int(written.get["rows"])


def _flat(rows: DataFrame) -> DataFrame:
    """Convert columns of types that CSV lacks to texts."""
    columns = []
    for column in rows.schema.fields:
        value = sql.col(f"`{column.name.replace('`', '``')}`")
        if isinstance(column.dataType, StructType | ArrayType | MapType):
            value = sql.to_json(value).alias(column.name)
        elif isinstance(column.dataType, BinaryType):
            value = sql.base64(value).alias(column.name)
        columns.append(value)
    return rows.select(columns)
