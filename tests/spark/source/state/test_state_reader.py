"""What states are made of, and what is said when there are none."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import EqualTo

from iproto_server import Tuple
from iproto_server.codec import msgpack as codec
from iproto_server.storage.errors import LogGapError, XlogError
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import RowType, XlogReader, update_body
from iproto_server.storage.xlog.block import MARKER_SIZE
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.state import folded_logs, state_reader
from tests.spark.source.chronicle import SPACE, START, STEP, Chronicle
from tests.spark.source.reading import Read
from tests.spark.source.states import packed, reader, small_pieces, state, tasks_read_logs
from tests.storage.databases import save
from tests.storage.files import insertion


@pytest.fixture(autouse=True)
def pieces() -> Iterator[None]:
    with small_pieces():
        yield


@pytest.fixture(params=["the driver reads the logs", "the tasks read the logs"])
def log_reader(request: pytest.FixtureRequest) -> Iterator[None]:
    with ExitStack() as stack:
        if request.param == "the tasks read the logs":
            stack.enter_context(tasks_read_logs())
        yield


@pytest.fixture
def chronicle(tmp_path: Path) -> Chronicle:
    """A database with a snapshot of the rows 0 to 9."""
    chronicle = Chronicle(tmp_path)
    put(chronicle, *range(10))
    chronicle.snapshot()
    chronicle.rotate()
    return chronicle


def put(chronicle: Chronicle, *keys: int, member: int = 1) -> None:
    for key in keys:
        chronicle.commit(chronicle.replace(key, "text", key), member=member)


def logs(chronicle: Chronicle) -> list[Path]:
    return sorted(chronicle.directory.glob("*.xlog"))


def ids(path: Path, **options: object) -> list[int]:
    return sorted(row[0] for row in state(path, "t", **options))


def row_of(found: Tuple | None) -> list[Any]:
    assert found is not None
    return list(found)


def damage(path: Path, *, block: int) -> int:
    """Spoil a block of a file; answers where it begins."""
    with XlogReader.open(path) as file:
        found = list(file.blocks())[block]
    data = bytearray(path.read_bytes())
    data[found.end - 1] ^= 0xFF
    path.write_bytes(data)
    return found.start


@pytest.mark.parametrize(("share", "tasks"), [(1, 4), (10**6, 1)])
def test_logs_alone_are_shared_only_if_they_are_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: int, tasks: int
) -> None:
    """Each task has to read all of them."""
    chronicle = Chronicle(tmp_path)
    chronicle.snapshot()
    put(chronicle, *range(100))
    monkeypatch.setattr(state_reader, "_LOG_SHARE", share)
    with tasks_read_logs():
        assert len(reader(tmp_path, "t", partition_bytes=1000).partitions()) == tasks
    assert ids(tmp_path, partition_bytes=1000) == list(range(100))


class TestLogsReadByTheDriver:
    """Their changes are sent to the tasks, which read parts of the snapshot only."""

    def test_no_task_reads_them(self, chronicle: Chronicle) -> None:
        put(chronicle, *range(5, 60))
        made = reader(chronicle.directory, "t", partition_bytes=50)
        tasks = made.partitions()
        assert len(tasks) > 4
        for log in logs(chronicle):
            log.unlink()
        rows = [int(row.as_py()) for task in tasks for batch in made.read(task) for row in batch.column("id")]
        assert sorted(rows) == list(range(60))

    def test_tasks_that_were_put_and_acknowledged_leave_nothing(self, chronicle: Chronicle) -> None:
        for key in range(10, 500):
            chronicle.commit(chronicle.insert(key, "text", key))
            chronicle.commit(chronicle.delete(key))
        chronicle.commit(chronicle.insert(500, "text", 500), chronicle.delete(3))
        made = reader(chronicle.directory, "t", partition_bytes=50)
        first, *_ = made.partitions()
        assert folded_logs.unpack(first.value.logs.packed_keys) == ({1: codec.pack(3)}, {})
        assert ids(chronicle.directory, partition_bytes=50) == [0, 1, 2, *range(4, 10), 500]

    @pytest.mark.parametrize(
        "limit", [("FOLDED_KEYS", 50), ("FOLDED_BYTES", 200), ("SENT_BYTES", 100)], ids=lambda limit: limit[0]
    )
    def test_changes_that_are_too_many_are_not_sent(
        self, chronicle: Chronicle, monkeypatch: pytest.MonkeyPatch, limit: tuple[str, int]
    ) -> None:
        put(chronicle, *range(5, 60))
        before = len(reader(chronicle.directory, "t", partition_bytes=50).partitions())
        monkeypatch.setattr(folded_logs, *limit)
        tasks = reader(chronicle.directory, "t", partition_bytes=50).partitions()
        assert 1 < len(tasks) < before
        assert all(task.value.logs is None for task in tasks)
        assert ids(chronicle.directory, partition_bytes=50) == list(range(60))

    def test_updates_of_the_snapshot_that_are_too_many_are_not_sent(
        self, chronicle: Chronicle, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each task would get all of them."""
        monkeypatch.setattr(folded_logs, "WAITING_OPERATIONS", 3)
        for key, are_sent in ((1, True), (2, True), (2, True), (3, False)):
            chronicle.commit(chronicle.update([key], ["+", 2, 5]))
            tasks = reader(chronicle.directory, "t", partition_bytes=50).partitions()
            assert all((task.value.logs is not None) == are_sent for task in tasks)
            assert packed(chronicle.directory, "t", partition_bytes=50) == chronicle.rows


class TestWhatThereIs:
    def test_a_snapshot_alone(self, chronicle: Chronicle) -> None:
        for log in logs(chronicle):
            log.unlink()
        assert packed(chronicle.directory, "t") == chronicle.rows
        assert packed(chronicle.directory, "t", mode="at_lsn", lsn=10) == chronicle.rows
        assert packed(chronicle.directory, "t", mode="at_time", time=chronicle.time) == chronicle.rows

    def test_logs_alone_that_go_back_to_the_beginning(self, tmp_path: Path) -> None:
        chronicle = Chronicle(tmp_path)
        for space in (280, 288):
            rows = [list(row) for row in chronicle.box.space[space].select([SPACE])]
            chronicle.commit(*(insertion(space, *row) for row in rows))
        put(chronicle, 1, 2)
        chronicle.rotate()
        chronicle.commit(chronicle.update([1], ["+", 2, 5]), chronicle.delete(2))
        for size in (0, 100):
            assert packed(tmp_path, "t", partition_bytes=size) == chronicle.rows
            assert ids(tmp_path, mode="at_lsn", lsn=4, partition_bytes=size) == [1, 2]
        with pytest.raises(SourceError, match="there is no space 't': there are only system spaces"):
            state(tmp_path, "t", mode="at_time", time=START + STEP / 2)

    def test_the_space_is_that_of_the_moment(self, chronicle: Chronicle) -> None:
        row = row_of(chronicle.box.space[280].get(SPACE))
        row[6] = [*row[6], {"name": "added", "type": "string", "is_nullable": True}]
        chronicle.commit((RowType.REPLACE, insertion(280, *row)[1]))
        put(chronicle, 10)
        assert "added" in reader(chronicle.directory, "t")._columns.schema.names
        then = reader(chronicle.directory, "t", mode="at_lsn", lsn=10)
        assert "added" not in then._columns.schema.names

    @pytest.mark.usefixtures("log_reader")
    def test_large_logs_are_shared(self, chronicle: Chronicle) -> None:
        put(chronicle, *range(5, 60))
        made = reader(chronicle.directory, "t", partition_bytes=400)
        shares = [sum(batch.num_rows for batch in made.read(task)) for task in made.partitions()]
        assert len(shares) >= 4
        assert sum(shares) == 60
        assert min(sorted(shares)[-4:]) > 5

    def test_transactions_that_have_not_ended_do_not_count(self, chronicle: Chronicle) -> None:
        put(chronicle, 10)
        log = logs(chronicle)[-1]
        before = log.stat().st_size
        chronicle.commit(chronicle.replace(11, "", 0), chronicle.delete(1), blocks=2)
        with XlogReader.open(log) as file:
            end = list(file.blocks())[-1].start
        assert end > before
        log.write_bytes(log.read_bytes()[:end])
        assert ids(chronicle.directory) == list(range(11))

    def test_rows_behind_the_beginning_of_the_next_log_do_not_count(self, chronicle: Chronicle) -> None:
        put(chronicle, 10, 11)
        chronicle.rotate()
        chronicle.clock[1] -= 1
        chronicle._log_clock = VClock({1: 10})
        put(chronicle, 12)
        assert ids(chronicle.directory) == [*range(11), 12]

    def test_filters_of_the_key(self, tmp_path: Path) -> None:
        chronicle = Chronicle(tmp_path, types=("unsigned", "string", "number"))
        put(chronicle, 1, 2, 3)
        chronicle.snapshot()
        chronicle.rotate()
        put(chronicle, 3, 4)
        for key in (2, 3, 5):
            read = Read(tmp_path, filters=(EqualTo(("id",), key),), space="t", unsigned="bigint")
            assert not read.unhandled
            assert read.column("id") == [key] * (key < 5)


class TestMoments:
    def test_a_number_needs_a_single_writer(self, chronicle: Chronicle) -> None:
        put(chronicle, 10)
        put(chronicle, 11, member=2)
        expected = (
            'the option "lsn" is a number, but the members 1 and 2 have written: '
            "give a vector clock, {1: …, 2: …}"
        )
        with pytest.raises(SourceError, match=re.escape(expected)):
            state(chronicle.directory, "t", mode="at_lsn", lsn=20)
        assert ids(chronicle.directory, mode="at_lsn", lsn="{1: 11}") == list(range(11))
        assert ids(chronicle.directory, mode="at_lsn", lsn="{1: 10, 2: 1}") == [*range(10), 11]

    def test_before_the_first_snapshot(self, chronicle: Chronicle) -> None:
        logs(chronicle)[0].unlink()
        put(chronicle, 10)
        with pytest.raises(SourceError, match=r"LSN 3: the earliest available state is \{1: 10\}"):
            state(chronicle.directory, "t", mode="at_lsn", lsn=3)
        with pytest.raises(SourceError, match=r"2023-.*:50.*: the earliest available state is 2023-"):
            state(chronicle.directory, "t", mode="at_time", time=START + 3 * STEP)

    def test_a_snapshot_with_the_timestamp_of_another_is_not_taken_too_early(self, tmp_path: Path) -> None:
        """All snapshots of one run of Tarantool have the timestamp of the first one."""
        chronicle = Chronicle(tmp_path)
        put(chronicle, 0)
        stamp = chronicle.time
        chronicle.snapshot()
        chronicle.rotate()
        put(chronicle, 1, 2)
        chronicle.snapshot(stamp)
        chronicle.rotate()
        put(chronicle, 3)
        assert ids(tmp_path, mode="at_time", time=stamp + 1) == [0]
        assert ids(tmp_path, mode="at_time", time=stamp + STEP + 1) == [0, 1]
        assert ids(tmp_path, mode="at_time", time=stamp + 2 * STEP + 1) == [0, 1, 2]

    def test_logs_that_are_missing_elsewhere_do_not_matter(self, chronicle: Chronicle) -> None:
        put(chronicle, 10)
        chronicle.rotate()
        put(chronicle, 11)
        chronicle.rotate()
        put(chronicle, 12)
        chronicle.snapshot()
        chronicle.rotate()
        put(chronicle, 13)
        logs(chronicle)[2].unlink()
        assert ids(chronicle.directory) == list(range(14))
        assert ids(chronicle.directory, mode="at_lsn", lsn=13) == list(range(13))
        for lsn in (11, 12):
            with pytest.raises((LogGapError, SourceError), match=r"(a log is|rows are) missing"):
                state(chronicle.directory, "t", mode="at_lsn", lsn=lsn)


@pytest.mark.usefixtures("log_reader")
class TestGapsAndDamage:
    def test_a_missing_log(self, chronicle: Chronicle) -> None:
        for key in (10, 11, 12):
            put(chronicle, key)
            chronicle.rotate()
        logs(chronicle)[2].unlink()
        with pytest.raises(LogGapError, match="a log is missing"):
            state(chronicle.directory, "t")

    def test_a_missing_row(self, chronicle: Chronicle) -> None:
        put(chronicle, 10)
        chronicle.clock[1] += 1
        put(chronicle, 12)
        expected = r"xlog, block at offset \d+: rows are missing between 11 and 13 of the member 1"
        with pytest.raises(LogGapError, match=expected):
            state(chronicle.directory, "t")

    @pytest.mark.parametrize("partition_bytes", [0, 200])
    def test_damage_in_a_log(self, chronicle: Chronicle, tmp_path: Path, partition_bytes: int) -> None:
        put(chronicle, *range(10, 20))
        chronicle.rotate()
        put(chronicle, *range(20, 30))
        chronicle.rotate()
        log = logs(chronicle)[1]
        offset = damage(log, block=4)
        with pytest.raises(XlogError, match=f"wrong checksum of a block at offset {offset}"):
            state(chronicle.directory, "t", partition_bytes=partition_bytes)
        bad = tmp_path / "bad"
        options = {"damaged": "skip", "bad_records_path": bad, "partition_bytes": partition_bytes}
        assert ids(chronicle.directory, **options) == [key for key in range(30) if key != 14]
        (report,) = bad.iterdir()
        (line,) = map(json.loads, report.read_text().splitlines())
        assert (line["file"], line["offset"]) == (str(log), offset)

    def test_damage_in_the_snapshot(self, chronicle: Chronicle) -> None:
        put(chronicle, 10)
        (snapshot,) = chronicle.directory.glob("*.snap")
        offset = damage(snapshot, block=-1)
        with pytest.raises(XlogError, match=f"at offset {offset}"):
            state(chronicle.directory, "t", partition_bytes=200)
        left = ids(chronicle.directory, damaged="skip", partition_bytes=200)
        assert 10 in left
        assert 0 < len(left) < 11

    def test_a_torn_tail_is_no_damage(self, chronicle: Chronicle) -> None:
        put(chronicle, 10, 11)
        log = logs(chronicle)[-1]
        log.write_bytes(log.read_bytes()[:-MARKER_SIZE])
        assert ids(chronicle.directory) == list(range(11))

    def test_an_update_that_does_not_fit(self, chronicle: Chronicle) -> None:
        chronicle.commit(insertion(513, 1))
        chronicle.make = lambda row: None  # type: ignore[method-assign]
        chronicle.commit(chronicle.update([1], ["+", 1, 1]))
        expected = "row 12 of the member 1, space 't': Argument type in operation"
        with pytest.raises(SourceError, match=expected):
            state(chronicle.directory, "t")
        assert ids(chronicle.directory, damaged="skip") == list(range(10))

    def test_a_member_that_there_cannot_be(self, chronicle: Chronicle) -> None:
        put(chronicle, 10, member=99)
        with pytest.raises(SourceError, match="has a row of member 99, but member ids are below 32"):
            state(chronicle.directory, "t")

    def test_what_was_rolled_back_by_others_is_not_understood(self, chronicle: Chronicle) -> None:
        chronicle.commit((RowType.ROLLBACK, b"\x82\x02\x01\x03\x0a"))
        with pytest.raises(SourceError, match="rolled-back synchronous transactions are not supported"):
            state(chronicle.directory, "t")


@pytest.mark.usefixtures("log_reader")
class TestIntricateChanges:
    """Those that one task makes in a database."""

    @pytest.fixture(autouse=True)
    def with_all_that_defines_spaces(self, chronicle: Chronicle) -> None:
        for snapshot in chronicle.directory.glob("*.snap"):
            snapshot.unlink()
        save(chronicle.box, chronicle.directory, chronicle.clock)

    def test_an_update_by_another_index(self, chronicle: Chronicle) -> None:
        space = chronicle.box.space.t
        space.create_index("number", parts=[(2, "unsigned")])
        row = row_of(chronicle.box.space[288].get([SPACE, 1]))
        chronicle.commit(insertion(288, *row))
        put(chronicle, 10)
        body = update_body(SPACE, b"\x91\x03", b"\x91\x93\xa1=\x01\xa3new", index_id=1)
        chronicle.make = lambda row: None  # type: ignore[method-assign]
        chronicle.commit((RowType.UPDATE, body))
        for size in (0, 300):
            rows = state(chronicle.directory, "t", partition_bytes=size)
            assert [3, "new", 3] in rows
            assert len(rows) == 11
        chronicle.clock[1] += 1
        chronicle.commit(chronicle.delete(1))
        with pytest.raises(LogGapError, match="rows are missing between"):
            state(chronicle.directory, "t")

    def test_another_primary_key(self, chronicle: Chronicle) -> None:
        put(chronicle, 10)
        row = row_of(chronicle.box.space[288].get([SPACE, 0]))
        chronicle.box.space.t.index.primary.alter(parts=[(2, "unsigned")])
        row[5] = [[2, "unsigned"]]
        chronicle.commit((RowType.REPLACE, insertion(288, *row)[1]))
        chronicle.commit(chronicle.replace(99, "by its number", 4))
        chronicle.commit(chronicle.delete(3))
        for size in (0, 300):
            assert packed(chronicle.directory, "t", partition_bytes=size) == chronicle.rows
        damage(logs(chronicle)[-1], block=0)
        with pytest.raises(XlogError, match="wrong checksum"):
            state(chronicle.directory, "t")
        bad = chronicle.directory / "bad"
        options = {"damaged": "skip", "bad_records_path": bad}
        assert packed(chronicle.directory, "t", **options) == [
            raw for raw in chronicle.rows if codec.unpack(raw)[0] != 10
        ]
        (report,) = bad.iterdir()
        assert len(report.read_text().splitlines()) == 1

    def test_a_gap_before_another_primary_key(self, chronicle: Chronicle) -> None:
        chronicle.clock[1] += 1
        row = row_of(chronicle.box.space[288].get([SPACE, 0]))
        chronicle.commit((RowType.REPLACE, insertion(288, *row)[1]))
        with pytest.raises(LogGapError, match="rows are missing between"):
            state(chronicle.directory, "t")

    def test_fields_with_other_names(self, chronicle: Chronicle) -> None:
        row = row_of(chronicle.box.space[280].get(SPACE))
        names = row[6]
        chronicle.commit(chronicle.update([1], ["+", "number", 1]))
        row[6] = [names[0], names[2], names[1]]
        chronicle.commit((RowType.REPLACE, insertion(280, *row)[1]))
        chronicle.box.space.t.format(row[6])
        chronicle.commit(chronicle.update([2], ["=", "number", "the second field"]))
        for size in (0, 300):
            assert packed(chronicle.directory, "t", partition_bytes=size) == chronicle.rows
