"""`--force-recovery` where the snapshot is damaged: what there is, or one sentence that says why not."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from iproto_server import Box
from iproto_server.box.catalog.system_space_ids import CLUSTER, INDEX, SCHEMA, SPACE
from iproto_server.codec import msgpack as codec
from iproto_server.storage.errors import StorageError
from iproto_server.storage.recovery.damage_report import REPORT_LIMIT
from iproto_server.storage.storage import Storage, StorageOptions
from iproto_server.storage.wal import WalMode
from iproto_server.storage.xlog import XlogReader
from tests.storage.databases import (
    delete,
    insert,
    jobs,
    jobs_box,
    jobs_in,
    make_jobs,
    save,
    start,
    write_log,
    write_waiting,
)

FIRST = "00000000000000000000.snap"
ROWS = {number: "R" * (number % 40) for number in range(1, 500)}


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A directory with the snapshot that it was born with, and the log of all that has happened since."""
    options = StorageOptions(tmp_path, tmp_path, WalMode.WRITE, 1 << 20, False, None, "2.11.0")
    box = Box()
    storage = Storage(box, options, lambda job: job())
    space = make_jobs(box)
    for number, status in ROWS.items():
        space.insert([number, status])
    write_waiting(box, storage.log)
    storage.close()
    assert jobs(tmp_path) == ROWS
    return tmp_path


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0xFF
    path.write_bytes(data)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a byte of its rows": lambda path: flip(path, 400),
    "its first byte": lambda path: flip(path, 0),
    "its half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "all but its header": lambda path: path.write_bytes(path.read_bytes()[:94]),
    "everything in it": lambda path: path.write_bytes(b""),
    "the file": lambda path: path.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES)
class TestTheOnlySnapshotIsLostAndTheLogIsWhole:
    def test_everything_is_there(self, database: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
        box, before = start(database)
        DAMAGES[damage](database / FIRST)
        with pytest.raises(StorageError):
            start(database)
        caplog.clear()
        again, found = start(database, force=True)
        assert jobs_in(again) == ROWS
        assert (found.instance_uuid, found.replica_id) == (before.instance_uuid, before.replica_id)
        assert found.vclock == before.vclock
        for space in box.catalog:
            if space.indexes and space.id not in (SCHEMA, CLUSTER):
                assert list(again.catalog.spaces[space.id].rows()) == list(space.rows()), space.name
        lines = [record for record in caplog.records if record.levelno >= logging.ERROR]
        assert 1 <= len(lines) <= 4
        assert any("rebuilt from its logs" in record.getMessage() for record in lines)

    def test_it_can_be_changed_and_saved(self, database: Path, damage: str, tmp_path: Path) -> None:
        """The next snapshot is as good as any."""
        DAMAGES[damage](database / FIRST)
        box, found = start(database, force=True)
        box.schema.user.create("alice", password="secret")
        box.space.jobs.insert([1000, "new"])
        save(box, database, dict(found.vclock))
        for log in database.glob("*.xlog"):
            log.unlink()
        assert jobs(database) == {**ROWS, 1000: "new"}


class TestWhereTheLogDoesNotBeginAtTheBeginning:
    def test_one_sentence_says_why_nothing_can_be_recovered(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        snapshot = save(jobs_box([1, "R"]), tmp_path, {1: 5})
        write_log(tmp_path, {1: 5}, [[insert(number, "R")] for number in range(2, 1000)])
        flip(snapshot, 400)
        with pytest.raises(
            StorageError, match=r"definitions of spaces .* so the database cannot be recovered"
        ) as caught:
            start(tmp_path, force=True)
        assert str(snapshot) in str(caught.value)
        assert len(caplog.records) < 5

    def test_what_can_be_read_of_a_snapshot_counts_if_it_defines_the_spaces(self, tmp_path: Path) -> None:
        box = jobs_box(*([number, f"{number:0100}"] for number in range(5000)))
        snapshot = save(box, tmp_path, {1: 5})
        write_log(tmp_path, {1: 5}, [[insert(9999, "R")]])
        with XlogReader.open(snapshot) as reader:
            blocks = list(reader.blocks())
        flip(snapshot, blocks[2].end - 1)
        found = jobs(tmp_path, force=True)
        assert 3000 < len(found) < 5001
        assert found[9999] == "R"

    def test_a_log_that_takes_a_system_space_away_is_a_sentence(self, tmp_path: Path) -> None:
        save(jobs_box([1, "R"]), tmp_path, {1: 5})
        write_log(tmp_path, {1: 5}, [[delete(CLUSTER, 0, space=INDEX)], [delete(CLUSTER, space=SPACE)]])
        with pytest.raises(StorageError, match="system space"):
            start(tmp_path)
        box, found = start(tmp_path, force=True)
        assert jobs_in(box) == {1: "R"}
        assert len(found.damages) == 2


def test_of_thousands_of_rows_few_lines_are_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    save(jobs_box([1, "R"]), tmp_path, {1: 5})
    log = write_log(tmp_path, {1: 5}, [[insert(number, "R", space=600)] for number in range(3000)])
    box, found = start(tmp_path, force=True)
    assert jobs_in(box) == {1: "R"}
    assert len(found.damages) == REPORT_LIMIT + 1
    assert found.damages[-1] == f"{log}: 2,990 more rows or places of this file are skipped"
    assert len([record for record in caplog.records if record.levelno >= logging.ERROR]) == REPORT_LIMIT + 1


def test_wherever_a_snapshot_is_damaged_it_is_recovered_or_a_sentence(database: Path) -> None:
    """Flipped at any place, with the log and without it; it is never taken for a place without a database."""
    snapshot = database / FIRST
    (log,) = database.glob("*.xlog")
    data, changes = snapshot.read_bytes(), log.read_bytes()
    for position in range(0, len(data), 199):
        flip(snapshot, position)
        log.write_bytes(changes)
        assert jobs(database, force=True) == ROWS
        log.unlink()
        try:
            box, _ = start(database, force=True)
        except StorageError:
            pass
        else:
            codec.unpack(next(iter(box.catalog.spaces[SCHEMA].rows())))
        snapshot.write_bytes(data)
