"""The last log cut at every byte, and every byte flipped: a start is as promised, or there is none.

What is promised: every transaction whose block is whole is there, nothing of any other, and what was written
before is never lost, nor is anything there that was not written.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from iproto_server.storage.errors import StorageError
from iproto_server.storage.xlog.block import END_MARKER, HEAD_SIZE
from iproto_server.text.counting import counted
from tests.storage.sample_database import (
    COMPRESSED,
    LONG,
    PLAIN,
    SEVERAL,
    Change,
    OpenDatabase,
    SampleDatabase,
    after,
    rows_after_start,
    rows_in,
    rows_or_refusal,
    sample_database,
)

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")

NEW: list[Change] = [(900, "written after the start")]
PAGE = 4096

ARRANGEMENTS = {
    "several rows last": [COMPRESSED, PLAIN, SEVERAL],
    "compressed last": [PLAIN, SEVERAL, COMPRESSED],
    "plain last": [SEVERAL, COMPRESSED, PLAIN],
}

Warnings = Callable[[], list[str]]


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Warnings:
    """What was said since the last time, as far as somebody should read it."""

    def take() -> list[str]:
        said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
        caplog.clear()
        return said

    return take


def goes_on(database: SampleDatabase, warnings: Warnings, *, force: bool = False) -> None:
    """The next start is silent, what is written then is kept, and so is all that was there before."""
    rows, _ = rows_after_start(database.directory, force=force)
    if not force:
        assert warnings() == []
    with OpenDatabase(database.directory, force=force) as opened:
        opened.commit(NEW)
    warnings()
    assert rows_after_start(database.directory, force=force)[0] == after(rows, NEW)
    said = warnings()
    assert force or said == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arrangement", "is_ended"),
    [*((arrangement, False) for arrangement in ARRANGEMENTS), ("compressed last", True)],
)
class TestCut:
    def test_at_every_byte(
        self, tmp_path: Path, arrangement: str, is_ended: bool, warnings: Warnings
    ) -> None:
        database = sample_database(tmp_path, ARRANGEMENTS[arrangement], is_ended=is_ended)
        for size in range(database.ends[-4], len(database.data) + 1):
            database.restore(database.data[:size])
            whole = sum(end <= size for end in database.ends[1:])
            good_end = database.ends[whole]
            rows, recovered = rows_after_start(database.directory)
            assert rows == database.rows(whole)
            assert recovered.damages == []
            if size in (good_end, len(database.data)):
                assert warnings() == []
                assert database.log.stat().st_size == size
                continue
            [said] = warnings()
            assert said.startswith(f"{database.log}: ")
            assert f"at offset {good_end}: skipped the last {counted(size - good_end, 'byte')}" in said
            assert database.log.stat().st_size == good_end
            if size % 9 == 0 or size == good_end + 1:
                goes_on(database, warnings)


def flipped(database: SampleDatabase, position: int, mask: int) -> bytes:
    data = bytearray(database.data)
    data[position] ^= mask
    return bytes(data)


def start_from_flipped(database: SampleDatabase, position: int, mask: int, warnings: Warnings) -> bool:
    """Start from a log with a flipped byte; answer whether that was refused."""
    data = flipped(database, position, mask)
    database.restore(data)
    touched = sum(end <= position for end in database.ends) - 1
    count = len(database.blocks)
    started = rows_or_refusal(database.directory)
    if isinstance(started, str):
        assert started.startswith(f"{database.log}: ")
        assert f"at offset {database.ends[touched]}" in started
        assert database.unchanged(data)
        assert warnings() == []
        return True
    rows, _ = started
    said = warnings()
    if said:
        # It looks like the rest of an interrupted write, so it can only be the last thing there is.
        is_last = touched == count if database.data.endswith(END_MARKER) else touched == count - 1
        assert is_last
        assert len(said) == 1
        assert f"{database.log}: " in said[0]
        assert (
            f"at offset {database.ends[touched]}: skipped the last "
            f"{counted(len(data) - database.ends[touched], 'byte')}" in said[0]
        )
        assert rows == database.rows(touched)
    else:
        # Nobody reads the checksum of the block before it, nor how the head is filled up.
        assert touched == count or position < database.ends[touched] + HEAD_SIZE
        assert rows == database.rows()
    return False


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arrangement", "is_ended"),
    [*((arrangement, False) for arrangement in ARRANGEMENTS), ("compressed last", True)],
)
class TestFlipped:
    def test_every_byte(self, tmp_path: Path, arrangement: str, is_ended: bool, warnings: Warnings) -> None:
        database = sample_database(tmp_path, ARRANGEMENTS[arrangement], is_ended=is_ended)
        positions = range(database.ends[-4], len(database.data))
        refused = sum(
            start_from_flipped(database, position, 1 << position % 8, warnings) for position in positions
        )
        assert refused > len(positions) // 2

    def test_by_force_every_other_block_is_there(
        self, tmp_path: Path, arrangement: str, is_ended: bool, warnings: Warnings
    ) -> None:
        database = sample_database(tmp_path, ARRANGEMENTS[arrangement], is_ended=is_ended)
        for position in range(database.ends[-4], len(database.data)):
            database.restore(flipped(database, position, 0x80 >> position % 8))
            touched = sum(end <= position for end in database.ends) - 1
            rows, recovered = rows_after_start(database.directory, force=True)
            if recovered.damages:
                assert rows == database.rows(without=touched)
                place = f"at offset {database.ends[touched]}, up to "
                assert any(
                    damage.startswith(f"{database.log}: ") and place in damage for damage in recovered.damages
                )
            else:
                assert rows == database.rows()
            assert [message.partition(": ")[2] for message in warnings()] == recovered.damages
            if position % 10 == 0:
                goes_on(database, warnings, force=True)


@pytest.mark.slow
@pytest.mark.parametrize("block", [1, 2, 3])
def test_all_bits_of_a_head_and_the_beginning_of_its_rows(
    tmp_path: Path, block: int, warnings: Warnings
) -> None:
    database = sample_database(tmp_path, ARRANGEMENTS["compressed last"], is_ended=True)
    start = database.ends[block]
    for position in range(start, start + HEAD_SIZE + 1):
        for bit in range(8):
            start_from_flipped(database, position, 1 << bit, warnings)


class TestZeros:
    """Pages that the file system had made room for, and that were never written."""

    @pytest.mark.parametrize("size", [1, 3, 4, 18, 19, 20, PAGE, PAGE + 1, 3 * PAGE])
    def test_behind_the_last_block_are_cut(self, tmp_path: Path, size: int, warnings: Warnings) -> None:
        database = sample_database(tmp_path, ARRANGEMENTS["plain last"], is_ended=False)
        database.restore(database.data + bytes(size))
        assert rows_after_start(database.directory)[0] == database.rows()
        [said] = warnings()
        assert f"at offset {database.ends[-1]}: skipped the last {counted(size, 'byte')}" in said
        assert database.log.read_bytes() == database.data
        goes_on(database, warnings)

    @pytest.mark.parametrize("pages", [1, 2])
    def test_that_are_the_last_pages_of_the_last_block_are_cut_with_it(
        self, tmp_path: Path, pages: int, warnings: Warnings
    ) -> None:
        # Several pages of something that does not become smaller.
        text = random.Random(1).randbytes(10_000).hex()
        database = sample_database(tmp_path, [PLAIN, SEVERAL, [(103, text)]], is_ended=False)
        written = -(-len(database.data) // PAGE) * PAGE - pages * PAGE
        data = database.data[:written] + bytes(len(database.data) - written)
        database.restore(data)
        whole = len(database.blocks) - 1
        assert database.ends[whole] < written
        assert rows_after_start(database.directory)[0] == database.rows(whole)
        [said] = warnings()
        assert (
            f"at offset {database.ends[whole]}: skipped the last "
            f"{counted(len(data) - database.ends[whole], 'byte')}" in said
        )
        goes_on(database, warnings)

    def test_with_intact_blocks_behind_them_are_damage(self, tmp_path: Path) -> None:
        database = sample_database(tmp_path, ARRANGEMENTS["compressed last"], is_ended=False)
        start, end = database.ends[2:4]
        database.restore(database.data[:start] + bytes(end - start) + database.data[end:])
        with pytest.raises(StorageError, match=rf"{database.log}: .* at offset {start}"):
            rows_after_start(database.directory)
        rows, recovered = rows_after_start(database.directory, force=True)
        assert rows == database.rows(without=2)
        assert any(f"at offset {start}, up to {end}" in damage for damage in recovered.damages)


class TestWhatDoesNotBelongThere:
    def test_a_block_that_was_written_twice_counts_once(self, tmp_path: Path, warnings: Warnings) -> None:
        database = sample_database(tmp_path, ARRANGEMENTS["several rows last"], is_ended=False)
        database.restore(database.data + database.data[database.ends[-2] :])
        assert rows_after_start(database.directory)[0] == database.rows()
        goes_on(database, warnings)

    @pytest.mark.parametrize("garbage", [b"x", b"\0", b"\xd5\xba\x0b\xab", b"garbage" * 100])
    def test_behind_the_end_marker(self, tmp_path: Path, garbage: bytes, warnings: Warnings) -> None:
        database = sample_database(tmp_path, ARRANGEMENTS["plain last"], is_ended=True)
        database.restore(database.data + garbage)
        with pytest.raises(StorageError, match=rf"{database.log}: .* at offset {database.ends[-1]}"):
            rows_after_start(database.directory)
        assert database.unchanged(database.data + garbage)
        rows, recovered = rows_after_start(database.directory, force=True)
        assert rows == database.rows()
        assert len(recovered.damages) == 1
        goes_on(database, warnings, force=True)


class TestHeader:
    @pytest.mark.slow
    def test_cut_at_every_byte_it_has_no_rows_behind_it(self, tmp_path: Path, warnings: Warnings) -> None:
        database = sample_database(tmp_path, ARRANGEMENTS["plain last"], is_ended=False)
        for size in range(database.ends[0]):
            database.restore(database.data[:size])
            assert rows_after_start(database.directory)[0] == database.before
            [said] = warnings()
            assert str(database.log) in said
            assert not database.log.exists()
            if size % 10 == 0:
                goes_on(database, warnings)

    def test_of_an_earlier_log_stops_the_start(self, tmp_path: Path) -> None:
        database = sample_database(tmp_path, ARRANGEMENTS["plain last"], is_ended=False)
        earlier = sorted(database.directory.glob("*.xlog"))[-2]
        for size in (0, 1, 40):
            earlier.write_bytes(database.files[earlier][:size])
            with pytest.raises(StorageError, match=rf"{earlier}: .* at offset 0"):
                rows_after_start(database.directory)

    def test_a_log_that_is_not_there_stops_the_start(self, tmp_path: Path) -> None:
        database = sample_database(tmp_path, ARRANGEMENTS["plain last"], is_ended=False)
        first, *middle, _ = sorted(database.directory.glob("*.xlog"))[-3:]
        for missing in (first, *middle):
            database.restore()
            missing.unlink()
            with pytest.raises(StorageError, match=r"\.xlog: .*missing"):
                rows_after_start(database.directory)
        rows, recovered = rows_after_start(database.directory, force=True)
        assert recovered.damages
        # Both changes of one row were in the log that is missing.
        changed = {key for key in after(database.rows(), []) if rows.get(key) != database.rows()[key]}
        assert 0 < len(changed) <= 3
        for changes in database.blocks:
            assert all(rows.get(key) == text for key, text in changes)


class TestSnapshot:
    def newest(self, database: SampleDatabase) -> Path:
        return max(database.directory.glob("*.snap"))

    @pytest.mark.slow
    def test_damaged_anywhere_it_is_refused_or_as_it_was(self, tmp_path: Path) -> None:
        database = sample_database(tmp_path, ARRANGEMENTS["plain last"], is_ended=False)
        path = self.newest(database)
        intact = database.files[path]
        header_end = intact.index(b"\n\n") + 2
        refused = 0
        positions = range(header_end, len(intact) - len(END_MARKER), 61)
        for position in positions:
            data = bytearray(intact)
            data[position] ^= 1 << position % 8
            path.write_bytes(data)
            started = rows_or_refusal(database.directory)
            if isinstance(started, str):
                refused += 1
                assert started.startswith(f"{path}: ")
                assert "at offset" in started
            else:
                assert started == (database.rows(), [])
            # What can be read depends on where the damage is; what is read is as it was.
            rows, recovered = rows_after_start(database.directory, force=True)
            assert recovered.damages or rows == database.rows()
            assert rows.items() <= database.rows().items()
        assert refused > len(positions) * 3 // 4

    def test_one_that_is_not_complete_is_not_taken_for_one(self, tmp_path: Path, warnings: Warnings) -> None:
        database = sample_database(tmp_path, ARRANGEMENTS["plain last"], is_ended=False)
        path = self.newest(database)
        for size in (len(database.files[path]) - 1, len(database.files[path]) // 2, 0):
            path.write_bytes(database.files[path][:size])
            with pytest.raises(StorageError, match=f"{path}: the snapshot is incomplete"):
                rows_after_start(database.directory)
            # The one before it and the logs behind that have everything.
            rows, recovered = rows_after_start(database.directory, force=True)
            assert rows == database.rows()
            assert len(recovered.damages) == 1
            warnings()

    def test_one_that_never_got_its_name_is_removed(self, tmp_path: Path, warnings: Warnings) -> None:
        database = sample_database(tmp_path, ARRANGEMENTS["plain last"], is_ended=False)
        (database.directory / "00000000000000000099.snap.inprogress").write_bytes(b"SNAP\n0.13\n")
        (database.directory / "00000000000000000099.xlog.inprogress").write_bytes(b"")
        with OpenDatabase(database.directory) as opened:
            assert rows_in(opened.box) == database.rows()
        assert not list(database.directory.glob("*.inprogress"))
        assert warnings() == []


@pytest.mark.parametrize("seed", range(10))
def test_whatever_happens_to_the_files_no_row_is_there_that_was_not_written(
    tmp_path: Path, seed: int, warnings: Warnings
) -> None:
    """Several damages at once, anywhere in any file, with and without force."""
    chance = random.Random(seed)
    database = sample_database(tmp_path, [PLAIN, SEVERAL, COMPRESSED, [(104, LONG)]], is_ended=bool(seed % 2))
    # A deletion may be among what cannot be read, so rows may be there that were deleted later.
    written = everything_written(database)
    for _ in range(20):
        database.restore()
        for path in chance.sample(sorted(database.files), chance.randint(1, 3)):
            data = bytearray(database.files[path])
            place = chance.randrange(len(data))
            match chance.randrange(4):
                case 0:
                    data[place] ^= 1 << chance.randrange(8)
                case 1:
                    del data[place:]
                case 2:
                    del data[place : place + chance.randint(1, 30)]
                case 3:
                    data[place : place + 16] = bytes(16)
            path.write_bytes(data)
        for force in (False, True):
            started = rows_or_refusal(database.directory, force=force)
            if isinstance(started, str):
                assert str(database.directory) in started
            else:
                assert all(text in written[key] for key, text in started[0].items())


def everything_written(database: SampleDatabase) -> dict[int, set[str]]:
    """Every text that each row ever had."""
    written: dict[int, set[str]] = {}

    def add(rows: Sequence[Change]) -> None:
        for key, text in rows:
            if text is not None:
                written.setdefault(key, set()).add(text)

    add(list(database.before.items()))
    add([(number, f"row {number}") for number in range(1, 30)])
    add([(4, f"changed {number}") for number in range(20, 30)])
    for changes in database.blocks:
        add(changes)
    return written
