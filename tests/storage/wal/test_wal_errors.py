"""The WAL when the disk fails."""

from __future__ import annotations

import errno
import uuid
from pathlib import Path

import pytest

from iproto_server.errors import BoxError, ErrorCode
from iproto_server.storage.directory import IN_PROGRESS, find_logs
from iproto_server.storage.vclock import VClock
from iproto_server.storage.wal import WalMode
from tests.storage.wal.wal_database import Database, lsns


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path)


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
