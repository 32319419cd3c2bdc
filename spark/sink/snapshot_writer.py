"""Writes rows into a snapshot from which this server or Tarantool starts: the fastest way to load many rows.

Tasks write blocks of rows in parallel into a directory inside the target directory. Finally, the driver
copies the rows of the other spaces and the blocks into one file, and renames it: there is a complete snapshot
or, after a failure, none.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping

import pyarrow
from pyarrow import fs
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from iproto_server.storage.directory import file_name
from iproto_server.storage.errors import XlogError
from iproto_server.storage.xlog import FileType
from pyspark_tarantool.sink.database import Database
from pyspark_tarantool.sink.new_database import NewDatabase
from pyspark_tarantool.sink.snapshot_assembler import assemble
from pyspark_tarantool.sink.snapshot_options import SnapshotOptions
from pyspark_tarantool.sink.snapshot_parts import Part, PartWriter
from pyspark_tarantool.sink.template_database import TemplateDatabase
from pyspark_tarantool.sink.tuples import Tuples
from pyspark_tarantool.sink.unique_check import refuse_duplicates
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.io.filesystem import locate


def snapshot_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> DataSourceWriter:
    """Create the writer of a table into a snapshot.

    Parameters:
        options: The options, for `SnapshotOptions.parse`.
        schema: The columns of the table.
        overwrite: Whether the mode is `overwrite`.

    Raises:
        SourceError: If an option is wrong, the columns do not fit the space, or the directory is in use.
    """
    parsed = SnapshotOptions.parse(options)
    database: Database
    try:
        if parsed.template is None:
            database = NewDatabase(parsed, schema)
        else:
            database = TemplateDatabase(parsed.template, parsed.space)
    except (OSError, XlogError) as error:
        raise SourceError(f"the template {parsed.template}: {error}") from None
    refuse_used(parsed.path, database, overwrite)
    return SnapshotWriter(parsed.path, database, schema, overwrite)


def refuse_used(path: str, database: Database, overwrite: bool) -> None:
    """Refuse directories whose data a new snapshot would replace.

    The mode `overwrite` only replaces a snapshot that no server has used: there are no logs, and no other
    snapshot, which a server might prefer. Users have to remove anything else explicitly.

    Parameters:
        path: The directory.
        database: The snapshot's database.
        overwrite: Whether the mode is `overwrite`.

    Raises:
        SourceError: If the directory is in use.
    """
    filesystem, inside = locate(path)
    try:
        (directory,) = filesystem.get_file_info([inside])
        if directory.type == fs.FileType.File:
            raise SourceError(f"{path} is not a directory")
        entries = filesystem.get_file_info(fs.FileSelector(inside, allow_not_found=True))
    except OSError as error:
        raise SourceError(f"{path}: {error}") from None
    suffixes = tuple(file_type.suffix for file_type in FileType)
    names = sorted(entry.base_name for entry in entries if entry.base_name.endswith(suffixes))
    if not names:
        return
    if not overwrite:
        raise SourceError(f"{path} already contains a database: {names[-1]}")
    replaced = file_name(FileType.SNAPSHOT, database.vclock.signature)
    others = [name for name in names if name != replaced]
    if others:
        raise SourceError(
            f"{path} contains {others[-1]}: a server has used it, and its data would be lost; remove "
            "the files yourself, or choose another directory"
        )


class SnapshotWriter(DataSourceArrowWriter):
    """Writes a snapshot.

    Parameters:
        path: The directory.
        database: Provides all other rows.
        schema: The columns of the table.
        overwrite: Whether a snapshot that no server has used may be replaced.

    Raises:
        SourceError: If the columns do not fit the space.
    """

    def __init__(self, path: str, database: Database, schema: StructType, overwrite: bool) -> None:
        self._path = path
        self._database = database
        self._schema = schema
        self._overwrite = overwrite
        self._timestamp = time.time()
        self._parts = f"{path}/.loading-{uuid.uuid4()}"
        # Check the columns before any task starts.
        self._tuples()

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of a partition; it runs on an executor.

        Parameters:
            iterator: The rows.

        Raises:
            SourceError: If a row does not fit the space; the message has its number.
            OSError: If the part cannot be written.
        """
        context = TaskContext.get()
        partition, attempt = (context.partitionId(), context.taskAttemptId()) if context else (0, 0)
        return self.write_part(iterator, partition, attempt)

    def write_part(self, batches: Iterator[pyarrow.RecordBatch], partition: int, attempt: int) -> Part:
        """Write the rows of a partition.

        Parameters:
            batches: The rows.
            partition: The partition.
            attempt: Distinguishes attempts of the same task.

        Raises:
            SourceError: If a row does not fit the space; the message has its number.
            OSError: If the part cannot be written.
        """
        filesystem, inside = locate(self._parts)
        filesystem.create_dir(inside, recursive=True)
        tuples = self._tuples()
        number = 0
        uri = f"{self._parts}/{partition:06d}-{attempt}"
        with PartWriter(self._database, self._timestamp, partition, uri) as writer:
            try:
                for batch in batches:
                    number += writer.add(tuples.rows(batch, number), number)
            except SourceError as error:
                raise SourceError(f"partition {partition}: {error}") from None
            return writer.finish()

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Assemble the parts; it runs on the driver.

        Parameters:
            messages: The parts.

        Raises:
            SourceError: If two rows share a unique key, the directory is in use meanwhile, or parts are
                missing.
            OSError: If the snapshot cannot be written.
        """
        parts = sorted((each for each in messages if isinstance(each, Part)), key=lambda part: part.number)
        try:
            refuse_used(self._path, self._database, self._overwrite)
            self._check_there(parts)
            refuse_duplicates(self._database.space, parts)
            filesystem, inside = locate(self._path)
            filesystem.create_dir(inside, recursive=True)
            assemble(self._database, parts, self._path, self._timestamp)
        finally:
            self._remove_parts()

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove the parts; it runs on the driver after a task has finally failed.

        Parameters:
            messages: The complete parts.
        """
        self._remove_parts()

    def _tuples(self) -> Tuples:
        database = self._database
        return Tuples.of_space(self._schema, database.space, has_datetimes=database.has_datetimes)

    def _check_there(self, parts: list[Part]) -> None:
        for part in parts:
            filesystem, inside = locate(part.uri)
            (info,) = filesystem.get_file_info([inside])
            if not info.is_file:
                raise SourceError(
                    f"{part.uri} does not exist: all machines of the cluster must share the directory"
                )

    def _remove_parts(self) -> None:
        filesystem, inside = locate(self._parts)
        (info,) = filesystem.get_file_info([inside])
        if info.type == fs.FileType.Directory:
            filesystem.delete_dir(inside)
