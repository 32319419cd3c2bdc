"""Changes and states of a space that was dropped, and created again with the same id and other fields."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.schema.definitions import SpaceDefinition
from tests.real_tarantool import RealTarantool
from tests.spark.source.reading import Read
from tests.storage.databases import new_database, write_log
from tests.storage.files import Request, deletion, insertion

SPACE, INDEX, ID = 280, 288, 600

LIFE = """
local numbers = {{'id', 'unsigned'}, {'v', 'unsigned'}}
local texts = {{'x', 'string'}, {'id', 'string'}}
local function create(name, format, kind, field)
    local s = box.schema.space.create(name, {id = 600, format = format})
    s:create_index('pk', {parts = {field, kind}})
    return s
end
local s = create('q', numbers, 'unsigned', 1)
for i = 1, 300 do s:insert{i, i} end
box.snapshot()
for i = 301, 303 do s:insert{i, i} end
s:upsert({1, 1}, {{'+', 2, 1}})
s:drop()
s = create('r', numbers, 'unsigned', 1)
s:insert{7, 7}
s:drop()
s = create('q', texts, 'string', 2)
for i = 1, 3 do s:insert{'x', 'k' .. i} end
s:update('k1', {{'=', 'x', 'y'}})
s:create_index('second', {parts = {1, 'string'}, unique = false})
"""


@pytest.fixture(scope="module")
def tarantool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("tarantool")
    with RealTarantool(directory, LIFE, {"wal_mode": "'write'"}):
        pass
    return directory


def _create(name: str, kind: str = "unsigned") -> list[Request]:
    return [
        insertion(SPACE, ID, 1, name, "memtx", 0, {}, [{"name": "id", "type": kind}]),
        insertion(INDEX, ID, 0, "pk", "tree", {"unique": True}, [[0, kind]]),
    ]


def _drop() -> list[Request]:
    return [deletion(INDEX, ID, 0), deletion(SPACE, ID)]


def _write(directory: Path, *requests: Request) -> None:
    write_log(directory, dict(new_database(directory).vclock), [[request] for request in requests])


def _keys(read: Read) -> list[tuple[str, Any]]:
    return list(zip(read.column("space"), read.column("key"), strict=True))


@pytest.mark.real_tarantool
class TestTarantool:
    @pytest.mark.parametrize("partition_bytes", [0, 1, 1000])
    def test_states_have_the_rows_of_the_latest_space(self, tarantool: Path, partition_bytes: int) -> None:
        read = Read(tarantool, space="q", partition_bytes=partition_bytes)
        assert sorted((row["x"], row["id"]) for row in read.rows) == [("x", "k2"), ("x", "k3"), ("y", "k1")]

    def test_states_have_the_rows_of_the_space_of_that_time(self, tarantool: Path) -> None:
        lsn = 2 + 303
        read = Read(tarantool, space="q", mode="at_lsn", lsn=lsn)
        assert sorted(read.column("v")) == list(map(Decimal, range(1, 304)))

    @pytest.mark.parametrize("space", ["q", ID])
    def test_changes_name_the_options(self, tarantool: Path, space: object) -> None:
        with pytest.raises(SourceError, match=r"space 'q': it was created again with other fields") as error:
            Read(tarantool, space=space, mode="changes")
        assert "recreated=skip" in str(error.value)
        assert "tuples=json" in str(error.value)

    @pytest.mark.parametrize("space", ["q", ID])
    def test_changes_of_the_latest_space(self, tarantool: Path, space: object) -> None:
        read = Read(tarantool, space=space, mode="changes", recreated="skip")
        assert [row["id"] for row in read.column("key")] == ["k1", "k2", "k3", "k1"]
        assert [row and row["x"] for row in read.column("after")] == ["x", "x", "x", None]

    def test_texts_have_all_rows_with_the_key_and_the_name_of_their_own_space(self, tarantool: Path) -> None:
        numbers = [("q", f"[{number}]") for number in [*range(1, 304), 1]]
        texts = [("q", f'["k{number}"]') for number in (1, 2, 3, 1)]
        assert _keys(Read(tarantool, space=ID, mode="changes", tuples="json")) == [
            *numbers,
            ("r", "[7]"),
            *texts,
        ]
        assert _keys(Read(tarantool, space="q", mode="changes", tuples="json")) == numbers + texts
        everything = Read(tarantool, mode="changes")
        assert [each for each in _keys(everything) if each[0] in "qr"] == [*numbers, ("r", "[7]"), *texts]

    def test_a_range_behind_the_drop_needs_no_option(self, tarantool: Path) -> None:
        lsns = Read(tarantool, space="q", mode="changes", recreated="skip").column("lsn")
        read = Read(tarantool, space="q", mode="changes", starting_lsn=lsns[0])
        assert read.column("lsn") == lsns


def test_the_same_fields_are_the_same_columns(tmp_path: Path) -> None:
    """Nothing has to be chosen then, as before."""
    _write(tmp_path, *_create("q"), insertion(ID, 1), *_drop(), *_create("q"), insertion(ID, 2))
    assert [row["id"] for row in Read(tmp_path, space="q", mode="changes").column("key")] == [1, 2]
    assert Read(tmp_path, space="q").column("id") == [2]


def test_an_earlier_space_without_rows_does_not_matter(tmp_path: Path) -> None:
    _write(tmp_path, *_create("q", "string"), *_drop(), *_create("q"), insertion(ID, 2))
    assert [row["id"] for row in Read(tmp_path, space="q", mode="changes").column("key")] == [2]


def test_a_space_that_is_gone_has_its_last_fields(tmp_path: Path) -> None:
    requests = [
        *_create("q", "string"),
        insertion(ID, "a"),
        *_drop(),
        *_create("q"),
        insertion(ID, 2),
        *_drop(),
    ]
    _write(tmp_path, *requests)
    read = Read(tmp_path, space="q", mode="changes", recreated="skip")
    assert [row["id"] for row in read.column("key")] == [2]


def test_several_members_write_at_the_same_time(tmp_path: Path) -> None:
    """A row is of the space that existed when it was logged, whatever its member's LSN."""
    clock = dict(new_database(tmp_path).vclock)
    write_log(tmp_path, clock, [[each] for each in [*_create("q", "string"), insertion(ID, "a")]])
    clock = {1: clock.get(1, 0) + 3}
    write_log(tmp_path, clock, [[insertion(ID, "b")], [insertion(ID, "c")]], member=2)
    clock[2] = 2
    write_log(tmp_path, clock, [[each] for each in [*_drop(), *_create("q"), insertion(ID, 1)]])
    clock[1] += 5
    write_log(tmp_path, clock, [[insertion(ID, 2)]], member=2)
    read = Read(tmp_path, space="q", mode="changes", recreated="skip")
    assert [row["id"] for row in read.column("key")] == [1, 2]


@pytest.mark.parametrize("options", [{"space": "q"}, {"mode": "changes"}, {"mode": "snapshots"}])
def test_the_option_is_for_changes_of_a_space(tmp_path: Path, options: dict[str, Any]) -> None:
    _write(tmp_path, *_create("q"))
    with pytest.raises(SourceError, match="recreated"):
        Read(tmp_path, recreated="skip", **options)
    with pytest.raises(SourceError, match="'often', not one of fail, skip"):
        Read(tmp_path, space="q", mode="changes", recreated="often")


def test_definitions_of_earlier_versions_are_read() -> None:
    """A table that Spark remembers has the text of a definition."""
    full = SpaceDefinition(ID, "q", 0, ({"name": "id"},), (), {}, True)
    short = SpaceDefinition.unpack(_without_last(full.pack(), 4))
    assert short == full


def _without_last(text: str, count: int) -> str:
    from base64 import b64decode, b64encode

    from iproto_server.codec import msgpack as codec

    return b64encode(codec.pack(codec.unpack(b64decode(text))[:-count])).decode()
