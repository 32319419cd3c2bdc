"""Tables about files and databases: what there is, before any space is read."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from iproto_server.storage.xlog import FileType, Row, XlogWriter, encode_row
from pyspark_tarantool.data_source import TarantoolDataSource
from pyspark_tarantool.source.errors import SourceError
from tests.spark.jobs_data import tutorial_directory
from tests.storage.databases import jobs_box, new_database, save, write_log
from tests.storage.files import header, insertion


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a server: a snapshot and a log."""
    return tutorial_directory(tmp_path_factory.mktemp("tutorial"))


def read(path: Path, mode: str, **options: str) -> list[dict[str, Any]]:
    """Read a table as Spark does, without a Spark."""
    source = TarantoolDataSource({"path": str(path), "mode": mode, **options})
    names = source.schema().fieldNames()
    reader = source.reader(source.schema())
    rows: list[dict[str, Any]] = []
    for part in reader.partitions():
        copy, copied_part = pickle.loads(pickle.dumps((reader, part)))
        for each in copy.read(copied_part):
            rows += [dict(zip(names, each, strict=True))] if isinstance(each, tuple) else each.to_pylist()
    return rows


def test_snapshots(directory: Path) -> None:
    (row,) = read(directory, "snapshots")
    (file,) = directory.glob("*.snap")
    assert (row["file"], row["size_bytes"]) == (str(file), file.stat().st_size)
    assert (row["lsn"], row["vclock"], row["complete"]) == (0, "{}", True)
    assert len(row["instance"]) == 36
    assert row["written"] is not None


def test_logs(directory: Path) -> None:
    (row,) = read(directory, "logs")
    (file,) = directory.glob("*.xlog")
    assert (row["file"], row["size_bytes"], row["closed"]) == (str(file), file.stat().st_size, True)
    assert (row["lsn"], row["first_lsn"]) == (0, 1)
    assert row["last_lsn"] > 10
    assert row["first_time"] < row["last_time"]


def test_spaces_and_indexes(directory: Path) -> None:
    spaces = {row["name"]: row for row in read(directory, "spaces")}
    assert {"_space", "queue"} <= spaces.keys()
    queue = spaces["queue"]
    assert (queue["id"], queue["engine"]) == (512, "memtx")
    assert [field["name"] for field in json.loads(queue["format"])] == ["id", "status", "runat", "data"]
    indexes = [row for row in read(directory, "indexes") if row["space_id"] == 512]
    assert (indexes[0]["index_id"], indexes[0]["type"]) == (0, "tree")
    assert json.loads(indexes[0]["options"])["unique"] is True


def test_users_without_their_passwords(directory: Path) -> None:
    rows = read(directory, "users")
    assert {(row["name"], row["type"]) for row in rows} >= {("admin", "user"), ("public", "role")}
    assert rows[0].keys() == {"id", "owner", "name", "type"}


def test_a_snapshot_alone_has_no_logs(tmp_path: Path) -> None:
    save(jobs_box([1, "ready"]), tmp_path, {})
    assert read(tmp_path, "logs") == []
    assert len(read(tmp_path, "snapshots")) == 1


def test_in_spark(spark: SparkSession, directory: Path) -> None:
    table = spark.read.format("tarantool").option("mode", "logs").load(str(directory))
    row = table.selectExpr("last_time > first_time", "last_lsn", "closed").collect()[0]
    assert (row[0], row.closed) == (True, True)
    users = spark.read.format("tarantool").option("mode", "users").load(str(directory))
    assert users.where("type = 'user'").count() >= 2


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"space": "queue"}, 'mode=logs is about the whole database, without the option "space"'),
        ({"lsn": "1"}, 'the option "lsn" is for at_lsn only, not for changes'),
        ({"colour": "red"}, 'there is no option "colour"'),
    ],
)
def test_wrong_options(directory: Path, options: dict[str, str], sentence: str) -> None:
    with pytest.raises(SourceError) as caught:
        read(directory, "logs", **options)
    assert str(caught.value) == sentence


def test_a_directory_without_files(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there are no snapshots and no logs"):
        read(tmp_path, "logs")


def _damaged_copy(directory: Path, target: Path, place: int, name: str = "") -> Path:
    (log,) = directory.glob("*.xlog")
    content = bytearray(log.read_bytes())
    content[place] ^= 0xFF
    copy = target / (name or log.name)
    copy.write_bytes(content)
    return copy


@pytest.mark.parametrize("damaged", ["fail", "skip"])
def test_one_damaged_log_is_pointed_out(directory: Path, tmp_path: Path, damaged: str) -> None:
    """All others are listed as usual; of the damaged one, what is known."""
    (log,) = directory.glob("*.xlog")
    (tmp_path / log.name).write_bytes(log.read_bytes())
    end = _damaged_copy(directory, tmp_path, -20, "1.xlog")
    head = _damaged_copy(directory, tmp_path, 0, "2.xlog")
    rows = {row["file"]: row for row in read(tmp_path, "logs", damaged=damaged)}
    assert len(rows) == 3
    assert rows[str(tmp_path / log.name)]["damage"] is None
    assert rows[str(tmp_path / log.name)]["last_lsn"] > 10
    assert "offset" in rows[str(end)]["damage"]
    assert (rows[str(end)]["first_lsn"], rows[str(end)]["size_bytes"]) == (1, end.stat().st_size)
    assert str(head) in rows[str(head)]["damage"]
    assert (rows[str(head)]["first_lsn"], rows[str(head)]["size_bytes"]) == (None, head.stat().st_size)


def test_damage_is_reported(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    _damaged_copy(directory, tmp_path / "data", -20)
    reports = tmp_path / "reports"
    read(tmp_path / "data", "logs", damaged="skip", bad_records_path=str(reports))
    assert [json.loads(path.read_text())["reason"] for path in reports.iterdir()] != []


def test_a_damaged_snapshot_is_pointed_out(directory: Path, tmp_path: Path) -> None:
    (snapshot,) = directory.glob("*.snap")
    content = bytearray(snapshot.read_bytes())
    content[300] ^= 0xFF
    (tmp_path / snapshot.name).write_bytes(content)
    (row,) = read(tmp_path, "snapshots")
    assert "offset" in row["damage"]
    assert row["lsn"] == 0


def _row(lsn: int, member: int, timestamp: float) -> bytes:
    kind, body = insertion(600, lsn)
    row = Row(kind, lsn, 600, body=body, timestamp=timestamp, replica_id=member, group_id=int(member == 0))
    return encode_row(row)


def test_rows_of_local_spaces_have_no_lsn_of_a_member(tmp_path: Path) -> None:
    """They are counted apart, so the last row of a log may have a lower number than the first one."""
    clock = dict(new_database(tmp_path).vclock)
    write_log(tmp_path, clock, [[insertion(600, 1)], [insertion(600, 2)]], first_lsn=9)
    names = ("first_lsn", "first_replica_id", "last_lsn", "last_replica_id")
    (row,) = read(tmp_path, "logs")
    assert tuple(row[name] for name in names) == (9, 1, 10, 1)
    log = next(tmp_path.glob("*.xlog"))
    own = [_row(9, 1, 1.5), _row(10, 1, 2.5)]
    local = [_row(1, 0, 0.5), _row(2, 0, 3.5)]
    with log.open("wb", buffering=0) as file:
        writer = XlogWriter.create(file, header(FileType.LOG, clock))
        for each in (local[0], *own, local[1]):
            writer.write([each])
        writer.end()
    (row,) = read(tmp_path, "logs")
    assert tuple(row[name] for name in names) == (9, 1, 10, 1)
    assert (row["first_time"].timestamp(), row["last_time"].timestamp()) == (0.5, 3.5)
