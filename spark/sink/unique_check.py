"""Finds duplicate keys in unique indexes: no server starts from a snapshot with duplicates.

Tasks write an 8-byte hash of the key for each row and unique index. If all hashes differ, so do all keys, and
the check ends. Otherwise, the rows with equal hashes are read again, and their keys are compared. Indexes are
checked one at a time, with 8 bytes of memory per row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from iproto_server.codec import msgpack as codec
from iproto_server.storage.xlog import XlogReader
from pyspark_tarantool.sink.snapshot_parts import Hashes, Part, UniqueKeys, hashes_of
from pyspark_tarantool.source.errors import SourceError, shortened
from pyspark_tarantool.source.io.filesystem import locate, open_file
from pyspark_tarantool.source.schema.definitions import SpaceDefinition


def refuse_duplicates(space: SpaceDefinition, parts: Sequence[Part]) -> None:
    """Refuse rows that share a key in a unique index.

    Parameters:
        space: The space.
        parts: The rows.

    Raises:
        SourceError: If two rows do; the message has the index and one of the rows.
        OSError: If the parts cannot be read.
    """
    for unique in UniqueKeys.of(space):
        suspects = _repeated([_read(part.keys_uri(unique.index.id)) for part in parts])
        if len(suspects):
            _compare(space, unique, parts, suspects)


def _read(uri: str) -> Hashes:
    filesystem, path = locate(uri)
    with filesystem.open_input_stream(path) as file:
        return np.frombuffer(file.read(), np.uint64)


def _repeated(hashes: Iterable[Hashes]) -> Hashes:
    """The hashes that occur more than once."""
    together = np.concatenate([np.empty(0, np.uint64), *hashes])
    together.sort()
    return np.unique(together[1:][together[1:] == together[:-1]])


def _compare(space: SpaceDefinition, unique: UniqueKeys, parts: Sequence[Part], suspects: Hashes) -> None:
    """Compare the keys with equal hashes."""
    seen: set[bytes] = set()
    for tuples in _tuples(parts):
        keys: list[bytes] = []
        owners: list[list[Any]] = []
        for fields in map(codec.unpack, tuples):
            found = unique.keys(fields, space.primary.extract(fields))
            keys += found
            owners += [fields] * len(found)
        for position in np.flatnonzero(np.isin(hashes_of(keys), suspects)):
            key = keys[position]
            if key in seen:
                raise SourceError(
                    f"two rows have the same key in the unique index '{unique.index.name}' of space "
                    f"'{space.name}'; one is {shortened(owners[position], 200)}: df.dropDuplicates keeps one"
                )
            seen.add(key)


def _tuples(parts: Sequence[Part]) -> Iterator[list[bytes]]:
    """The packed tuples of parts, one block at a time."""
    for part in parts:
        with XlogReader(open_file(part.uri), part.uri) as reader:
            for block in reader.blocks():
                yield [row.tuple_raw for row in reader.rows(block) if row.tuple_raw is not None]
