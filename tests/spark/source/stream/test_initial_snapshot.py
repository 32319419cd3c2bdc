"""Streams that begin with the rows of a snapshot: which rows, and which changes follow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadMaxBytes

from iproto_server.storage.directory import list_files
from iproto_server.storage.errors import XlogError
from iproto_server.storage.xlog import FileType
from pyspark_tarantool.source.errors import SourceError
from tests.spark.source.change_follower import ChangeFollower
from tests.spark.source.chronicle import SPACE, Chronicle
from tests.spark.source.states import small_pieces


@pytest.fixture
def chronicle(tmp_path: Path) -> Chronicle:
    """A database with three rows in its snapshot, and two changes in the log after it."""
    (tmp_path / "live").mkdir()
    database = Chronicle(tmp_path / "live")
    for number in range(3):
        database.commit(database.insert(number, "old", number))
    database.rotate()
    database.snapshot(timestamp=1_600_000_000.0)
    database.commit(database.replace(1, "new", 10))
    database.commit(database.delete(2))
    database.rotate()
    return database


def test_the_rows_of_the_snapshot_come_first_as_inserts(chronicle: Chronicle) -> None:
    """They have the snapshot's LSN and time, and no member; then come the changes after it."""
    query = ChangeFollower(chronicle.directory, space="t", starting="snapshot", unsigned="bigint")
    rows = query.follow()
    assert [(row["operation"], row["lsn"], row["transaction"], row["replica_id"]) for row in rows] == [
        *[("INSERT", 3, 3, 0)] * 3,
        ("REPLACE", 4, 4, 1),
        ("DELETE", 5, 5, 1),
    ]
    assert [row["key"]["id"] for row in rows] == [0, 1, 2, 1, 2]
    assert {row["timestamp"].timestamp() for row in rows[:3]} == {1_600_000_000.0}
    assert {(row["space"], row["space_id"]) for row in rows} == {("t", SPACE)}


def test_all_spaces_include_those_of_the_system(chronicle: Chronicle) -> None:
    """As the changes of all spaces do."""
    rows = ChangeFollower(chronicle.directory, starting="snapshot").follow()
    assert {"_space", "_index", "t"} <= {row["space"] for row in rows}
    assert {row["lsn"] for row in rows if row["replica_id"] == 0} == {3}
    assert [row["after"] for row in rows if row["space"] == "t"][:3] == [
        '[0,"old",0]',
        '[1,"old",1]',
        '[2,"old",2]',
    ]


@pytest.mark.parametrize("size", ["1", "50", "1g"])
def test_the_snapshot_may_take_several_batches(tmp_path: Path, size: str) -> None:
    """Each row is in one of them, whatever their size and that of the partitions."""
    with small_pieces():
        database = Chronicle(tmp_path)
        database.commit(*(database.insert(number, "x" * 20, number) for number in range(60)))
        database.rotate()
        database.snapshot()
        database.commit(database.insert(60, "y", 1))
        query = ChangeFollower(
            tmp_path, space="t", starting="snapshot", max_bytes_per_trigger=size, partition_bytes="40"
        )
        query.follow(restarts=True)
    assert sorted(int(row["key"]["id"]) for row in query.rows) == list(range(61))


def test_a_batch_that_is_tried_again_reads_the_same_snapshot(chronicle: Chronicle) -> None:
    """Though there is a newer one by then."""
    query = ChangeFollower(chronicle.directory, space="t", starting="snapshot")
    assert query.plan()
    chronicle.snapshot()
    query.restart()
    assert [row["lsn"] for row in query.follow()] == [3, 3, 3, 4, 5]


def test_a_snapshot_that_is_gone_is_an_error(chronicle: Chronicle) -> None:
    """In the task and after a restart; the sentence says what keeps it."""
    query = ChangeFollower(chronicle.directory, space="t", starting="snapshot")
    assert query.plan()
    parts = query.parts()
    chronicle.snapshot()
    list_files(chronicle.directory, FileType.SNAPSHOT)[0].unlink()
    with pytest.raises(SourceError, match=r"\.snap was removed.*hold_path"):
        query.read(parts)
    query.restart()
    with pytest.raises(SourceError, match=r"the snapshot 0*3\.snap was removed.*hold_path"):
        query.follow()


def test_logs_from_the_first_row_need_no_snapshot(tmp_path: Path) -> None:
    """They have all rows; others do not, so that the stream waits for a snapshot."""
    first, other = tmp_path / "first", tmp_path / "other"
    first.mkdir()
    other.mkdir()
    database = Chronicle(first)
    database.commit(database.insert(1, "a", 1))
    database.commit(database.insert(2, "a", 1))
    database.rotate()
    query = ChangeFollower(first, space=str(SPACE), tuples="json", starting="snapshot")
    assert [row["lsn"] for row in query.follow()] == [1, 2]
    later = Chronicle(other, clock={1: 7})
    later.commit(later.insert(3, "a", 1))
    later.rotate()
    waiting = ChangeFollower(other, space=str(SPACE), tuples="json", starting="snapshot")
    assert waiting.follow() == []
    waiting.restart()
    later.snapshot()
    assert [row["lsn"] for row in waiting.follow()] == [8]


def test_an_empty_directory_is_waited_for(tmp_path: Path) -> None:
    query = ChangeFollower(tmp_path, space=str(SPACE), tuples="json", starting="snapshot")
    assert query.follow() == []
    database = Chronicle(tmp_path, clock={1: 3})
    database.make_all(database.insert(1, "a", 1))
    database.snapshot()
    assert [row["lsn"] for row in query.follow()] == [3]


def test_available_now_has_the_snapshot_and_the_changes(chronicle: Chronicle) -> None:
    query = ChangeFollower(chronicle.directory, space="t", starting="snapshot")
    query.reader.prepareForTriggerAvailableNow()
    assert [row["lsn"] for row in query.follow()] == [3, 3, 3, 4, 5]


def test_damage_in_the_snapshot_is_an_error_or_skipped(chronicle: Chronicle) -> None:
    with small_pieces():
        path = chronicle.snapshot()
    list_files(chronicle.directory, FileType.SNAPSHOT)[0].unlink()
    data = bytearray(path.read_bytes())
    data[data.index(b"new")] ^= 1
    path.write_bytes(data)
    with pytest.raises(XlogError, match="wrong checksum of a block at offset"):
        ChangeFollower(chronicle.directory, space="t", starting="snapshot").follow()
    rows = ChangeFollower(chronicle.directory, space="t", starting="snapshot", damaged="skip").follow()
    assert [row["lsn"] for row in rows] == []


def test_a_checkpoint_with_a_malformed_place_is_refused(chronicle: Chronicle) -> None:
    query = ChangeFollower(chronicle.directory, space="t", starting="snapshot")
    place: Any
    for place in (7, {}, {"file": "x", "offset": "a", "size": 1}):
        with pytest.raises(SourceError, match="not one of this source"):
            query.reader.latestOffset({"vclock": {"1": 3}, "snapshot": place}, ReadMaxBytes(1))


# -- files that are held --


def test_held_files_outlast_checkpoints_while_the_first_batch_runs(
    chronicle: Chronicle, tmp_path: Path
) -> None:
    """Also if the query is started again; and they are given up once they were read."""
    held = tmp_path / "held"
    query = ChangeFollower(chronicle.directory, space="t", starting="snapshot", hold_path=str(held))
    assert query.plan()
    for number in range(3, 6):
        chronicle.commit(chronicle.insert(number, "later", number))
        chronicle.rotate()
        query.look_for_logs()
        chronicle.snapshot()
        for file_type in FileType:
            for path in list_files(chronicle.directory, file_type)[:-1]:
                path.unlink()
    query.restart()
    query.follow()
    assert [row["lsn"] for row in query.rows] == [3, 3, 3, 4, 5, 6, 7, 8]
    chronicle.commit(chronicle.insert(9, "last", 9))
    chronicle.rotate()
    query.follow()
    assert [path.name for path in sorted(held.glob("*.*og"))] == [f"{8:020}.xlog"]
    assert list(held.glob("*.snap")) == []


def test_new_logs_are_held_in_the_background(chronicle: Chronicle, tmp_path: Path) -> None:
    """Spark asks for nothing while a batch runs."""
    held = tmp_path / "held"
    query = ChangeFollower(chronicle.directory, space="t", starting="snapshot", hold_path=str(held))
    query.plan()
    chronicle.commit(chronicle.insert(5, "later", 5))
    chronicle.rotate()
    query.wait_for(lambda: (held / f"{5:020}.xlog").exists())
    query.reader.stop()


@pytest.mark.parametrize("place", ["the data's directory", "files of others", "a file", "another filesystem"])
def test_a_directory_for_held_files_has_to_be_its_own(
    chronicle: Chronicle, tmp_path: Path, place: str
) -> None:
    """Links are removed from it."""
    path = str(tmp_path / "held")
    if place == "the data's directory":
        path = str(chronicle.directory)
    elif place == "files of others":
        (tmp_path / "held").mkdir()
        (tmp_path / "held" / "x.xlog").touch()
    elif place == "a file":
        (tmp_path / "held").touch()
    else:
        path = "s3://bucket/held"
    with pytest.raises(SourceError, match="hold_path"):
        ChangeFollower(chronicle.directory, space="t", starting="snapshot", hold_path=path)


def test_offsets_are_json(chronicle: Chronicle) -> None:
    """The place in the snapshot, then the place in the logs."""
    query = ChangeFollower(chronicle.directory, space="t", starting="snapshot")
    query.follow()
    first, last = query.ends
    assert json.loads(json.dumps(first))["snapshot"]["file"] == f"{3:020}.snap"
    assert "snapshot" not in last
    assert last["vclock"] == {"1": 5}
