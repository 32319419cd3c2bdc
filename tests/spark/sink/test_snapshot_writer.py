"""Rows loaded into a snapshot, from which our server and a real Tarantool start."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, MapType, StringType, StructType

from iproto_server.codec import msgpack as codec
from iproto_server.tools.files.check import check_database
from iproto_server.tools.files.check_files import Findings
from pyspark_tarantool.sink import snapshot_parts, unique_check
from pyspark_tarantool.sink.snapshot_writer import SnapshotWriter, snapshot_writer
from pyspark_tarantool.source.errors import SourceError
from tests.conftest import StartServer, StartTarantool
from tests.iproto_client import EVAL, EXPRESSION, INSERT, REPLACE, SPACE_ID, TUPLE, IprotoClient
from tests.real_tarantool import GUEST_IS_SUPER, RealTarantool, queue_application
from tests.running_server import QUEUE_APPLICATION, RunningServer
from tests.spark.sink.rows import batch, columns

_NAME = "00000000000000000000.snap"

Start = Callable[..., RunningServer | RealTarantool]


@pytest.fixture(params=["ours", pytest.param("tarantool", marks=pytest.mark.real_tarantool)])
def start_on(request: pytest.FixtureRequest, start_server: StartServer) -> Iterator[Start]:
    """Starts ours, then a real Tarantool, on a directory with a snapshot."""
    running: list[RealTarantool] = []

    def start(directory: Path, *, with_queue: bool = False) -> RunningServer | RealTarantool:
        if request.param == "ours":
            return start_server([QUEUE_APPLICATION] if with_queue else [], work_dir=directory)
        application = queue_application() if with_queue else GUEST_IS_SUPER
        running.append(RealTarantool(directory, application, {"wal_mode": "'write'"}))
        return running[-1]

    yield start
    for server in running:
        server.stop()


def load(
    options: Mapping[str, str],
    schema: StructType,
    *partitions: Sequence[Sequence[Any]],
    overwrite: bool = False,
) -> None:
    """Write a table as Spark does."""
    writer = snapshot_writer(options, schema, overwrite)
    assert isinstance(writer, SnapshotWriter)
    try:
        written = [
            writer.write_part(iter([batch(schema, rows)]), number, number)
            for number, rows in enumerate(partitions)
        ]
    except SourceError:
        writer.abort([])
        raise
    writer.commit([*reversed(written)])


def refusal(options: Mapping[str, str], schema: StructType, *partitions: Sequence[Sequence[Any]]) -> str:
    """The words in which a table is refused; nothing is left behind."""
    with pytest.raises(SourceError) as caught:
        load(options, schema, *partitions)
    path = Path(options["path"] or "/nowhere")
    assert not path.exists() or not list(path.iterdir())
    return str(caught.value)


def problems(directory: Path) -> list[str]:
    """What `iproto-server check` has against a database."""
    told: list[str] = []
    check_database(directory, directory, Findings(told.append, told.append))
    return told


def test_both_servers_start_from_a_snapshot_of_several_parts(tmp_path: Path, start_on: Start) -> None:
    """Rows in no order; every index is in its own, and the database goes on from there."""
    count = 100_000
    rows = [(number, f"name {number % 1000:04}", number * 7 % count) for number in range(count)]
    rows.sort(key=lambda row: row[2])
    options = {
        "path": str(tmp_path),
        "space": "things",
        "index.name": "name, id",
        "index.other": "other nonunique",
    }
    load(options, columns("id long, name string, other long"), rows[:30_000], [], rows[30_000:])
    assert [path.name for path in tmp_path.iterdir()] == [_NAME]
    assert problems(tmp_path) == []
    server = start_on(tmp_path)
    with IprotoClient(server.host, server.port) as client:
        assert client.everything(512).data == sorted(list(row) for row in rows)
        assert client.everything(512, 1).data == sorted(
            (list(row) for row in rows), key=lambda row: (row[1], row[0])
        )
        assert client.everything(512, 2).data == [list(row) for row in rows]
        assert client.request(REPLACE, {SPACE_ID: 512, TUPLE: [count, "new", 0]}).ok


def test_values_of_every_type_are_loaded(tmp_path: Path, start_server: StartServer) -> None:
    """Fields have the types that follow from their columns."""
    schema = columns(
        "id decimal(20,0), text string, price decimal(10,2), share double, flag boolean, raw binary, "
        "at timestamp, day date",
        more=MapType(StringType(), LongType()),
    )
    at = datetime(2023, 11, 14, 22, 13, 20, 1, UTC)
    row = (Decimal(2**64 - 1), "ä", Decimal("1.50"), 0.5, True, b"\xff", at, at.date(), [("a", 1)])
    load({"path": str(tmp_path), "space": "things"}, schema, [row, (Decimal(-1), *[None] * 8)])
    server = start_server([], work_dir=tmp_path)
    with IprotoClient(server.host, server.port) as client:
        ((*_, fields),) = (space for space in client.everything(280).data if space[0] == 512)
        assert [field["type"] for field in fields] == [
            "integer",
            "string",
            "decimal",
            "double",
            "boolean",
            "varbinary",
            "datetime",
            "string",
            "map",
        ]
        nothing, stored = client.everything(512).data
        assert nothing == [-1, *[None] * 8]
        number, text, price, share, flag, raw, moment, day, more = stored
        assert [number, text, share, flag, raw, day, more] == [
            2**64 - 1,
            "ä",
            0.5,
            True,
            b"\xff",
            "2023-11-14",
            {"a": 1},
        ]
        assert codec.unpack(codec.pack(price)) == Decimal("1.50")
        assert codec.unpack(codec.pack(moment)) == codec.Datetime(1_700_000_000, 1000)


def test_types_and_keys_are_chosen(tmp_path: Path, start_on: Start) -> None:
    """A time may be a number, an identifier a UUID, and a key has several columns."""
    options = {
        "path": str(tmp_path),
        "space": "events",
        "space_id": "700",
        "primary_key": "code, at",
        "types": "code uuid, at number, data any",
    }
    code = UUID("01234567-89ab-cdef-0123-456789abcdef")
    moments = [datetime(2023, 11, 14, 22, 13, 20 + number, tzinfo=UTC) for number in range(2)]
    rows = [(moment, "[1]", str(code)) for moment in reversed(moments)]
    load(options, columns("at timestamp, data string, code string"), rows)
    server = start_on(tmp_path)
    with IprotoClient(server.host, server.port) as client:
        stored = client.everything(700).data
        assert [row[:2] for row in stored] == [[1_700_000_000, [1]], [1_700_000_001, [1]]]
        assert codec.unpack(codec.pack(stored[0][2])) == code


def template(start_server: StartServer, directory: Path, application: str, *calls: tuple[Any, ...]) -> None:
    """Make a database to take all but one space of."""
    directory.mkdir()
    server = start_server([application], work_dir=directory)
    with IprotoClient(server.host, server.port) as client:
        for procedure, *arguments in calls:
            assert client.call(procedure, *arguments).ok
        assert client.call("box.snapshot").ok
    server.stop()


def test_tasks_of_the_tutorials_queue_are_loaded_and_taken(
    tmp_path: Path, start_server: StartServer, start_on: Start
) -> None:
    """The template is a database that the queue's application has made."""
    template(start_server, tmp_path / "template", QUEUE_APPLICATION)
    options = {"path": str(tmp_path / "new"), "space": "queue", "template": str(tmp_path / "template")}
    schema = columns("id long, status string, runat double, data string")
    tasks = [(number, "R", 0.0, f'{{"task": {number}}}') for number in range(1000, 0, -1)]
    load(options, schema, tasks[:500], tasks[500:])
    assert problems(tmp_path / "new") == []
    server = start_on(tmp_path / "new", with_queue=True)
    with IprotoClient(server.host, server.port) as client:
        taken = [client.call("queue.take", 0).data[0] for _ in range(3)]
        assert [(task["id"], task["data"]) for task in taken] == [(n, {"task": n}) for n in (1, 2, 3)]
        (stats,) = client.call("queue.stats").data
        assert (stats["ready"], stats["taken"]) == (997, 3)


def test_the_other_spaces_of_a_template_stay(
    tmp_path: Path, start_server: StartServer, start_on: Start
) -> None:
    """And what numbers the rows of the space goes on behind those that are loaded."""
    application = "tests.spark.sink.application:app"
    template(start_server, tmp_path / "template", application, ("keep", 1, "kept"), ("number", "old"))
    options = {"path": str(tmp_path / "new"), "space": "numbered", "template": str(tmp_path / "template")}
    load(options, columns("id long, name string"), [(70, "b")], [(60, "a")])
    (snapshot,) = (tmp_path / "new").iterdir()
    assert snapshot.name in [path.name for path in (tmp_path / "template").iterdir()]
    assert problems(tmp_path / "new") == []
    server = start_on(tmp_path / "new")
    with IprotoClient(server.host, server.port) as client:
        assert client.everything(client.space_id("calls")).data == [[1, "kept"]]
        numbered = client.space_id("numbered")
        assert client.request(INSERT, {SPACE_ID: numbered, TUPLE: [None, "c"]}).data == [[71, "c"]]
        assert [row[0] for row in client.everything(numbered).data] == [60, 70, 71]


@pytest.mark.real_tarantool
def test_a_database_of_a_tarantool_is_a_template(
    tmp_path: Path, real_tarantool: StartTarantool, start_on: Start
) -> None:
    """Whose snapshot has its spaces in no order, and which knows no datetimes."""
    lua = """
    box.schema.space.create('late', {id = 600}):create_index('primary')
    box.schema.space.create('early', {id = 513}):create_index('primary')
    local format = {{'id', 'unsigned'}, {name = 'at', is_nullable = true}}
    box.schema.space.create('numbered', {id = 550, format = format})
    box.space.numbered:create_index('primary', {sequence = true})
    box.space.late:replace{1}
    box.space.early:replace{2}
    box.space.numbered:insert{nil, 'old'}
    box.snapshot()
    """
    server = real_tarantool(GUEST_IS_SUPER + lua, {"wal_mode": "'write'"})
    with IprotoClient(server.host, server.port) as client:
        directory = client.request(EVAL, {EXPRESSION: "return require('fio').cwd()", TUPLE: []}).data[0]
    options = {"path": str(tmp_path), "space": "550", "template": directory}
    at = datetime(2023, 11, 14, 22, 13, 20, 500_000, UTC)
    load(options, columns("id long, at timestamp"), [(40, at)], [(41, None)])
    assert problems(tmp_path) == []
    started = start_on(tmp_path)
    with IprotoClient(started.host, started.port) as client:
        assert client.request(INSERT, {SPACE_ID: 550, TUPLE: [None]}).data == [[42]]
        spaces = (513, 550, 600)
        assert [client.everything(space).data for space in spaces] == [
            [[2]],
            [[40, 1_700_000_000.5], [41, None], [42]],
            [[1]],
        ]


def test_a_template_with_changes_behind_its_snapshot_is_refused(
    tmp_path: Path, start_server: StartServer
) -> None:
    """They would be lost."""
    directory = tmp_path / "template"
    directory.mkdir()
    server = start_server([QUEUE_APPLICATION], work_dir=directory)
    server.stop()
    options = {"path": str(tmp_path / "new"), "space": "queue", "template": str(directory)}
    words = refusal(options, columns("id long"))
    assert "has changes after its newest snapshot, which would be lost" in words
    options["template"] = str(tmp_path / "nowhere")
    assert "there is no such file or directory" in refusal(options, columns("id long"))
    options["template"] = str(directory / _NAME)
    assert "there is no space 'queue'" in refusal(options, columns("id long"))


@pytest.mark.parametrize(
    ("more", "rows", "words"),
    [
        (
            {},
            [[(1, "a")], [(2, "b"), (1, "c")]],
            "the same key in the unique index 'primary' of space 'things'",
        ),
        ({}, [[(1, "a"), (1, "c")]], "one is [1, 'c']"),
        ({"index.name": "name"}, [[(1, "a")], [(2, "a")]], "the same key in the unique index 'name'"),
        ({}, [[(1, "a")], [(2, "b"), (None, "c")]], "partition 1: row 1: Tuple field 1 type does not match"),
        ({"types": "id unsigned"}, [[(1, "a"), (-1, "b")]], "row 1: Tuple field 1 type does not match"),
        ({"types": "name uuid"}, [[(1, "a")]], "row 0: column \"name\": 'a' is not a UUID"),
    ],
)
def test_rows_that_no_server_would_start_from_are_refused(
    tmp_path: Path, more: dict[str, str], rows: list[list[tuple[Any, ...]]], words: str
) -> None:
    """Keys that two rows share, wherever these are, and fields that are not what they should be."""
    options = {"path": str(tmp_path / "new"), "space": "things", **more}
    assert words in refusal(options, columns("id long, name string"), *rows)


def test_nils_are_no_duplicates(tmp_path: Path) -> None:
    """In a unique index beside the primary one they may be there many times."""
    options = {"path": str(tmp_path), "space": "things", "index.name": "name"}
    load(options, columns("id long, name string"), [(1, None), (2, None)], [(3, "a"), (4, None)])
    assert problems(tmp_path) == []


def test_keys_are_compared_where_hashes_are_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So no row is refused for its hash alone."""
    for module in (snapshot_parts, unique_check):
        monkeypatch.setattr(module, "hashes_of", lambda keys: np.zeros(len(keys), np.uint64))
    options, schema = {"path": str(tmp_path / "new"), "space": "things"}, columns("id long")
    assert "one is [2]" in refusal(options, schema, [(1,), (2,)], [(3,), (2,)])
    load(options, schema, [(1,), (2,)], [(3,)])
    assert problems(tmp_path / "new") == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"path": ""}, 'the option "path" is missing: the directory of the snapshot, or "url"'),
        ({"space": ""}, 'the option "space" is missing'),
        ({"space_id": "511"}, 'the option "space_id" must be a number of at least 512, not "511"'),
        ({"primary_key": "nope"}, 'the option "primary_key": there is no column "nope"'),
        ({"primary_key": "id,,name"}, 'the option "primary_key" must be column names'),
        ({"primary_key": "tags"}, "invalid definition of the space"),
        ({"index.": "id"}, "needs a name and columns"),
        ({"index.name": " nonunique"}, "needs a name and columns"),
        ({"index.name": "colour"}, "invalid definition of the space"),
        ({"types": "id"}, '"id" is not a column and a type'),
        ({"types": "id colour"}, '"id colour" is not a column and a type'),
        ({"types": "colour string"}, 'the option "types": there is no column "colour"'),
        ({"types": "name double"}, 'column "name" of type string does not fit the field of type double'),
        ({"template": "/nowhere", "space_id": "600"}, 'the option "space_id" is for new databases'),
        ({"template": "/nowhere", "index.a": "id"}, 'the option "index.a" is for new databases'),
        ({"colour": "red"}, 'there is no option "colour" for writing a snapshot'),
    ],
)
def test_wrong_options_are_told(tmp_path: Path, given: dict[str, str], words: str) -> None:
    """In one sentence that names the option; nothing is written."""
    schema = columns("id long, name string", tags=MapType(StringType(), LongType()))
    assert words in refusal({"path": str(tmp_path / "new"), "space": "things", **given}, schema)


def test_a_database_is_not_overwritten(tmp_path: Path, start_server: StartServer) -> None:
    """The mode `overwrite` replaces a snapshot that no server has used, but no data of a server."""
    schema, options = columns("id long"), {"path": str(tmp_path), "space": "things"}
    load(options, schema, [(1,)])
    with pytest.raises(SourceError, match=f"already contains a database: {_NAME}"):
        load(options, schema, [(2,)])
    load(options, schema, [(2,)], overwrite=True)
    server = start_server([], work_dir=tmp_path)
    with IprotoClient(server.host, server.port) as client:
        assert client.everything(512).data == [[2]]
        assert client.request(REPLACE, {SPACE_ID: 512, TUPLE: [3]}).ok
    server.stop()
    with pytest.raises(SourceError, match="a server has used it"):
        load(options, schema, [(4,)], overwrite=True)


def test_what_is_left_of_failure_is_nothing(tmp_path: Path) -> None:
    """Neither when a task fails nor when the parts are not there in the end."""
    options, schema = {"path": str(tmp_path), "space": "things"}, columns("id long")
    writer = snapshot_writer(options, schema, overwrite=False)
    assert isinstance(writer, SnapshotWriter)
    part = writer.write_part(iter([batch(schema, [(1,)])]), 0, 0)
    writer.abort([part, None])
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SourceError, match="all machines of the cluster must share the directory"):
        writer.commit([part])
    assert list(tmp_path.iterdir()) == []


def test_an_empty_table_is_an_empty_space(tmp_path: Path, start_on: Start) -> None:
    """There need not be a part."""
    load({"path": str(tmp_path), "space": "things"}, columns("id long"))
    server = start_on(tmp_path)
    with IprotoClient(server.host, server.port) as client:
        assert client.everything(client.space_id("things")).data == []


def test_spark_writes_a_snapshot_and_reads_it(spark: SparkSession, tmp_path: Path) -> None:
    """In tasks side by side; what was written is what is read."""
    table = spark.range(1000, numPartitions=4).selectExpr("id", "repeat('x', cast(id % 7 as int)) as name")
    table.write.format("tarantool").mode("append").option("space", "things").save(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == [_NAME]
    assert problems(tmp_path) == []
    read = (
        spark.read.format("tarantool")
        .options(space="things", mode="snapshot", unsigned="bigint", extra_fields="drop")
        .load(str(tmp_path))
    )
    assert sorted(read.collect()) == sorted(table.collect())
