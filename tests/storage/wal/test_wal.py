"""The WAL: its rows and files."""

from __future__ import annotations

import errno
from itertools import pairwise
from pathlib import Path

import pytest

from iproto_server.errors import BoxError, ErrorCode
from iproto_server.storage.directory import find_logs
from iproto_server.storage.vclock import VClock
from iproto_server.storage.wal import WalMode
from iproto_server.storage.xlog import RowType, XlogReader
from tests.storage.files import INSTANCE
from tests.storage.wal.wal_database import NOW, Database, lsns


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path)


class TestRows:
    def test_a_change_is_logged_as_the_row_that_it_makes(self, database: Database) -> None:
        tasks = database.tasks
        tasks.insert([1, "new"])
        tasks.replace([1, "other"])
        tasks.update(1, [("=", 1, "changed")])
        tasks.upsert([1, "new"], [("=", 1, "upserted")])
        tasks.delete(1)
        database.write()
        rows = [row for [row] in database.read()]
        assert [row.type for row in rows] == [
            RowType.INSERT,
            RowType.REPLACE,
            RowType.REPLACE,
            RowType.REPLACE,
            RowType.DELETE,
        ]
        assert [row.tuple_raw for row in rows[:4]] == [
            b"\x92\x01\xa3new",
            b"\x92\x01\xa5other",
            b"\x92\x01\xa7changed",
            b"\x92\x01\xa8upserted",
        ]
        assert rows[4].key_raw == b"\x91\x01"
        assert {row.space_id for row in rows} == {tasks.id}
        assert {row.timestamp for row in rows} == {NOW}
        assert {row.replica_id for row in rows} == {1}

    def test_rows_are_numbered_without_gaps(self, database: Database) -> None:
        for number in range(3):
            database.tasks.insert([number])
        with pytest.raises(BoxError):
            database.tasks.insert([0])
        database.tasks.insert([3])
        database.write()
        assert lsns(database.read()) == [1, 2, 3, 4]
        assert database.log.position() == 4

    def test_a_transaction_is_one_block_that_is_read_as_one(self, database: Database) -> None:
        def change() -> None:
            database.tasks.insert([1])
            database.tasks.insert([2])
            database.tasks.delete(1)

        database.do(change)
        database.do(database.tasks.insert, [3])
        database.write()
        assert [len(rows) for rows in database.read()] == [3, 1]

    def test_what_was_rolled_back_is_not_logged(self, database: Database) -> None:
        def fail() -> None:
            database.tasks.insert([1])
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            database.do(fail)
        database.write()
        assert database.log.position() == 0
        assert database.logs() == []

    def test_ddl_is_rows_of_system_spaces(self, database: Database) -> None:
        database.box.schema.create_space("other").create_index("primary")
        database.write()
        spaces = [row.space_id for rows in database.read() for row in rows]
        assert 280 in spaces
        assert 288 in spaces

    def test_rows_of_temporary_spaces_are_not_logged(self, database: Database) -> None:
        scratch = database.box.schema.create_space("scratch", temporary=True)
        scratch.create_index("primary")
        database.write()
        before = database.log.position()
        scratch.insert([1])
        database.write()
        assert database.log.position() == before

    def test_rows_of_local_spaces_have_numbers_of_their_own(self, database: Database) -> None:
        local = database.box.schema.create_space("local", is_local=True)
        local.create_index("primary")
        database.write()
        position = database.log.position()

        def change() -> None:
            local.insert([1])
            database.tasks.insert([1])
            local.insert([2])

        database.do(change)
        database.do(local.delete, 1)
        database.write()
        mixed, alone = database.read()[-2:]
        assert [(row.replica_id, row.group_id, row.lsn) for row in mixed] == [
            (0, 1, 1),
            (1, 0, position + 1),
            (0, 1, 2),
        ]
        assert {row.tsn for row in mixed} == {position + 1}
        assert [(row.replica_id, row.lsn, row.tsn) for row in alone] == [(0, 3, 3)]
        assert database.log.vclock == {0: 3, 1: position + 1}

    def test_the_key_of_a_deletion_is_that_of_the_primary_index_of_its_moment(
        self, database: Database
    ) -> None:
        def change() -> None:
            database.tasks.insert([7, 8])
            database.tasks.delete(7)
            database.tasks.index[0].drop()
            database.tasks.create_index("other", parts=[(1, "unsigned")])
            database.tasks.insert([9, 10])
            database.tasks.delete(10)

        database.do(change)
        database.write()
        [rows] = database.read()
        keys = [row.key_raw for row in rows if row.space_id == database.tasks.id and row.key_raw]
        assert keys == [b"\x91\x07", b"\x91\x0a"]


class TestFiles:
    def test_a_log_is_named_after_what_was_before_it(self, tmp_path: Path) -> None:
        database = Database(tmp_path, vclock=VClock({0: 2, 1: 40, 2: 8}))
        database.tasks.insert([1])
        database.write()
        [log] = find_logs(tmp_path, database.log.vclock).logs
        assert log.path.name == f"{50:020d}.xlog"
        assert log.header.vclock == {0: 2, 1: 40, 2: 8}
        assert log.header.instance_uuid == INSTANCE
        with XlogReader.open(log.path) as reader:
            assert [row.lsn for [row] in reader.transactions()] == [41]

    def test_it_is_made_with_the_first_row_and_not_before(self, database: Database) -> None:
        assert database.logs() == []
        database.write()
        assert database.logs() == []
        database.tasks.insert([1])
        database.write()
        assert database.logs() == [f"{0:020d}.xlog"]

    def test_one_that_is_large_enough_is_ended_and_followed_by_another(self, tmp_path: Path) -> None:
        database = Database(tmp_path, max_size=2000)
        for number in range(100):
            database.tasks.insert([number, "x" * 80])
            database.write()
        logs = find_logs(tmp_path, VClock()).logs
        assert len(logs) > 4
        assert lsns(database.read()) == list(range(1, 101))
        for file, following in pairwise(logs):
            assert following.header.previous_vclock == file.header.vclock
            with XlogReader.open(file.path) as reader:
                list(reader.blocks())
                assert reader.closed

    def test_a_checkpoint_begins_another(self, database: Database) -> None:
        database.tasks.insert([1])
        database.write()
        assert database.log.size_since_checkpoint > 0
        database.log.rotate()
        assert database.log.size_since_checkpoint == 0
        assert database.logs() == [f"{0:020d}.xlog", f"{1:020d}.xlog"]
        database.tasks.insert([2])
        database.write()
        assert database.logs() == [f"{0:020d}.xlog", f"{1:020d}.xlog"]
        assert lsns(database.read()) == [1, 2]

    def test_one_that_cannot_be_begun_then_is_begun_by_the_next_row(self, database: Database) -> None:
        database.tasks.insert([1])
        database.write()
        database.disk.fault = errno.ENOSPC
        database.log.rotate()
        database.disk.fault = None
        database.tasks.insert([2])
        database.write()
        assert database.logs() == [f"{0:020d}.xlog", f"{1:020d}.xlog"]
        assert lsns(database.read()) == [1, 2]

    def test_closing_writes_what_waits_and_ends_the_file(self, database: Database) -> None:
        database.tasks.insert([1])
        database.log.close()
        [file] = find_logs(database.directory, VClock()).logs
        with XlogReader.open(file.path) as reader:
            assert [row.lsn for [row] in reader.transactions()] == [1]
            assert reader.closed

    def test_once_it_is_closed_nothing_is_committed_any_more(self, database: Database) -> None:
        database.tasks.insert([1])
        database.log.close()
        with pytest.raises(BoxError) as refusal:
            database.tasks.insert([2])
        assert refusal.value.code == ErrorCode.WAL_IO
        assert [row[0] for row in database.tasks.select()] == [1]
        assert lsns(database.read()) == [1]

    def test_without_a_log_rows_are_only_numbered(self, tmp_path: Path) -> None:
        database = Database(tmp_path, WalMode.NONE, vclock=VClock({1: 10}))
        database.tasks.insert([1])
        assert not database.box.transactions.unwritten
        assert database.log.vclock == {1: 11}
        database.log.close()
        assert database.logs() == []
