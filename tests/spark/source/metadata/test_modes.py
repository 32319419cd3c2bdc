"""Tables about files and databases: what there is, before any space is read."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from iproto_server.storage.errors import XlogError
from pyspark_tarantool.data_source import TarantoolDataSource
from pyspark_tarantool.source.errors import SourceError
from tests.spark.jobs_data import tutorial_directory
from tests.storage.databases import jobs_box, save


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


def test_damage(directory: Path, tmp_path: Path) -> None:
    """It is an error, or skipped; the size and the header are known anyway."""
    (log,) = directory.glob("*.xlog")
    content = bytearray(log.read_bytes())
    content[-20] ^= 0xFF
    (tmp_path / log.name).write_bytes(content)
    with pytest.raises(XlogError, match="offset"):
        read(tmp_path, "logs")
    (row,) = read(tmp_path, "logs", damaged="skip")
    assert row["size_bytes"] == len(content)
