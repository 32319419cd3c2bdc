"""Parts of a snapshot: the blocks with the rows of one task, and the hashes of their keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self, cast

import numpy as np
import numpy.typing as npt
import zstandard
from pandas.util import hash_array
from pyspark.sql.datasource import WriterCommitMessage

from iproto_server.box.index.index_def import IndexDef
from iproto_server.box.key.key_def import distinct_entry_keys_of, distinct_key_of
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError
from iproto_server.storage.snapshot import SnapshotEncoder
from iproto_server.storage.xlog.block import COMPRESSION_LEVEL, encode_block
from pyspark_tarantool.sink.database import Database
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.io.filesystem import locate
from pyspark_tarantool.source.schema.definitions import SpaceDefinition

ROWS_OF_A_PART: Final = 2**40
"""Rows of a snapshot have ascending numbers; each part has a range of this size."""

Hashes = npt.NDArray[np.uint64]


class UniqueKeys:
    """The keys of tuples in a unique index.

    Parameters:
        space: The space.
        index: The index.
    """

    def __init__(self, space: SpaceDefinition, index: IndexDef) -> None:
        self.index = index
        primary = None if index.id == 0 else space.primary
        self._all: Callable[[Sequence[Any], bytes], list[bytes]]
        if index.key_def.is_multikey:
            self._all = distinct_entry_keys_of(index.key_def, index.is_unique, space.primary)
        else:
            only = distinct_key_of(index.key_def, index.is_unique, primary)
            self._all = lambda fields, primary_key: [only(fields, primary_key)]

    @classmethod
    def of(cls, space: SpaceDefinition) -> list[Self]:
        """The unique keys of a space."""
        return [cls(space, index) for index in space.indexes if index.is_unique]

    def keys(self, fields: Sequence[Any], primary_key: bytes) -> list[bytes]:
        """The keys of a tuple: one, or several in a multikey index.

        Parameters:
            fields: The tuple, decoded.
            primary_key: Its key in the primary index.
        """
        return self._all(fields, primary_key)


def hashes_of(keys: Sequence[bytes]) -> Hashes:
    """The hashes of keys, the same in every process."""
    given = np.empty(len(keys), dtype=object)
    given[:] = keys
    return cast("Hashes", hash_array(given, categorize=False))


@dataclass
class Part(WriterCommitMessage):
    """A complete part.

    Attributes:
        number: The partition of the table.
        uri: The file with the blocks.
        begin: The offset of its first block, after a header that makes the part a readable file.
        rows: The number of rows.
        furthest: The last value, in the direction of the sequence, of the field that it fills; or None.
    """

    number: int
    uri: str
    begin: int
    rows: int
    furthest: int | None

    def keys_uri(self, index_id: int) -> str:
        """The file with the hashes of the keys in an index."""
        return f"{self.uri}.{index_id}.keys"


class PartWriter:
    """Writes a part; as a context manager it closes its file.

    Parameters:
        database: The database.
        timestamp: The snapshot's timestamp, in seconds since 1970.
        number: The partition of the table.
        uri: The file; its directory must exist.

    Raises:
        OSError: If it cannot be created.
    """

    def __init__(self, database: Database, timestamp: float, number: int, uri: str) -> None:
        self._space = database.space
        self._sequence = database.sequence
        self._number, self._uri = number, uri
        self._encoder = SnapshotEncoder(timestamp)
        self._encoder.rows = self._first = first_row(number)
        self._compressor = zstandard.ZstdCompressor(level=COMPRESSION_LEVEL)
        self._unique = UniqueKeys.of(self._space)
        self._hashes: list[list[Hashes]] = [[] for _ in self._unique]
        self._furthest: int | None = None
        self._filesystem, path = locate(uri)
        self._file = self._filesystem.open_output_stream(path)
        header = database.header().encode()
        self._begin = len(header)
        self._file.write(header)

    def add(self, rows: Iterator[list[Any]], first: int) -> int:
        """Add the rows of a batch.

        Parameters:
            rows: The decoded tuples.
            first: The number of the first one in the partition, for errors.

        Returns:
            The number of rows.

        Raises:
            SourceError: If one does not fit the space; the message has its number.
            OSError: If the file cannot be written.
        """
        check, primary_key_of = self._space.format.check, self._space.primary.extract
        raws: list[bytes] = []
        keys: list[list[bytes]] = [[] for _ in self._unique]
        for fields in rows:
            try:
                check(fields)
                primary_key = primary_key_of(fields)
                for found, unique in zip(keys, self._unique, strict=True):
                    found += unique.keys(fields, primary_key)
                raws.append(codec.pack(fields))
            except BoxError as error:
                raise SourceError(f"row {first + len(raws)}: {error.message}") from None
            self._count(fields)
        for block in self._encoder.add(self._space.id, raws, int(self._space.is_local)):
            self._write(block)
        for made, found in zip(self._hashes, keys, strict=True):
            made.append(hashes_of(found))
        return len(raws)

    def finish(self) -> Part:
        """Write the remaining rows and the hashes.

        Raises:
            OSError: If that fails.
        """
        last = self._encoder.take()
        if last:
            self._write(last)
        self._file.close()
        count = self._encoder.rows - self._first
        part = Part(self._number, self._uri, self._begin, count, self._furthest)
        for unique, made in zip(self._unique, self._hashes, strict=True):
            _, path = locate(part.keys_uri(unique.index.id))
            with self._filesystem.open_output_stream(path) as file:
                file.write(np.concatenate([np.empty(0, np.uint64), *made]).tobytes())
        return part

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def _write(self, rows: list[bytes]) -> None:
        self._file.write(encode_block(b"".join(rows), self._compressor))

    def _count(self, fields: Sequence[Any]) -> None:
        """Update the last value of the field that a sequence fills."""
        if self._sequence is None:
            return
        value = fields[self._sequence.field_no]
        best = max if self._sequence.step > 0 else min
        if isinstance(value, int):
            self._furthest = value if self._furthest is None else best(self._furthest, value)


def first_row(number: int) -> int:
    """The number of the first row of a part, after all rows of the database that precede it.

    Parameters:
        number: The partition of the table.
    """
    return (number + 1) * ROWS_OF_A_PART
