"""States read without Spark: the reader asked as Spark asks it, each task with a copy of its own."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iproto_server.codec import msgpack as codec
from iproto_server.storage import snapshot
from pyspark_tarantool.source.arrow.columns import RAW
from pyspark_tarantool.source.io import byte_ranges
from pyspark_tarantool.source.options import ReadOptions
from pyspark_tarantool.source.state import folded_logs, state_reader
from pyspark_tarantool.source.state.state_files import FoundState
from pyspark_tarantool.source.state.state_reader import StateReader, state_schema


@contextmanager
def small_pieces() -> Iterator[None]:
    """Let ranges of files be as small as asked for, and blocks of snapshots so that there are many of them.

    Files need not outlive the machine.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(byte_ranges, "_SMALLEST", 1)
        patch.setattr(byte_ranges, "_PART_BYTES", 200)
        patch.setattr(byte_ranges, "_TOGETHER", 200)
        patch.setattr(state_reader, "_LOG_SHARE", 1)
        patch.setattr(snapshot, "BLOCK_SIZE", 100)
        for name in ("fsync", "fdatasync"):
            patch.setattr(os, name, lambda descriptor: None)
        yield


def reader(path: Path, space: str | int, **options: object) -> StateReader:
    """A reader, as the data source makes it."""
    given = {"path": str(path), "space": str(space), "raw": "true"}
    parsed = ReadOptions.parse(given | {name: str(value) for name, value in options.items()})
    found = FoundState.find(parsed)
    return StateReader(parsed, state_schema(parsed, found.state), found.state)


def batches(path: Path, space: str | int, **options: object) -> list[pa.RecordBatch]:
    """What all tasks give out."""
    made = reader(path, space, **options)
    shipped = [pickle.loads(pickle.dumps((made, partition))) for partition in made.partitions()]
    return [batch for copy, partition in shipped for batch in copy.read(partition)]


@contextmanager
def tasks_read_logs() -> Iterator[None]:
    """Let each task read the logs, as if their changes were too many to be sent to it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folded_logs, "FOLDED_KEYS", -1)
        yield


def packed(path: Path, space: str | int, **options: object) -> list[bytes]:
    """The packed tuples of a state, sorted; the same whether the driver or the tasks read the logs."""
    found = _packed(path, space, **options)
    if "bad_records_path" not in options:  # each reading adds a report
        with tasks_read_logs():
            assert _packed(path, space, **options) == found
    return found


def _packed(path: Path, space: str | int, **options: object) -> list[bytes]:
    return sorted(raw for batch in batches(path, space, **options) for raw in batch.column(RAW).to_pylist())


def state(path: Path, space: str | int, **options: object) -> list[Any]:
    """The tuples of a state, in the order of their packed bytes."""
    return list(map(codec.unpack, packed(path, space, **options)))
