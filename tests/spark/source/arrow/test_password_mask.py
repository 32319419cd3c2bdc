"""Hashes of passwords are shown on request only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from iproto_server.box.catalog.system_space_ids import USER
from iproto_server.codec import msgpack as codec
from pyspark_tarantool.source.errors import SourceError
from tests.spark.source.changing_spaces import Database, primary, space
from tests.spark.source.reading import Read
from tests.storage.files import insertion, update, upsert

_HASH = "FOZVZ6vbUTXQz9mnCzAywXmknuc="
_AUTH = {"chap-sha1": _HASH}
_ROW = (40, 1, "alice", "user", _AUTH, [{"pap-sha256": [_HASH, b"\x01" + _HASH.encode()]}], 1700000000)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    Database(tmp_path).log(
        space(600, "jobs", "id", "data"),
        primary(600),
        insertion(600, 1, _HASH[:5]),
        insertion(USER, *_ROW),
        update(USER, [40], [["=", 5, {"chap-sha1": _HASH}], ["=", 3, "alicia"]], index_base=1),
        update(USER, [40], [["=", "auth", _AUTH], ["=", -1, _HASH], ["=", "name", "anna"]]),
        upsert(USER, [41, 1, "bob", "user", _AUTH], [["=", 4, _AUTH], ["=", 4, {}]]),
        insertion(600, 2, "x"),
    )
    return tmp_path


def _everything(read: Read) -> str:
    """All values as a text, those of packed columns unpacked."""

    def shown(value: Any) -> Any:
        return codec.unpack(value) if isinstance(value, bytes) else value

    return repr([{name: shown(value) for name, value in row.items()} for row in read.rows])


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "changes"},
        {"mode": "changes", "raw": "true"},
        {"mode": "changes", "space": "_user"},
        {"mode": "changes", "space": "_user", "tuples": "json", "raw": "true"},
        {"mode": "current", "space": "_user"},
        {"mode": "current", "space": "_user", "raw": "true"},
        {"mode": "at_lsn", "lsn": "4", "space": USER, "raw": "true"},
    ],
)
def test_no_reader_shows_a_hash(directory: Path, options: dict[str, Any]) -> None:
    text = _everything(Read(directory, **options))
    assert _HASH not in text
    assert "alice" in text or "anna" in text
    assert "chap-sha1" in text
    assert _HASH in _everything(Read(directory, passwords="show", **options))


def test_nothing_else_changes(directory: Path) -> None:
    masked, shown = (
        Read(directory, mode="changes", passwords=passwords).rows for passwords in ("mask", "show")
    )
    of_jobs = [row for row in shown if row["space"] == "jobs"]
    assert [row for row in masked if row["space"] == "jobs"] == of_jobs
    assert [row["after"] for row in of_jobs] == [f'[1,"{_HASH[:5]}"]', '[2,"x"]']
    assert [row["operations"] for row in masked if row["space"] == "_user"] == [
        None,
        '[["=",4,{"chap-sha1":"********"}],["=",2,"alicia"]]',
        '[["=","auth",{"chap-sha1":"********"}],["=",-1,"********"],["=","name","anna"]]',
        '[["=",4,{"chap-sha1":"********"}],["=",4,{}]]',
    ]


def test_a_wrong_choice(directory: Path) -> None:
    with pytest.raises(SourceError, match="'yes', not one of mask, show"):
        Read(directory, mode="changes", passwords="yes")
