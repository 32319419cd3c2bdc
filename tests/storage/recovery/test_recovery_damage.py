"""Starting from files that a crash, or something worse, has left: what is lost, and that it is said."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from iproto_server.storage.errors import StorageError, XlogError
from iproto_server.storage.xlog import XlogReader
from iproto_server.storage.xlog.block import HEAD_SIZE
from tests.storage.databases import delete, insert, jobs, jobs_box, jobs_in, replace, save, start, write_log


class Damaged(NamedTuple):
    """A database whose last log has small blocks.

    Attributes:
        directory: Where it is.
        log: The last log.
        data: The log's bytes as they were written.
        blocks: Where its blocks begin, and where the last one ends.
        states: What jobs there are after each number of blocks.
    """

    directory: Path
    log: Path
    data: bytes
    blocks: list[int]
    states: list[dict[int, str]]


@pytest.fixture
def database(tmp_path: Path) -> Damaged:
    """Five blocks behind the snapshot, of which one has a transaction of three rows."""
    save(jobs_box([1, "R"]), tmp_path, {1: 5})
    transactions = [
        [insert(2, "R")],
        [replace(1, "T")],
        [insert(3, "R"), replace(2, "T"), delete(1)],
        [insert(4, "W")],
        [replace(4, "R")],
    ]
    log = write_log(tmp_path, {1: 5}, transactions, is_ended=False)
    states = [
        {1: "R"},
        {1: "R", 2: "R"},
        {1: "T", 2: "R"},
        {2: "T", 3: "R"},
        {2: "T", 3: "R", 4: "W"},
        {2: "T", 3: "R", 4: "R"},
    ]
    with XlogReader.open(log) as reader:
        blocks = list(reader.blocks())
    return Damaged(
        tmp_path, log, log.read_bytes(), [block.start for block in blocks] + [blocks[-1].end], states
    )


class TestAWriteThatWasInterrupted:
    @pytest.mark.parametrize("block", [2, 3, 4])
    def test_wherever_it_was_all_before_it_is_there(self, database: Damaged, block: int) -> None:
        """The file is cut, so that the next start finds nothing wrong."""
        begin, end = database.blocks[block], database.blocks[block + 1]
        for size in range(begin, end):
            database.log.write_bytes(database.data[:size])
            box, found = start(database.directory)
            assert jobs_in(box) == database.states[block]
            assert found.damages == []
            assert database.log.read_bytes() == database.data[:begin]
        assert jobs(database.directory) == database.states[block]

    @pytest.mark.parametrize("tail", [b"\0", b"\0" * 5000])
    def test_zeros_that_stand_for_what_was_not_written_are_cut(self, database: Damaged, tail: bytes) -> None:
        database.log.write_bytes(database.data + tail)
        assert jobs(database.directory) == database.states[-1]
        assert database.log.read_bytes() == database.data

    def test_it_is_said(self, database: Damaged, caplog: pytest.LogCaptureFixture) -> None:
        database.log.write_bytes(database.data[:-3])
        with caplog.at_level(logging.WARNING):
            start(database.directory)
        left = database.blocks[-1] - database.blocks[-2] - 3
        assert f"{database.log}: " in caplog.text
        assert f"at offset {database.blocks[-2]}: skipped the last {left} bytes, a torn write" in caplog.text

    def test_a_log_that_ends_within_its_header_is_removed(
        self, database: Damaged, caplog: pytest.LogCaptureFixture
    ) -> None:
        last = database.directory / "00000000000000000012.xlog"
        for size in (0, 1, 40):
            last.write_bytes(database.data[:size])
            with caplog.at_level(logging.WARNING):
                assert jobs(database.directory) == database.states[-1]
            assert not last.exists()
            assert f"removed {last}" in caplog.text

    def test_a_log_whose_header_is_all_it_has_is_fine(self, database: Damaged) -> None:
        database.log.write_bytes(database.data[: database.blocks[0]])
        assert jobs(database.directory) == database.states[0]

    def test_in_an_earlier_log_it_is_left_as_it_is(
        self, database: Damaged, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A Tarantool that starts again does not cut the log, it begins the next one."""
        torn = database.data[:-3]
        database.log.write_bytes(torn)
        write_log(database.directory, {1: 11}, [[insert(5, "R")]], previous={1: 5})
        with caplog.at_level(logging.WARNING):
            assert jobs(database.directory) == {**database.states[-2], 5: "R"}
        assert database.log.read_bytes() == torn
        assert f"at offset {database.blocks[-2]}" in caplog.text

    def test_in_an_earlier_log_rows_that_the_next_one_follows_are_missed(self, database: Damaged) -> None:
        database.log.write_bytes(database.data[:-3])
        write_log(database.directory, {1: 12}, [[insert(5, "R")]], previous={1: 5})
        with pytest.raises(XlogError) as caught:
            start(database.directory)
        assert (caught.value.name, caught.value.offset) == (str(database.log), database.blocks[-2])
        assert jobs(database.directory, force=True) == {**database.states[-2], 5: "R"}

    def test_where_the_start_fails_nothing_is_cut(self, database: Damaged) -> None:
        write_log(database.directory, {1: 12}, [[insert(4, "again")], [insert(9, "R")]], previous={1: 5})
        last = database.directory / "00000000000000000012.xlog"
        torn = last.read_bytes()[:-10]
        last.write_bytes(torn)
        with pytest.raises(StorageError, match="Duplicate key"):
            start(database.directory)
        assert last.read_bytes() == torn


class TestAByteThatIsNotTheOneThatWasWritten:
    @pytest.mark.parametrize("block", [2, 3, 4])
    def test_no_earlier_row_is_lost_and_no_wrong_one_is_there(self, database: Damaged, block: int) -> None:
        """The start is refused, or the damage looks like an interrupted write, or the byte means nothing."""
        for position in range(database.blocks[block], database.blocks[block + 1]):
            data = bytearray(database.data)
            data[position] ^= 0xFF
            database.log.write_bytes(data)
            refusal: XlogError | None = None
            try:
                found = jobs(database.directory)
            except XlogError as error:
                refusal = error
            if refusal is not None:
                assert (refusal.name, refusal.offset) == (str(database.log), database.blocks[block])
                assert database.log.read_bytes() == data
            elif database.log.read_bytes() == data:
                assert found == database.states[-1]
                assert position < database.blocks[block] + HEAD_SIZE
            else:
                assert block == 4
                assert found == database.states[4]

    @pytest.mark.parametrize("block", [0, 2, 4])
    def test_by_force_all_other_blocks_are_taken_and_it_is_said(
        self, database: Damaged, block: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        data = bytearray(database.data)
        data[database.blocks[block + 1] - 1] ^= 0xFF
        database.log.write_bytes(data)
        box, found = start(database.directory, force=True)
        expected = {
            0: {2: "T", 3: "R", 4: "R"},
            2: {1: "T", 2: "R", 4: "R"},
            4: {2: "T", 3: "R", 4: "W"},
        }
        assert jobs_in(box) == expected[block]
        place = f"{database.log}: wrong checksum of a block at offset {database.blocks[block]}"
        assert found.damages[-1].startswith(place)
        assert place in caplog.text
        # The numbers of the rows tell that some are missing, too.
        assert len(found.damages) == (1 if block == 4 else 2)

    def test_a_header_that_cannot_be_read_costs_its_whole_log(self, database: Damaged) -> None:
        write_log(database.directory, {1: 12}, [[insert(9, "R")]], previous={1: 5})
        database.log.write_bytes(b"?" + database.data[1:])
        with pytest.raises(XlogError, match="unknown file type"):
            start(database.directory)
        box, found = start(database.directory, force=True)
        assert jobs_in(box) == {**database.states[0], 9: "R"}
        assert found.vclock == {1: 13}


FLIPS: dict[str, Callable[[bytes], int]] = {
    "the rows": lambda data: len(data) // 2,
    "the head of the first block": lambda data: data.index(b"\n\n") + 3,
    "the end marker": lambda data: len(data) - 1,
}


class TestSnapshots:
    @pytest.mark.parametrize("place", FLIPS)
    def test_a_damaged_one_stops_the_start(self, tmp_path: Path, place: str) -> None:
        snapshot = save(jobs_box([1, "R"]), tmp_path, {1: 5})
        data = bytearray(snapshot.read_bytes())
        data[FLIPS[place](bytes(data))] ^= 0xFF
        snapshot.write_bytes(data)
        with pytest.raises(StorageError, match=str(snapshot)):
            start(tmp_path)

    def test_by_force_what_can_be_read_is_taken(self, tmp_path: Path) -> None:
        box = jobs_box(*([number, f"{number:0100}"] for number in range(5000)))
        snapshot = save(box, tmp_path, {1: 5})
        with XlogReader.open(snapshot) as reader:
            blocks = list(reader.blocks())
        assert len(blocks) > 4
        data = bytearray(snapshot.read_bytes())
        data[blocks[2].end - 1] ^= 0xFF
        snapshot.write_bytes(data)
        with pytest.raises(XlogError) as caught:
            start(tmp_path)
        assert (caught.value.name, caught.value.offset) == (str(snapshot), blocks[2].start)
        box, found = start(tmp_path, force=True)
        assert 3000 < len(jobs_in(box)) < 5000
        (damage,) = found.damages
        assert damage.startswith(f"{snapshot}: wrong checksum of a block at offset {blocks[2].start}")

    def test_by_force_an_older_one_is_taken_when_that_loses_nothing(self, tmp_path: Path) -> None:
        save(jobs_box([1, "R"]), tmp_path, {1: 5})
        write_log(tmp_path, {1: 5}, [[insert(2, "R")], [insert(3, "R")]])
        newest = save(jobs_box([1, "R"], [2, "R"], [3, "R"]), tmp_path, {1: 7})
        write_log(tmp_path, {1: 7}, [[insert(4, "R")]])
        data = bytearray(newest.read_bytes())
        data[300] ^= 0xFF
        newest.write_bytes(data)
        with pytest.raises(XlogError, match=str(newest)):
            start(tmp_path)
        box, found = start(tmp_path, force=True)
        assert jobs_in(box) == {1: "R", 2: "R", 3: "R", 4: "R"}
        (damage,) = found.damages
        assert "using an older snapshot" in damage


def test_by_force_a_log_that_cannot_be_read_gives_way_and_is_kept(database: Damaged) -> None:
    database.log.write_bytes(b"something else\n\n")
    box, found = start(database.directory, force=True)
    assert jobs_in(box) == {1: "R"}
    kept = database.log.with_name(database.log.name + ".damaged")
    assert kept.read_bytes() == b"something else\n\n"
    assert not database.log.exists()
    assert any(kept.name in damage for damage in found.damages)
