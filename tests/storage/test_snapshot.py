"""Snapshots: written whole or not at all."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from iproto_server.codec import msgpack as codec
from iproto_server.storage.directory import find_snapshots
from iproto_server.storage.errors import TruncatedFileError, XlogError
from iproto_server.storage.snapshot import SnapshotWriter, read_snapshot
from iproto_server.storage.xlog import (
    FileType,
    OnDamage,
    Row,
    RowType,
    XlogReader,
    XlogWriter,
    decode_rows,
    encode_row,
)
from tests.storage.files import TIMESTAMP, header, reader_of, rows_in

HEADER = header(FileType.SNAPSHOT, {1: 42})
NAME = "00000000000000000042.snap"


def tuples_in(path: Path, on_damage: OnDamage = OnDamage.STOP) -> list[tuple[int, bytes]]:
    """All tuples of a snapshot."""
    with XlogReader.open(path, on_damage) as reader:
        return [pair for batch in read_snapshot(reader) for pair in batch]


def some_tuples(count: int) -> list[bytes]:
    """Tuples that differ and do not compress well."""
    return [codec.pack([number, f"{number * 2654435761 % 2**32:x}" * 4]) for number in range(count)]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    tuples = some_tuples(20000)
    for compress in (True, False):
        with SnapshotWriter(tmp_path, HEADER, TIMESTAMP, compress=compress) as writer:
            writer.write(272, tuples[:3])
            writer.write(512, iter(tuples[3:]))
            writer.write(513, [])
        assert writer.path == tmp_path / NAME
        assert writer.rows == len(tuples)
        assert writer.size == writer.path.stat().st_size
        expected = [(272, raw) for raw in tuples[:3]] + [(512, raw) for raw in tuples[3:]]
        assert tuples_in(writer.path) == expected
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def test_rows_are_numbered_from_zero_and_have_one_timestamp(tmp_path: Path) -> None:
    with SnapshotWriter(tmp_path, HEADER, TIMESTAMP) as writer:
        writer.write(512, some_tuples(300))
        writer.write(513, some_tuples(2), group_id=1)
    rows = rows_in(writer.path)
    assert [row.lsn for row in rows] == list(range(302))
    assert {(row.type, row.timestamp, row.replica_id) for row in rows} == {(RowType.INSERT, TIMESTAMP, 0)}
    assert [row.group_id for row in rows] == [0] * 300 + [1] * 2


def test_a_local_space_may_come_first(tmp_path: Path) -> None:
    with SnapshotWriter(tmp_path, HEADER, TIMESTAMP) as writer:
        writer.write(512, some_tuples(2), group_id=1)
    assert [(row.lsn, row.group_id) for row in rows_in(writer.path)] == [(0, 1), (1, 1)]


def test_a_block_ends_with_the_tuple_that_fills_it(tmp_path: Path) -> None:
    sizes = [10, 200_000, 10, 3_000_000, 2_000_000, 10, 70_000, 70_000, 10]
    chance = random.Random(1)
    tuples = [codec.pack([number, chance.randbytes(size)]) for number, size in enumerate(sizes)]
    with SnapshotWriter(tmp_path, HEADER, TIMESTAMP) as writer:
        writer.write(512, tuples)
    assert tuples_in(writer.path) == [(512, raw) for raw in tuples]
    with XlogReader.open(writer.path) as reader:
        counts = [len(decode_rows(block.payload)) for block in reader.blocks()]
    assert counts == [2, 2, 1, 4]


def test_it_has_no_name_before_it_is_complete(tmp_path: Path) -> None:
    writer = SnapshotWriter(tmp_path, HEADER, TIMESTAMP)
    writer.write(512, some_tuples(5000))
    assert [path.name for path in tmp_path.iterdir()] == [NAME + ".inprogress"]
    assert find_snapshots(tmp_path).newest is None
    writer.commit()
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def test_one_that_fails_leaves_nothing_but_the_older_one(tmp_path: Path) -> None:
    def failing() -> list[bytes]:
        raise RuntimeError("no more tuples")

    with SnapshotWriter(tmp_path, HEADER, TIMESTAMP) as writer:
        writer.write(512, some_tuples(1))
    with pytest.raises(RuntimeError), SnapshotWriter(tmp_path, HEADER, TIMESTAMP) as writer:
        writer.write(512, some_tuples(5000))
        writer.write(513, failing())
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
    assert tuples_in(tmp_path / NAME) == [(512, some_tuples(1)[0])]


def test_one_that_cannot_be_named_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    with pytest.raises(OSError, match=NAME), SnapshotWriter(tmp_path, HEADER, TIMESTAMP) as writer:
        writer.write(512, some_tuples(1))
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def test_what_a_killed_server_left_is_written_over(tmp_path: Path) -> None:
    (tmp_path / (NAME + ".inprogress")).write_bytes(b"x" * 10000)
    with SnapshotWriter(tmp_path, HEADER, TIMESTAMP) as writer:
        writer.write(512, some_tuples(1))
    assert len(tuples_in(writer.path)) == 1


def test_one_without_end_marker_is_not_complete(tmp_path: Path) -> None:
    with SnapshotWriter(tmp_path, HEADER, TIMESTAMP) as writer:
        writer.write(512, some_tuples(1))
    data = writer.path.read_bytes()
    for size in range(len(HEADER.encode()), len(data)):
        with pytest.raises(TruncatedFileError):
            list(read_snapshot(reader_of(data[:size])))
        with pytest.raises(TruncatedFileError, match="without end marker"):
            list(read_snapshot(reader_of(data[:size], OnDamage.CUT_TAIL)))


def test_damage_names_the_file_and_the_offset_or_is_skipped(tmp_path: Path) -> None:
    with SnapshotWriter(tmp_path, HEADER, TIMESTAMP) as writer:
        writer.write(512, some_tuples(20000))
    with XlogReader.open(writer.path) as reader:
        second = list(reader.blocks())[1]
    data = bytearray(writer.path.read_bytes())
    data[second.start + 50] ^= 1
    writer.path.write_bytes(data)
    with pytest.raises(XlogError, match=f"{writer.path}: wrong checksum of a block at offset {second.start}"):
        tuples_in(writer.path)
    lost = len(reader_of(bytes(writer.path.read_bytes()), OnDamage.SKIP).rows(second))
    assert len(tuples_in(writer.path, OnDamage.SKIP)) == 20000 - lost


def test_rows_that_are_about_the_replica_set_are_passed_over(tmp_path: Path) -> None:
    """Later versions end a snapshot with the state of elections."""
    path = tmp_path / NAME
    with path.open("wb", buffering=0) as file:
        writer = XlogWriter.create(file, HEADER)
        insertion = Row(RowType.INSERT, 1, body=b"\x82\x10\x05\x21\x91\x01", tsn=1)
        writer.write([encode_row(insertion) + encode_row(Row(RowType.RAFT, 2, body=b"\x81\x00\x01", tsn=2))])
        writer.end()
    assert tuples_in(path) == [(5, b"\x91\x01")]
