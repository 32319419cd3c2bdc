"""Recovery: snapshots and the logs behind them."""

from __future__ import annotations

import logging
import uuid
from pathlib import Path

import pytest

from iproto_server import Box
from iproto_server.codec import msgpack as codec
from iproto_server.storage.errors import LogGapError, StorageError, XlogError
from iproto_server.storage.recovery.bootstrap import bootstrap
from iproto_server.storage.recovery.recovery import recover
from iproto_server.storage.xlog import FileType, Row, RowType, XlogWriter, encode_row
from tests.storage.databases import (
    CLUSTER,
    JOBS,
    delete,
    insert,
    jobs,
    jobs_box,
    jobs_in,
    new_database,
    replace,
    save,
    start,
    update,
    write_log,
)
from tests.storage.files import INSTANCE, TIMESTAMP, header

OTHER = uuid.UUID("11111111-2222-4333-8444-555555555555")


class TestNothingThere:
    def test_is_told_and_leaves_the_box_alone(self, tmp_path: Path) -> None:
        box = jobs_box([1, "kept"])
        assert recover(box, tmp_path, tmp_path) is None
        assert jobs_in(box) == {1: "kept"}

    def test_logs_without_a_snapshot_are_not_nothing(self, tmp_path: Path) -> None:
        write_log(tmp_path, {}, [[insert(1, "R")]])
        with pytest.raises(StorageError, match="there are logs but no snapshot"):
            start(tmp_path)

    def test_a_directory_that_is_not_there_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            recover(Box(), tmp_path / "missing", tmp_path)


class TestBootstrap:
    def test_the_first_snapshot_is_the_new_box(self, tmp_path: Path) -> None:
        directory = tmp_path / "data" / "snapshots"
        box = Box()
        made = bootstrap(box, directory, instance_uuid=INSTANCE, cluster_uuid=OTHER, server_version="2.11.0")
        assert [path.name for path in directory.iterdir()] == ["00000000000000000000.snap"]
        assert (box.uuid, box.cluster_uuid) == (INSTANCE, OTHER)
        again, found = start(directory)
        assert found == made
        assert (found.instance_uuid, found.cluster_uuid, found.replica_id) == (INSTANCE, OTHER, 1)
        assert (found.vclock, found.checkpoint, found.previous_vclock) == ({}, {}, None)
        assert (again.uuid, again.cluster_uuid) == (INSTANCE, OTHER)
        for space in box.catalog:
            assert list(again.catalog.space(space.id).rows()) == list(space.rows())


class TestSnapshotsAndLogs:
    def test_the_newest_snapshot_then_the_logs_behind_it(self, tmp_path: Path) -> None:
        save(jobs_box([1, "old"]), tmp_path, {1: 3})
        save(jobs_box([1, "R"], [2, "R"], [3, "R"]), tmp_path, {1: 5})
        write_log(tmp_path, {1: 3}, [[insert(2, "R")], [insert(3, "R")]])
        write_log(tmp_path, {1: 5}, [[replace(1, "T")], [delete(2)]], previous={1: 3})
        write_log(
            tmp_path,
            {1: 7},
            [[update([3], [["=", 1, "W"]]), insert(4, "R")], [replace(5, "R")]],
            previous={1: 5},
        )
        box, found = start(tmp_path)
        assert jobs_in(box) == {1: "T", 3: "W", 4: "R", 5: "R"}
        assert (found.vclock, found.checkpoint, found.previous_vclock) == ({1: 10}, {1: 5}, {1: 7})
        assert found.damages == []
        assert found.cluster_uuid == uuid.UUID(CLUSTER)

    def test_rows_that_the_snapshot_has_are_not_applied_again(self, tmp_path: Path) -> None:
        save(jobs_box([1, "T"]), tmp_path, {1: 12})
        write_log(tmp_path, {1: 10}, [[insert(1, "R")], [replace(1, "T")], [insert(2, "R")]])
        assert jobs(tmp_path) == {1: "T", 2: "R"}

    def test_snapshots_and_logs_may_be_in_different_directories(self, tmp_path: Path) -> None:
        snapshots, logs = tmp_path / "snapshots", tmp_path / "logs"
        snapshots.mkdir()
        logs.mkdir()
        save(jobs_box(), snapshots, {1: 5})
        write_log(logs, {1: 5}, [[insert(1, "R")]])
        box = Box()
        recover(box, snapshots, logs)
        assert jobs_in(box) == {1: "R"}

    def test_each_member_is_counted_by_itself(self, tmp_path: Path) -> None:
        save(jobs_box(), tmp_path, {0: 1, 1: 5, 2: 7})
        rows = [
            Row(
                kind,
                lsn,
                body=body,
                timestamp=TIMESTAMP,
                replica_id=member,
                group_id=int(not member),
                tsn=lsn,
            )
            for member, lsn, (kind, body) in (
                (1, 6, insert(1, "one")),
                (2, 7, insert(1, "in the snapshot already")),
                (2, 8, insert(2, "two")),
                (0, 2, insert(3, "local")),
            )
        ]
        path = write_log(tmp_path, {0: 1, 1: 5, 2: 6}, [])
        with path.open("wb", buffering=0) as file:
            writer = XlogWriter.create(file, header(FileType.LOG, {0: 1, 1: 5, 2: 6}))
            writer.write([b"".join(map(encode_row, rows))])
            writer.end()
        box, found = start(tmp_path)
        assert jobs_in(box) == {1: "one", 2: "two", 3: "local"}
        assert found.vclock == {0: 2, 1: 6, 2: 8}

    def test_rows_about_the_replica_set_only_count(self, tmp_path: Path) -> None:
        save(jobs_box(), tmp_path, {1: 5})
        kinds = (RowType.NOP, RowType.RAFT, RowType.CONFIRM, RowType.PROMOTE, RowType.DEMOTE)
        body = b"\x81\x02\x01"
        write_log(tmp_path, {1: 5}, [[(kind, b"" if kind == RowType.NOP else body)] for kind in kinds])
        box, found = start(tmp_path)
        assert jobs_in(box) == {}
        assert found.vclock == {1: 10}

    def test_ddl_and_rows_in_one_log(self, tmp_path: Path) -> None:
        new_database(tmp_path)
        parts = [[0, "unsigned"]]
        write_log(
            tmp_path,
            {},
            [
                [insert(600, 1, "t", "memtx", 0, {}, [], space=280)],
                [insert(600, 0, "primary", "tree", {"unique": True}, parts, space=288)],
                [insert(1, 30, space=600), insert(2, 20, space=600)],
                [insert(600, 1, "second", "tree", {"unique": True}, [[1, "unsigned"]], space=288)],
                [insert(3, 10, space=600)],
            ],
        )
        box, _ = start(tmp_path)
        assert [list(row) for row in box.space.t.index.second.select()] == [[3, 10], [2, 20], [1, 30]]
        box.space.t.insert([4, 40])

    def test_the_box_can_be_used_as_any_other(self, tmp_path: Path) -> None:
        save(jobs_box([1, "R"]), tmp_path, {1: 5})
        box, _ = start(tmp_path)
        box.space.jobs.insert([2, "R"])
        box.space.jobs.update(1, [("=", "status", "T")])
        assert jobs_in(box) == {1: "T", 2: "R"}
        assert box.schema.create_space("another").id == JOBS + 1


class TestTheLogBefore:
    """The next log names the one it follows. One without rows has the next one's name and gives way to it."""

    @pytest.fixture
    def directory(self, tmp_path: Path) -> Path:
        save(jobs_box(), tmp_path, {1: 5})
        return tmp_path

    def test_without_logs_it_follows_none(self, directory: Path) -> None:
        assert start(directory)[1].previous_vclock is None

    def test_it_follows_the_newest(self, directory: Path) -> None:
        write_log(directory, {1: 5}, [[insert(1, "R")]])
        assert start(directory)[1].previous_vclock == {1: 5}

    def test_it_follows_what_an_empty_one_followed(self, directory: Path) -> None:
        write_log(directory, {1: 3}, [[insert(1, "R"), delete(1)]])
        write_log(directory, {1: 5}, [], previous={1: 3})
        assert start(directory)[1].previous_vclock == {1: 3}

    def test_logs_that_the_snapshot_contains_count_too(self, directory: Path) -> None:
        write_log(directory, {1: 3}, [[insert(1, "R"), delete(1)]])
        assert start(directory)[1].previous_vclock == {1: 3}


class TestRowsOfAFailedWrite:
    def test_what_is_beyond_the_beginning_of_the_next_log_was_never_acknowledged(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        save(jobs_box(), tmp_path, {1: 5})
        log = write_log(tmp_path, {1: 5}, [[insert(1, "R")], [insert(2, "failed"), insert(3, "failed")]])
        write_log(tmp_path, {1: 6}, [[insert(2, "R")]], previous={1: 5})
        with caplog.at_level(logging.WARNING):
            assert jobs(tmp_path) == {1: "R", 2: "R"}
        assert f"{log}: skipped 2 rows of a failed write" in caplog.text


class TestMissingRows:
    def test_within_a_log(self, tmp_path: Path) -> None:
        save(jobs_box(), tmp_path, {1: 5})
        log = write_log(tmp_path, {1: 5}, [[insert(1, "R")]], first_lsn=7)
        with pytest.raises(StorageError, match=rf"{log}.*: rows are missing between 5 and 7 of the member 1"):
            start(tmp_path)
        assert jobs(tmp_path, force=True) == {1: "R"}

    def test_between_snapshot_and_log(self, tmp_path: Path) -> None:
        save(jobs_box(), tmp_path, {1: 5})
        write_log(tmp_path, {1: 6}, [[insert(1, "R")]])
        with pytest.raises(LogGapError, match=r"rows are missing between \{1: 5\} and \{1: 6\}"):
            start(tmp_path)
        box, found = start(tmp_path, force=True)
        assert jobs_in(box) == {1: "R"}
        assert found.vclock == {1: 7}
        assert len(found.damages) == 2

    def test_between_two_logs(self, tmp_path: Path) -> None:
        save(jobs_box(), tmp_path, {1: 5})
        write_log(tmp_path, {1: 5}, [[insert(1, "R")]])
        write_log(tmp_path, {1: 8}, [[insert(2, "R")]])
        with pytest.raises(StorageError, match=r"rows are missing between \{1: 6\} and \{1: 8\}"):
            start(tmp_path)
        assert jobs(tmp_path, force=True) == {1: "R", 2: "R"}

    def test_of_a_log_that_the_next_one_names(self, tmp_path: Path) -> None:
        save(jobs_box(), tmp_path, {1: 5})
        write_log(tmp_path, {1: 5}, [[insert(1, "R")]])
        write_log(tmp_path, {1: 6}, [[insert(2, "R")]], previous={1: 4})
        with pytest.raises(LogGapError, match="a log is missing"):
            start(tmp_path)
        assert jobs(tmp_path, force=True) == {1: "R", 2: "R"}


class TestWhoseDatabaseItIs:
    def test_it_must_be_the_one_that_is_asked_for(self, tmp_path: Path) -> None:
        new_database(tmp_path)
        with pytest.raises(StorageError, match=f"Instance UUID mismatch: expected {OTHER}, got {INSTANCE}"):
            recover(Box(), tmp_path, tmp_path, instance_uuid=OTHER)
        assert recover(Box(), tmp_path, tmp_path, instance_uuid=INSTANCE) is not None

    def test_logs_of_another_instance_are_not_taken(self, tmp_path: Path) -> None:
        save(jobs_box(), tmp_path, {1: 5})
        log = write_log(tmp_path, {1: 5}, [[insert(1, "R")]])
        log.write_bytes(log.read_bytes().replace(str(INSTANCE).encode(), str(OTHER).encode()))
        with pytest.raises(XlogError, match=f"the log belongs to the instance {OTHER}"):
            start(tmp_path)

    def test_the_number_of_the_instance_is_that_in_the_cluster(self, tmp_path: Path) -> None:
        box = jobs_box()
        catalog = box.catalog
        catalog.space_by_name("_cluster").truncate()
        for number, member in ((1, OTHER), (4, INSTANCE)):
            catalog.load(catalog.space_by_name("_cluster"), codec.pack([number, str(member)]))
        save(box, tmp_path, {1: 5, 4: 2})
        assert start(tmp_path)[1].replica_id == 4

    def test_an_instance_that_is_not_in_the_cluster_gets_a_number_that_is_free(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        box = jobs_box()
        box.catalog.space_by_name("_cluster").truncate()
        box.catalog.load(box.catalog.space_by_name("_cluster"), codec.pack([1, str(OTHER)]))
        save(box, tmp_path, {1: 5})
        assert start(tmp_path)[1].replica_id == 2
        assert f"the instance {INSTANCE} is not in _cluster; its id is now 2" in caplog.text

    def test_tarantool_3_names_the_replica_set_otherwise(self, tmp_path: Path) -> None:
        box = jobs_box()
        box.catalog.space_by_name("_schema").truncate()
        box.catalog.load(box.catalog.space_by_name("_schema"), codec.pack(["replicaset_uuid", str(OTHER)]))
        save(box, tmp_path, {})
        assert start(tmp_path)[1].cluster_uuid == OTHER
