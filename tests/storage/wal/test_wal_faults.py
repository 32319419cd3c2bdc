"""A log on a disk that fails at awkward moments: a start from it has what was written, and nothing else."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from iproto_server import Box, Space
from iproto_server.box.catalog.sysview import SysviewSpace
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.storage import log_rotation
from iproto_server.storage.directory import list_files, read_header
from iproto_server.storage.recovery.recovery import recover
from iproto_server.storage.wal import WalMode
from iproto_server.storage.xlog import FileType, XlogReader
from tests.storage.sample_database import OpenDatabase, Rows, rows_after_start

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")


@pytest.fixture
def database(tmp_path: Path) -> OpenDatabase:
    """A database with a row, in the first log."""
    database = OpenDatabase(tmp_path)
    database.create()
    database.commit([(1, "one")])
    return database


def refused(database: OpenDatabase, key: int) -> None:
    """A change that the disk does not take."""
    with pytest.raises(BoxError) as refusal:
        database.commit([(key, "refused")])
    assert refusal.value.code == ErrorCode.WAL_IO


def logs_follow_each_other(directory: Path) -> None:
    headers = [read_header(path, FileType.LOG) for path in list_files(directory, FileType.LOG)]
    for before, after in pairwise(headers):
        assert after.previous_vclock == before.vclock


def found(directory: Path) -> Rows:
    logs_follow_each_other(directory)
    return rows_after_start(directory)[0]


class TestRotation:
    def test_when_no_snapshot_gets_done_however_often_it_is_tried(self, database: OpenDatabase) -> None:
        log = database.storage.log
        for _ in range(3):
            log.rotate()
        database.commit([(2, "two")])
        log.rotate()
        log.rotate()
        database.commit([(3, "three")])
        database.close()
        assert found(database.directory) == {1: "one", 2: "two", 3: "three"}

    def test_a_log_that_has_its_header_and_no_rows_stays_the_log(self, database: OpenDatabase) -> None:
        log = database.storage.log
        log.rotate()
        database.disk.fault, database.disk.accepts = errno.ENOSPC, 10
        refused(database, 2)
        log.rotate()
        refused(database, 3)
        database.disk.fault = None
        database.commit([(4, "four")])
        database.close()
        assert found(database.directory) == {1: "one", 4: "four"}
        assert len(list_files(database.directory, FileType.LOG)) == 2

    @pytest.mark.parametrize("accepts", [0, 1, 50, 110])
    def test_a_new_log_that_cannot_be_made(self, tmp_path: Path, accepts: int) -> None:
        database = OpenDatabase(tmp_path, max_size=300)
        database.create()
        kept = {}
        for number in range(30):
            if number % 3 == 2:
                database.disk.fault, database.disk.accepts = errno.ENOSPC, accepts
                refused(database, number)
                database.disk.fault = None
            else:
                database.commit([(number, "x" * 60)])
                kept[number] = "x" * 60
        assert not list(tmp_path.glob("*.inprogress"))
        assert len(list_files(tmp_path, FileType.LOG)) > 5
        database.close()
        assert found(tmp_path) == kept

    @pytest.mark.parametrize("accepts", [0, 2])
    def test_an_end_marker_that_cannot_be_written_costs_no_row(
        self, database: OpenDatabase, accepts: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        database.disk.fault, database.disk.accepts = errno.ENOSPC, accepts
        database.storage.log.rotate()
        assert "cannot write the end marker of a log" in caplog.text
        database.disk.fault = None
        database.commit([(2, "two")])
        database.close()
        caplog.clear()
        assert found(database.directory) == {1: "one", 2: "two"}

    def test_closing_on_a_full_disk_costs_no_row(self, database: OpenDatabase) -> None:
        database.disk.fault = errno.ENOSPC
        database.close()
        assert found(database.directory) == {1: "one"}
        with OpenDatabase(database.directory) as again:
            again.commit([(2, "two")])
        assert found(database.directory) == {1: "one", 2: "two"}

    def test_a_log_without_rows_is_replaced_after_a_start(self, database: OpenDatabase) -> None:
        database.storage.log.rotate()
        database.close()
        for number in (2, 3):
            with OpenDatabase(database.directory) as again:
                again.storage.log.rotate()
                again.commit([(number, "new")])
        assert found(database.directory) == {1: "one", 2: "new", 3: "new"}


class TestSyncing:
    @pytest.fixture
    def synced(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """Which error syncing the directory has next; 0 for none. What was done is taken from it."""
        faults: list[int] = []

        def sync_directory(directory: object) -> None:
            fault = faults.pop(0) if faults else 0
            if fault:
                raise OSError(fault, "fault")

        monkeypatch.setattr(log_rotation, "sync_directory", sync_directory)
        return faults

    @pytest.mark.parametrize("is_rotated", [False, True])
    def test_a_row_is_not_safe_before_the_name_of_its_log_is(
        self, tmp_path: Path, synced: list[int], is_rotated: bool
    ) -> None:
        database = OpenDatabase(tmp_path, mode=WalMode.FSYNC)
        database.create()
        if is_rotated:
            database.storage.log.rotate()
        else:
            database.close()
            database = OpenDatabase(tmp_path, mode=WalMode.FSYNC)
        synced += [errno.EIO, errno.EIO, 0, errno.ENOSPC]
        refused(database, 1)
        refused(database, 2)
        database.commit([(3, "three")])
        assert synced == [errno.ENOSPC]  # the name is safe, and is not looked at again
        database.commit([(4, "four")])
        assert synced == [errno.ENOSPC]
        database.storage.close()
        assert found(tmp_path) == {3: "three", 4: "four"}

    def test_a_file_that_is_not_synced_is_no_reason_to_forget_its_name(
        self, tmp_path: Path, synced: list[int]
    ) -> None:
        database = OpenDatabase(tmp_path, mode=WalMode.FSYNC)
        database.disk.sync_fault = errno.EIO
        with pytest.raises(BoxError):
            database.create()
        database.disk.sync_fault = None
        synced += [0, errno.EIO]
        database.create()
        assert synced == [errno.EIO]
        database.close()

    def test_a_refused_row_that_could_not_be_cut_off_is_left_out_when_the_next_log_begins(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        database = OpenDatabase(tmp_path, mode=WalMode.FSYNC)
        database.create()
        database.commit([(1, "one")])
        database.disk.may_cut = False
        database.disk.sync_fault = errno.EIO
        refused(database, 2)
        database.disk.sync_fault = None
        refused(database, 3)  # nothing is written behind what should not be there
        database.storage.log.rotate()
        database.disk.may_cut = True
        database.commit([(4, "four")])
        database.close()
        assert found(tmp_path) == {1: "one", 4: "four"}


# -- at random --


def contents(box: Box, *, with_temporary: bool) -> dict[str, object]:
    """Everything that there is in a box, in the order of each index."""
    found: dict[str, object] = {}
    for core in box.catalog:
        if isinstance(core, SysviewSpace) or (core.is_temporary and not with_temporary):
            continue
        space = box.space[core.id]
        rows = [[list(row) for row in space.index[index.id].select()] for index in core.indexes.values()]
        found[core.name] = (rows, space.bsize() if rows else 0)
    return found


class RandomChanges:
    """Transactions of all kinds.

    Parameters:
        box: where they are made.
        chance: what is chosen.
    """

    def __init__(self, box: Box, chance: random.Random) -> None:
        self._box = box
        self._chance = chance
        self._made = 0

    def setup(self) -> None:
        """The spaces that are always there."""
        for name in ("kept", "scratch", "own"):
            space = self._box.schema.create_space(name, temporary=name == "scratch", is_local=name == "own")
            space.create_index("primary")
            space.create_index("second", parts=[(1, "unsigned"), (0, "unsigned")])

    def transaction(self) -> None:
        """A transaction of one change or several; it may fail half way, which undoes it."""
        changes = self._chance.choices(
            [self._row, self._truncate, self._ddl], weights=[20, 1, 2], k=self._chance.randint(1, 4)
        )
        try:
            self._box.atomic(self._carry_out, changes)
        except (BoxError, ZeroDivisionError):
            return

    def _carry_out(self, changes: list[Callable[[], object]]) -> None:
        for change in changes:
            change()
        if self._chance.random() < 0.1:
            raise ZeroDivisionError

    def _some_space(self) -> Space:
        spaces = [core.id for core in self._box.catalog if core.id >= 512 and core.indexes]
        return self._box.space[self._chance.choice(spaces)]

    def _row(self) -> None:
        space, key = self._some_space(), self._chance.randrange(12)
        match self._chance.randrange(4):
            case 0:
                space.delete(key)
            case 1:
                space.update(key, [("=", 1, self._chance.randrange(5))])
            case 2:
                space.upsert([key, 0, "new"], [("+", 1, 1)])
            case 3:
                space.replace([key, self._chance.randrange(5), "x" * self._chance.randrange(200)])

    def _truncate(self) -> None:
        self._some_space().truncate()

    def _ddl(self) -> None:
        space = self._some_space()
        match self._chance.randrange(4):
            case 0:
                self._made += 1
                made = self._box.schema.create_space(f"made {self._made}")
                made.create_index("primary")
                made.insert([1, 1, "first"])
            case 1:
                if space.name.startswith("made"):
                    space.drop()
            case 2:
                space.create_index("third", parts=[(2, "string"), (0, "unsigned")], if_not_exists=True)
            case 3:
                if "third" in space.index:
                    space.index.third.drop()


@pytest.mark.parametrize("seed", range(8))
def test_whatever_is_refused_leaves_no_trace_and_all_else_is_kept(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    database = OpenDatabase(tmp_path, max_size=4000)
    changes = RandomChanges(database.box, chance)
    changes.setup()
    database.flush()
    for _ in range(60):
        if chance.random() < 0.4:
            database.disk.fault = chance.choice([errno.ENOSPC, errno.EIO])
            database.disk.accepts = chance.randrange(200)
        for _ in range(chance.randint(1, 5)):
            if not database.box.transactions.unwritten:
                safe = contents(database.box, with_temporary=True)
                position = database.storage.log.position()
            changes.transaction()
        try:
            database.flush()
        except BoxError:
            assert contents(database.box, with_temporary=True) == safe
            assert database.storage.log.position() == position
        database.disk.fault = None
        if chance.random() < 0.1:
            database.storage.log.rotate()
    expected = contents(database.box, with_temporary=False)
    database.close()
    again = Box()
    assert recover(again, tmp_path, tmp_path) is not None
    assert contents(again, with_temporary=False) == expected
    logs_follow_each_other(tmp_path)


@pytest.mark.parametrize("seed", range(8))
def test_the_same_when_the_box_goes_on_while_the_log_is_written(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    database = OpenDatabase(tmp_path, max_size=4000, mode=WalMode.FSYNC)
    box, log, transactions = database.box, database.storage.log, database.box.transactions
    changes = RandomChanges(box, chance)
    changes.setup()
    database.flush()
    safe = contents(box, with_temporary=True)
    for _ in range(60):
        changes.transaction()
        writing = transactions.take_unwritten()
        job = log.take()
        if job is None:
            safe = contents(box, with_temporary=True)
            continue
        transactions.is_writing = True
        for _ in range(chance.randrange(4)):
            changes.transaction()
        if chance.random() < 0.1:
            log.rotate()
        match chance.randrange(3):
            case 0:
                database.disk.fault, database.disk.accepts = errno.ENOSPC, chance.randrange(100)
            case 1:
                database.disk.sync_fault = errno.EIO
        try:
            log.perform(job)
        except OSError as error:
            database.disk.fault = database.disk.sync_fault = None
            log.fail(error)
            transactions.is_writing = False
            transactions.undo([*writing, *transactions.take_unwritten()])
            assert contents(box, with_temporary=True) == safe
        else:
            database.disk.fault = database.disk.sync_fault = None
            log.complete(job)
            transactions.is_writing = False
            database.flush()
            safe = contents(box, with_temporary=True)
    expected = contents(box, with_temporary=False)
    database.close()
    again = Box()
    assert recover(again, tmp_path, tmp_path) is not None
    assert contents(again, with_temporary=False) == expected
    for path in list_files(tmp_path, FileType.LOG):
        with XlogReader.open(path) as reader:
            list(reader.transactions())
