"""Damaged files in ranges: read as by one reader from the beginning to the end, wherever the borders are."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.storage.errors import XlogError
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import FileType, OnDamage, RowEncoder, XlogReader, XlogWriter, decode_rows
from pyspark_tarantool.source.io import byte_ranges
from pyspark_tarantool.source.io.byte_ranges import read_blocks, split_file
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.io.data_files import DataFile, inspect_file
from pyspark_tarantool.source.io.filesystem import FoundFile
from pyspark_tarantool.source.options import OnDamaged
from tests.spark.source.reading import Read
from tests.storage.files import TIMESTAMP, header, insertion, numbered_log

BLOCKS: Final = 8


def _file_of(file_type: FileType, *, compress: bool) -> bytes:
    """A file of blocks of several sizes; blocks of logs have one row, those of snapshots two or three."""
    file = io.BytesIO()
    encoder = RowEncoder()
    writer = XlogWriter.create(file, header(file_type, VClock()), compress=compress)
    for number in range(1, BLOCKS + 1):
        text = f"{number} " * (300 if number % 4 == 0 else 3)
        writer.write([encoder.transaction(number, TIMESTAMP, (insertion(512, number, text),))])
    writer.end()
    return file.getvalue()


FILES: Final = {
    (file_type, compress): _file_of(file_type, compress=compress)
    for file_type in FileType
    for compress in (False, True)
}


@pytest.fixture(autouse=True)
def small_ranges() -> Iterator[None]:
    """Ranges of a few bytes, where real ones have some kilobytes at least."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(byte_ranges, "_SMALLEST", 1)
        yield


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path of a file that each example overwrites."""
    return tmp_path_factory.mktemp("damage") / "test"


def _found(data: bytes, path: Path) -> DataFile:
    path.write_bytes(data)
    file = inspect_file(FoundFile(str(path), len(data)))
    assert file is not None
    return file


def _numbers(payloads: list[bytes]) -> list[int]:
    return [row.lsn for payload in payloads for row in decode_rows(payload)]


def _sequential(data: bytes) -> list[int]:
    reader = XlogReader(io.BytesIO(data), "test", OnDamage.SKIP)
    return _numbers([block.payload for block in reader.blocks()])


def _in_ranges(file: DataFile, partition_bytes: int) -> tuple[list[int], int]:
    """The rows of all ranges, and how many bytes were skipped."""
    payloads, skipped = [], 0
    for part in split_file(file, partition_bytes):
        damages = DamageHandler(OnDamaged.SKIP)
        payloads += [block.payload for block in read_blocks(part, damages)]
        skipped += sum(end - error.offset for error, end in damages.skipped)
    return _numbers(payloads), skipped


def _errors(file: DataFile, partition_bytes: int) -> list[XlogError]:
    """The errors of all ranges."""
    errors = []
    for part in split_file(file, partition_bytes):
        try:
            list(read_blocks(part, DamageHandler(OnDamaged.FAIL)))
        except XlogError as error:
            errors.append(error)
    return errors


files = st.sampled_from(sorted(FILES))
sizes = st.integers(30, 3000)


@st.composite
def damaged(draw: st.DrawFn, *, places: int) -> bytes:
    """A file in which some bytes are wrong, or which ends early."""
    data = bytearray(FILES[draw(files)])
    begin = data.index(b"\n\n") + 2
    for _ in range(draw(st.integers(1, places))):
        place = draw(st.integers(begin, len(data) - 1))
        data[place] ^= draw(st.integers(1, 255))
    if draw(st.booleans()) or places == 1:
        return bytes(data)
    return bytes(data[: draw(st.integers(begin, len(data)))])


class TestRanges:
    @given(data=st.sampled_from(sorted(FILES.values())), size=sizes)
    def test_of_an_intact_file_have_each_block_once(self, scratch: Path, data: bytes, size: int) -> None:
        file = _found(data, scratch)
        assert _in_ranges(file, size) == (list(range(1, BLOCKS + 1)), 0)
        assert _errors(file, size) == []

    @given(data=damaged(places=4), size=sizes)
    def test_of_a_damaged_file_have_what_one_reader_has(self, scratch: Path, data: bytes, size: int) -> None:
        """Nothing is lost beside the damage, and nothing is there twice; nor is anything reported twice."""
        file = _found(data, scratch)
        rows, skipped = _in_ranges(file, size)
        assert rows == _sequential(data)
        assert (rows, skipped) == _in_ranges(file, 0)

    @given(data=damaged(places=1), size=sizes)
    def test_of_a_file_with_one_wrong_byte_fail_once(self, scratch: Path, data: bytes, size: int) -> None:
        """The same error wherever the borders are; none where only the end marker of a log is missing."""
        file = _found(data, scratch)
        assert [(error.offset, error.reason) for error in _errors(file, size)] == [
            (error.offset, error.reason) for error in _errors(file, 0)
        ]
        assert len(_errors(file, 0)) <= 1
        if _sequential(data) != list(range(1, BLOCKS + 1)):
            assert len(_errors(file, 0)) == 1 or not file.closed

    @given(size=sizes, number=st.integers(0, 7))
    def test_of_a_file_with_a_file_inside_are_right_or_refused(
        self, scratch: Path, size: int, number: int
    ) -> None:
        """A tuple may hold the bytes of blocks, which a task must not take for blocks of the file."""
        inner = numbered_log(8)
        text = (b"." * number + inner).decode("latin-1").encode()
        raw = io.BytesIO()
        encoder = RowEncoder()
        writer = XlogWriter.create(raw, header(), compress=False)
        for lsn, value in ((1, "a"), (2, b"." * number + inner), (3, text), (4, "b")):
            writer.write([encoder.transaction(lsn, TIMESTAMP, (insertion(512, lsn, value),))])
        writer.end()
        file = _found(raw.getvalue(), scratch)
        assert _in_ranges(file, 0) == ([1, 2, 3, 4], 0)
        errors = [error.reason for error in _errors(file, size)]
        if errors:
            assert any("partition_bytes=0" in reason for reason in errors)
        else:
            assert _in_ranges(file, size) == ([1, 2, 3, 4], 0)


class TestQueries:
    """What users see of damage."""

    @pytest.fixture
    def log(self, tmp_path: Path) -> Path:
        """A log whose fifth row cannot be read."""
        data = numbered_log(8)
        place = data.index(b"row 5")
        path = tmp_path / "00000000000000000000.xlog"
        path.write_bytes(data[:place] + b"ROW" + data[place + 3 :])
        return path

    def test_fail_with_file_and_offset(self, log: Path) -> None:
        with pytest.raises(XlogError, match=rf"^{log}: .* at offset [0-9]+$"):
            Read(log, mode="changes")

    def test_skip_and_tell(self, log: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        reports = tmp_path / "reports"
        read = Read(log, mode="changes", damaged="skip", bad_records_path=reports)
        assert read.column("lsn") == [1, 2, 3, 4, 6, 7, 8]
        (report,) = [line for path in reports.iterdir() for line in path.read_text().splitlines()]
        place = log.read_bytes().index(b"ROW")
        told = json.loads(report)
        assert told["file"] == str(log)
        assert told["offset"] < place < told["offset"] + told["bytes"]
        assert "checksum" in told["reason"]
        assert any(str(log) in message for message in caplog.messages)

    def test_of_a_log_that_somebody_writes_end_before_what_is_not_whole(self, tmp_path: Path) -> None:
        path = tmp_path / "00000000000000000000.xlog"
        path.write_bytes(numbered_log(8, end=False)[:-5])
        assert Read(path, mode="changes").column("lsn") == list(range(1, 8))
