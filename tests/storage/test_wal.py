"""The write-ahead log: what a committed transaction becomes, and what is left of one that is not written."""

from __future__ import annotations

import errno
import uuid
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from iproto_server.box.api.box import Box
from iproto_server.box.clock import ManualClock
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.storage.directory import IN_PROGRESS, find_logs
from iproto_server.storage.vclock import VClock
from iproto_server.storage.wal import WalMode, WriteAheadLog
from iproto_server.storage.xlog import Row, RowType, XlogReader
from tests.storage.databases import write_waiting
from tests.storage.faulty_disk import FaultyDisk
from tests.storage.files import INSTANCE

NOW = 1700000000.5


class Database:
    """A box whose journal is a log in a directory."""

    def __init__(self, directory: Path, mode: WalMode = WalMode.WRITE, **options: Any) -> None:
        self.directory = directory
        self.disk = FaultyDisk()
        self.box = Box(None, ManualClock())
        self.box.schema.create_space("tasks").create_index("primary")
        vclock = options.pop("vclock", VClock())
        self.log = WriteAheadLog(
            directory,
            mode,
            INSTANCE,
            1,
            vclock,
            server_version="2.11.0",
            clock=lambda: NOW,
            open_file=self.disk.open,
            sync_file=self.disk.sync,
            **options,
        )
        self.box.transactions.journal = self.log
        self.tasks = self.box.space.tasks

    def do(self, function: Callable[..., object], *arguments: object) -> object:
        """Call a function as one transaction."""
        return self.box.run(self.box.session.background, function, *arguments)

    def write(self) -> None:
        """Write the log as the server does at the end of an iteration, undoing what cannot be written."""
        write_waiting(self.box, self.log)

    def read(self) -> list[list[Row]]:
        """The transactions in the logs, all files after one another."""
        found = []
        for file in find_logs(self.directory, VClock()).logs:
            with XlogReader.open(file.path) as reader:
                found += list(reader.transactions())
        return found

    def logs(self) -> list[str]:
        return sorted(path.name for path in self.directory.iterdir())


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path)


def lsns(transactions: list[list[Row]]) -> list[int]:
    return [row.lsn for rows in transactions for row in rows]


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


class TestFaults:
    """A full disk must not lose what was promised, nor keep what was refused."""

    @pytest.mark.parametrize("accepts", [0, 1, 10, 19, 30])
    @pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EIO])
    def test_what_cannot_be_written_is_undone_and_the_file_ends_as_before(
        self, database: Database, fault: int, accepts: int
    ) -> None:
        database.tasks.insert([1, "kept"])
        database.write()
        size = [path.stat().st_size for path in database.directory.iterdir()]
        database.disk.fault, database.disk.accepts = fault, accepts
        database.tasks.insert([2, "refused"])
        database.tasks.update(1, [("=", 1, "refused")])
        with pytest.raises(BoxError) as refusal:
            database.write()
        assert refusal.value.code == ErrorCode.WAL_IO
        assert [list(row) for row in database.tasks.select()] == [[1, "kept"]]
        assert [path.stat().st_size for path in database.directory.iterdir()] == size
        assert database.log.position() == 1
        assert database.log.failures == 1

    def test_want_of_memory_is_a_failure_too(
        self, database: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(rows: bytes, compressor: object) -> bytes:
            raise MemoryError

        database.tasks.insert([1])
        monkeypatch.setattr("iproto_server.storage.xlog.writer.encode_block", refuse)
        with pytest.raises(BoxError) as refusal:
            database.write()
        assert refusal.value.code == ErrorCode.WAL_IO
        assert database.tasks.len() == 0
        monkeypatch.undo()
        database.tasks.insert([2])
        assert lsns(database.read()) == [1]

    def test_then_every_transaction_is_written_by_itself_and_refused_at_its_commit(
        self, database: Database
    ) -> None:
        database.tasks.insert([1])
        database.disk.fault = errno.ENOSPC
        with pytest.raises(BoxError):
            database.write()
        with pytest.raises(BoxError) as refusal:
            database.tasks.insert([2])
        assert refusal.value.code == ErrorCode.WAL_IO
        assert database.tasks.len() == 0

    def test_once_there_is_space_again_it_goes_on_with_the_same_numbers(self, database: Database) -> None:
        database.tasks.insert([1])
        database.write()
        database.disk.fault = errno.ENOSPC
        database.tasks.insert([2])
        with pytest.raises(BoxError):
            database.write()
        database.disk.fault = None
        database.tasks.insert([3])
        database.tasks.insert([4])
        database.write()
        assert lsns(database.read()) == [1, 2, 3]
        assert [row[0] for row in database.tasks.select()] == [1, 3, 4]

    def test_transactions_that_follow_from_each_other_are_undone_the_newest_first(
        self, database: Database
    ) -> None:
        log: list[str] = []

        def change(number: int) -> None:
            database.tasks.replace([1, number])
            database.box.on_rollback(lambda: log.append(f"{number} undone"))

        for number in range(3):
            database.do(change, number)
        database.disk.fault = errno.EIO
        with pytest.raises(BoxError):
            database.write()
        assert log == ["2 undone", "1 undone", "0 undone"]
        assert database.tasks.len() == 0

    def test_ddl_is_undone_with_what_was_done_in_the_new_space(self, database: Database) -> None:
        database.disk.fault = errno.ENOSPC
        other = database.box.schema.create_space("other")
        other.create_index("primary")
        other.insert([1])
        with pytest.raises(BoxError):
            database.write()
        assert "other" not in database.box.space
        database.disk.fault = None
        database.box.schema.create_space("other").create_index("primary")
        database.write()
        assert database.box.space.other.len() == 0

    def test_a_log_that_cannot_be_made_leaves_nothing_behind(self, database: Database) -> None:
        database.disk.fault = errno.ENOSPC
        database.tasks.insert([1])
        with pytest.raises(BoxError):
            database.write()
        assert database.logs() == []
        assert not list(database.directory.glob(f"*{IN_PROGRESS}"))

    def test_a_disk_that_does_not_sync_has_not_got_the_rows(self, tmp_path: Path) -> None:
        database = Database(tmp_path, WalMode.FSYNC)
        database.tasks.insert([1])
        database.write()
        assert database.disk.synced == 1
        database.disk.sync_fault = errno.EIO
        database.tasks.insert([2])
        with pytest.raises(BoxError):
            database.write()
        assert lsns(database.read()) == [1]
        assert [row[0] for row in database.tasks.select()] == [1]
        database.disk.sync_fault = None
        database.tasks.insert([3])
        database.write()
        assert lsns(database.read()) == [1, 2]

    def test_what_is_committed_during_a_write_that_fails_is_undone_with_it(self, tmp_path: Path) -> None:
        database = Database(tmp_path, WalMode.FSYNC)
        transactions = database.box.transactions
        database.tasks.insert([1])
        writing = transactions.take_unwritten()
        job = database.log.take()
        assert job is not None
        database.tasks.insert([2])
        error = database.log.fail(OSError(errno.EIO, "fault"))
        assert error.code == ErrorCode.WAL_IO
        transactions.undo([*writing, *transactions.take_unwritten()])
        assert database.tasks.len() == 0
        assert database.log.position() == 0
        assert database.log.take() is None


def test_a_log_is_its_instances_own(tmp_path: Path) -> None:
    database = Database(tmp_path)
    database.tasks.insert([1])
    database.write()
    with pytest.raises(Exception, match="the log belongs to the instance"):
        find_logs(tmp_path, VClock(), uuid.UUID(int=1))
