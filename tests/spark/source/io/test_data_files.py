"""What is found at paths, which spaces there are, and what is said where there is nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyarrow import fs
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from iproto_server.box.catalog.system_space_ids import INDEX, SPACE
from iproto_server.codec import msgpack as codec
from iproto_server.storage.directory import file_name
from iproto_server.storage.errors import LogGapError, XlogError
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import FileType, RowEncoder, RowType, XlogWriter, insert_body
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.io import filesystem
from tests.spark.source.reading import Read
from tests.storage.databases import jobs_box, save
from tests.storage.files import TIMESTAMP, deletion, header, insertion

SNAPSHOT = file_name(FileType.SNAPSHOT, 10)


def write_log(directory: Path, first: int, last: int, *, more: int = 0, previous: int | None = None) -> Path:
    """A log with the rows of some numbers, and with more of them that a failed write has left."""
    path = directory / file_name(FileType.LOG, first - 1)
    before = None if previous is None else VClock({1: previous})
    clock = header(FileType.LOG, VClock({1: first - 1}), previous_vclock=before)
    encoder = RowEncoder()
    with path.open("wb", buffering=0) as file:
        writer = XlogWriter.create(file, clock)
        for lsn in range(first, last + more + 1):
            writer.write([encoder.transaction(lsn, TIMESTAMP, (insertion(512, lsn, f"of {first}"),))])
        writer.end()
    return path


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A snapshot of two jobs with the clock 10, and two logs that begin there."""
    place = tmp_path / "data"
    place.mkdir()
    save(jobs_box([1, "a"], [2, "b"]), place, {1: 10})
    write_log(place, 11, 15, more=2)
    write_log(place, 16, 18, previous=10)
    return place


def ids(path: str | Path, **options: object) -> list[int]:
    return list(
        map(int, Read(path, None, (), **{"mode": "snapshot", "space": "jobs", **options}).column("id"))
    )


def lsns(path: str | Path, **options: object) -> list[int]:
    return Read(path, None, (), **{"mode": "changes", "tuples": "json", **options}).column("lsn")


class TestPaths:
    def test_may_be_files_directories_and_globs(self, directory: Path) -> None:
        assert ids(directory) == ids(directory / SNAPSHOT) == [1, 2]
        assert ids(directory / "*.snap") == ids(directory.parent / "d?ta" / "0*1[0].snap") == [1, 2]
        assert lsns(directory.parent / "d*") == list(range(11, 19))

    def test_may_be_several(self, directory: Path) -> None:
        """A file that is named twice is read once."""
        logs = sorted(directory.glob("*.xlog"))
        assert lsns(json.dumps([str(logs[1]), str(logs[0]), str(logs[1])])) == list(range(11, 19))

    def test_may_be_uris(self, directory: Path) -> None:
        assert ids(directory.as_uri()) == ids(f"{directory.as_uri()}/*.snap") == [1, 2]

    def test_may_be_of_any_filesystem(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Files need only be seekable: here they are below a directory of another filesystem."""
        below = fs.SubTreeFileSystem(str(directory.parent), fs.LocalFileSystem())
        monkeypatch.setattr(filesystem, "locate", lambda uri: (below, uri.removeprefix("test://")))
        assert ids("test://data") == ids("test://data/*.snap") == [1, 2]
        assert lsns("test://data") == list(range(11, 19))

    def test_may_have_the_logs_elsewhere(self, directory: Path, tmp_path: Path) -> None:
        logs = tmp_path / "logs"
        logs.mkdir()
        for path in directory.glob("*.xlog"):
            shutil.move(path, logs)
        assert sorted(ids(directory, mode="current", wal_dir=logs)) == [1, 2, *range(11, 19)]
        assert lsns(directory, wal_dir=logs) == list(range(11, 19))

    @pytest.mark.parametrize(
        ("path", "sentence"),
        [
            ("none", "{}: there is no such file or directory"),
            ("*.none", "{}: no file or directory matches"),
            ("empty", "{}: there are no snapshots and no logs"),
        ],
    )
    def test_with_nothing_there_are_told(self, directory: Path, path: str, sentence: str) -> None:
        (directory / "empty").mkdir()
        with pytest.raises(SourceError) as error:
            ids(directory / path)
        assert str(error.value) == sentence.format(directory / path)

    def test_of_unknown_filesystems_are_told(self) -> None:
        with pytest.raises(SourceError, match=r"^abc://x: .*abc"):
            ids("abc://x")

    def test_of_other_files_are_told(self, directory: Path) -> None:
        path = directory / "notes.txt"
        path.write_text("This is no snapshot.\n" * 300)
        assert ids(directory) == [1, 2]
        with pytest.raises(XlogError, match=f"^{path}: no header at offset 0$"):
            ids(path)

    def test_with_logs_only_have_no_snapshot(self, directory: Path) -> None:
        with pytest.raises(SourceError, match=r"^there is no snapshot, only logs such as .*\.xlog$"):
            ids(directory / "*.xlog")


class TestSpaces:
    def test_are_known_by_name_and_id(self, directory: Path) -> None:
        assert ids(directory, space=512) == [1, 2]
        assert Read(directory, mode="snapshot", space="_space").column("name")[-1] == "jobs"

    def test_that_are_unknown_are_told_with_those_there_are(self, directory: Path) -> None:
        with pytest.raises(SourceError, match=r"^there is no space 'job': there are jobs$"):
            ids(directory, space="job")
        with pytest.raises(SourceError, match=r"^there is no space 513: there are jobs$"):
            ids(directory, space=513)


class TestLogs:
    def test_show_no_leftovers_and_nothing_twice(self, directory: Path) -> None:
        """The rows 16 and 17 of the first log were never acknowledged: the next log has others."""
        after = Read(directory, mode="changes", space="jobs").column("after")
        assert [(int(row["id"]), row["status"]) for row in after] == [
            *((lsn, "of 11") for lsn in range(11, 16)),
            *((lsn, "of 16") for lsn in range(16, 19)),
        ]

    def test_that_are_missing_are_told(self, directory: Path, caplog: pytest.LogCaptureFixture) -> None:
        late = write_log(directory, 31, 32, previous=25)
        with pytest.raises(LogGapError, match=f"^{late}: it follows a log with the clock"):
            lsns(directory)
        assert lsns(directory, damaged="skip") == [*range(11, 19), 31, 32]
        assert any("a log is missing" in message for message in caplog.messages)

    def test_are_split_and_read_as_one(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pyspark_tarantool.source.io.byte_ranges._SMALLEST", 1)
        read = Read(directory, mode="changes", partition_bytes=100)
        assert read.partitions > 4
        assert read.column("lsn") == list(range(11, 19))


def test_users_of_spark_see_the_sentence(spark: SparkSession, directory: Path) -> None:
    """Whether it is said while a query is planned, or by a task."""
    source = spark.read.format("tarantool").options(mode="snapshot", space="none")
    with pytest.raises(PySparkException, match="SourceError: there is no space 'none': there are jobs"):
        source.load(str(directory))
    path = directory / SNAPSHOT
    data = bytearray(path.read_bytes())
    data[-10] ^= 1
    path.write_bytes(data)
    with pytest.raises(
        PySparkException, match=f"XlogError: {path}: wrong checksum of a block at offset [0-9]+"
    ):
        spark.read.format("tarantool").options(mode="snapshot", space="jobs").load(str(directory)).collect()


def test_names_of_spaces_that_were_dropped_are_known(tmp_path: Path) -> None:
    """Their rows are in the logs still; the definitions are, too."""
    box = jobs_box([1, "a"])
    definitions = [(SPACE, row) for row in box.catalog.space(SPACE).rows()]
    definitions += [(INDEX, row) for row in box.catalog.space(INDEX).rows()]
    requests = [
        *((RowType.INSERT, insert_body(space, raw)) for space, raw in definitions),
        insertion(512, 1, "a"),
        *(deletion(INDEX, *codec.unpack(raw)[:2]) for space, raw in definitions if space == INDEX),
        *(deletion(SPACE, codec.unpack(raw)[0]) for space, raw in definitions if space == SPACE),
    ]
    encoder = RowEncoder()
    with (tmp_path / file_name(FileType.LOG, 0)).open("wb", buffering=0) as file:
        writer = XlogWriter.create(file, header(FileType.LOG, VClock()))
        rows = (encoder.transaction(lsn, TIMESTAMP, (one,)) for lsn, one in enumerate(requests, 1))
        writer.write([b"".join(rows)])
        writer.end()
    read = Read(tmp_path, mode="changes", space="jobs")
    assert [(row["space"], row["after"]["status"]) for row in read.rows] == [("jobs", "a")]
    with pytest.raises(SourceError, match=r"^there is no space 'jobs'"):
        Read(tmp_path, mode="current", space="jobs")
