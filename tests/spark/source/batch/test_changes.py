"""The columns of changes: every kind of row that logs have, one by one and many at once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import LongType, StructType

from iproto_server.codec import msgpack as codec
from iproto_server.storage.directory import file_name
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import (
    Block,
    FileType,
    RowEncoder,
    RowType,
    XlogWriter,
    decode_rows,
)
from pyspark_tarantool.data_source import TarantoolDataSource
from pyspark_tarantool.source.decode.log_rows import _CELLS, _NUMBERS, LogRows
from pyspark_tarantool.source.decode.packed import Buffer
from pyspark_tarantool.source.decode.row_scanner import plain_rows, read_rows
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.io.data_files import DataFiles
from pyspark_tarantool.source.options import OnDamaged, ReadOptions
from pyspark_tarantool.source.schema.definitions import SpaceDefinition
from pyspark_tarantool.source.schema.system_rows import read_definitions
from tests.spark.source.reading import Read
from tests.storage.databases import JOBS, jobs_box, save
from tests.storage.files import (
    TIMESTAMP,
    Request,
    blocks_of,
    deletion,
    header,
    insertion,
    replacement,
    update,
    upsert,
)

DELETED: Final = deletion(JOBS, 3)
REQUESTS: Final[Sequence[Request]] = (
    insertion(JOBS, 1, "a", "more"),
    replacement(JOBS, 1, "b"),
    update(JOBS, [1], [["=", 2, "c"], ["+", "n", 5], [":", 2, 3, 1, "x"], ["-", -1, 1]], index_base=1),
    deletion(JOBS, 1),
    upsert(JOBS, [2, "d"], [["=", 1, "e"]]),
    insertion(700, "of a space that nobody knows"),
)


def write(directory: Path, transactions: Iterable[bytes]) -> None:
    """A log behind an empty snapshot."""
    save(jobs_box(), directory, {})
    with (directory / file_name(FileType.LOG, 0)).open("wb", buffering=0) as file:
        writer = XlogWriter.create(file, header(FileType.LOG, VClock()))
        writer.write(blocks_of(transactions))
        writer.end()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """All kinds of rows: alone, and three of them as a transaction."""
    encoder = RowEncoder()
    alone = [encoder.transaction(lsn, TIMESTAMP + lsn, (one,)) for lsn, one in enumerate(REQUESTS, 1)]
    write(tmp_path, [*alone, encoder.transaction(7, TIMESTAMP + 7, REQUESTS[:3])])
    return tmp_path


def texts(read: Read, name: str) -> list[Any]:
    return [None if text is None else json.loads(text) for text in read.column(name)]


class TestColumns:
    def test_of_all_spaces_are_json(self, directory: Path) -> None:
        read = Read(directory, mode="changes")
        assert read.column("lsn") == list(range(1, 10))
        assert read.column("transaction") == [1, 2, 3, 4, 5, 6, 7, 7, 7]
        assert [moment.timestamp() for moment in read.column("timestamp")[:2]] == [
            TIMESTAMP + 1,
            TIMESTAMP + 2,
        ]
        assert set(read.column("replica_id")) == {1}
        assert read.column("space_id") == [JOBS] * 5 + [700] + [JOBS] * 3
        assert read.column("space") == ["jobs"] * 5 + [None] + ["jobs"] * 3
        kinds = ["INSERT", "REPLACE", "UPDATE", "DELETE", "UPSERT", "INSERT", "INSERT", "REPLACE", "UPDATE"]
        assert read.column("operation") == kinds
        assert set(read.column("index_id")) == {0}
        assert texts(read, "key") == [[1], [1], [1], [1], [2], None, [1], [1], [1]]
        after = [[1, "a", "more"], [1, "b"], None, None, None, ["of a space that nobody knows"]]
        assert texts(read, "after") == after + after[:3]
        assert read.column("before") == [None] * 9
        assert texts(read, "upsert_tuple") == [None] * 4 + [[2, "d"]] + [None] * 4

    def test_of_operations_count_fields_from_0(self, directory: Path) -> None:
        told = texts(Read(directory, mode="changes"), "operations")
        assert told[2] == [["=", 1, "c"], ["+", "n", 5], [":", 1, 2, 1, "x"], ["-", -1, 1]]
        assert told[4] == [["=", 1, "e"]]
        assert told[0] is told[3] is None

    def test_of_one_space_are_structs(self, directory: Path) -> None:
        read = Read(directory, mode="changes", space="jobs", unsigned="bigint")
        assert read.column("key") == [{"id": 1}] * 4 + [{"id": 2}] + [{"id": 1}] * 3
        inserted = {"id": 1, "status": "a", "_extra": '["more"]'}
        replaced = {"id": 1, "status": "b", "_extra": None}
        assert read.column("after") == [inserted, replaced, None, None, None, inserted, replaced, None]

    def test_have_the_packed_values(self, directory: Path) -> None:
        read = Read(directory, mode="changes", raw="true")
        assert read.column("tuple_raw")[0] == codec.pack([1, "a", "more"])
        assert read.column("key_raw")[2:5] == [codec.pack([1]), codec.pack([1]), None]
        assert codec.unpack(read.column("operations_raw")[4]) == [["=", 1, "e"]]

    def test_are_those_that_the_user_wants(self, directory: Path) -> None:
        inner = StructType().add("id", LongType())
        wanted = StructType().add("after", inner).add("lsn", LongType())
        read = Read(directory, wanted, mode="changes", space="jobs")
        assert read.rows[:3] == [
            {"after": {"id": 1}, "lsn": 1},
            {"after": {"id": 1}, "lsn": 2},
            {"after": None, "lsn": 3},
        ]
        with pytest.raises(
            SourceError, match=r"^changes have no column 'when': there are lsn, timestamp, .*$"
        ):
            Read(directory, StructType().add("when", LongType()), mode="changes")
        with pytest.raises(
            SourceError, match=r"^the column 'space' of changes is of type string, not of type bigint$"
        ):
            Read(directory, StructType().add("space", LongType()), mode="changes")

    def test_of_rows_that_change_nothing_are_shown_if_asked_for(self, tmp_path: Path) -> None:
        nop = _nop(1)
        write(tmp_path, [nop, RowEncoder().transaction(2, TIMESTAMP, (REQUESTS[0],))])
        assert Read(tmp_path, mode="changes").column("lsn") == [2]
        read = Read(tmp_path, mode="changes", show_nop="true")
        assert read.column("operation") == ["NOP", "INSERT"]
        assert read.column("space_id")[0] is read.column("index_id")[0] is read.column("key")[0] is None

    def test_have_the_tuples_that_the_log_carries(self, tmp_path: Path) -> None:
        """A Tarantool with the option `wal_ext` logs the tuples before and after."""
        row = codec.pack({0: int(RowType.UPDATE), 2: 1, 3: 1, 4: TIMESTAMP})
        body = codec.pack({0x10: JOBS, 0x20: [1], 0x21: [["=", 1, "y"]], 0x2C: [1, "x"], 0x2D: [1, "y"]})
        write(tmp_path, [row + body])
        read = Read(tmp_path, mode="changes")
        assert (texts(read, "before"), texts(read, "after")) == ([[1, "x"]], [[1, "y"]])


def test_the_schema_tells_the_reader_what_the_space_is(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the logs are looked through once for that."""
    given = {"path": str(directory), "mode": "changes", "space": "jobs"}
    schema = TarantoolDataSource(given).schema()
    packed = schema.fields[0].metadata["tarantool.space"]
    assert SpaceDefinition.unpack(packed).fields == jobs_definition(directory).fields
    with pytest.raises(ValueError, match="invalid definition of a space"):
        SpaceDefinition.unpack("AAAA")
    monkeypatch.delattr("pyspark_tarantool.source.batch.changes_reader.read_system_rows")
    assert Read(directory, schema, mode="changes", space="jobs").column("lsn") == [1, 2, 3, 4, 5, 7, 8, 9]


def jobs_definition(directory: Path) -> SpaceDefinition:
    files = DataFiles.find(ReadOptions((str(directory),)))
    return read_definitions(files.newest_snapshot(), (), DamageHandler(OnDamaged.FAIL)).space("jobs")


def _nop(lsn: int) -> bytes:
    return codec.pack({0: int(RowType.NOP), 2: 1, 3: lsn, 4: TIMESTAMP})


requests = st.one_of(
    st.sampled_from(REQUESTS),
    st.builds(
        insertion,
        st.sampled_from([5, 200, 512, 70000]),
        st.integers(0, 2**64 - 1),
        st.text(),
        st.lists(st.text()),
    ),
    st.builds(deletion, st.just(512), st.text(), st.integers(0, 2**63)),
    # Tuples in which there are rows.
    st.builds(
        replacement,
        st.just(512),
        st.builds(lambda lsn: RowEncoder().transaction(lsn, TIMESTAMP, REQUESTS[:2]), st.integers(1, 2**40)),
    ),
)


@given(
    transactions=st.lists(st.lists(requests, min_size=1, max_size=4), min_size=1, max_size=8),
    first=st.sampled_from([1, 100, 250, 300, 65530, 2**32 - 3, 2**33]),
    items=st.integers(0, 3),
)
def test_rows_are_the_same_many_at_once_and_one_by_one(
    transactions: list[list[Request]], first: int, items: int
) -> None:
    """Whatever shapes they have, and whatever their tuples hold."""
    encoder = RowEncoder()
    packed = []
    for transaction in transactions:
        packed.append(encoder.transaction(first, TIMESTAMP + first % 7, transaction))
        first += len(transaction)
    blocks = [Block(0, 1, payload) for payload in packed]
    found = list(read_rows(blocks, "log", DamageHandler(OnDamaged.FAIL), items))
    expected = LogRows.of(decode_rows(b"".join(packed)))
    for name in _NUMBERS:
        assert (
            np.concatenate([getattr(rows, name) for rows in found]).tolist()
            == getattr(expected, name).tolist()
        )
    for name in _CELLS:
        assert [raw for rows in found for raw in getattr(rows, name).raws()] == getattr(expected, name).raws()
        if name != "operations":
            apart = [rows.taken_apart(getattr(rows, name), 2) for rows in found]
            expected_apart = expected.taken_apart(getattr(expected, name), 2)
            assert [count for each in apart for count in each.counts] == expected_apart.counts.tolist()
            for number in range(2):
                raws = [raw for each in apart for raw in each.item(number).raws()]
                assert raws == expected_apart.item(number).raws()


def test_usual_rows_are_read_many_at_once() -> None:
    """Those of the queues: our server logs what a change has made, and Tarantool logs updates."""
    encoder = RowEncoder()
    usual = [REQUESTS[number] for number in (0, 1, 3)] * 3 + [
        update(JOBS, [1], [["=", 2, "c"]], index_base=base) for base in (0, 1)
    ]
    payload = encoder.transaction(1000, TIMESTAMP, usual[:4]) + b"".join(
        encoder.transaction(1004 + number, TIMESTAMP, (one,)) for number, one in enumerate(usual)
    )
    rows = plain_rows(Buffer(payload))
    assert rows is not None
    assert len(rows) == len(usual) + 4
    assert plain_rows(Buffer(payload[:-1])) is None
    assert plain_rows(Buffer(payload, b"\0")) is None
    assert plain_rows(Buffer()) is None
