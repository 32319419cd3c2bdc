"""Rows written to a running server, ours and a real Tarantool, as calls and as changes of a space."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from threading import Event, Thread
from typing import Any
from uuid import UUID

import pyarrow
import pytest
from msgpack import ExtType
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructType

from iproto_server.codec import msgpack as codec
from pyspark_tarantool.sink.server_options import ServerOptions
from pyspark_tarantool.sink.server_writer import Written, send_rows, server_stream_writer, server_writer
from pyspark_tarantool.source.errors import SourceError
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.running_server import QUEUE_APPLICATION, RunningServer
from tests.spark.sink.application import PASSWORD, USER
from tests.spark.sink.rows import batch, columns

_CALLS = {"procedure": "keep"}
_THINGS = {"space": "things"}
_WRONG_PASSWORD = f"for user '{USER}'|supplied credentials are invalid"
"""What a server says: the first up to Tarantool 2.10, the second from 2.11 on."""


def write(
    client: IprotoClient, options: Mapping[str, str], table: str | StructType, *rows: tuple[Any, ...]
) -> int:
    """Write rows as a task does, and tell how many were taken."""
    schema = columns(table) if isinstance(table, str) else table
    host, port = client.socket.getpeername()
    parsed = ServerOptions.parse({"url": f"{host}:{port}", **options})
    message = send_rows(parsed, schema, iter([batch(schema, rows)]))
    assert isinstance(message, Written)
    return message.rows


def refusal(client: IprotoClient, options: Mapping[str, str], table: str, *rows: tuple[Any, ...]) -> str:
    """The words in which a row is refused."""
    with pytest.raises(SourceError) as caught:
        write(client, options, table, *rows)
    return str(caught.value)


def stored(client: IprotoClient, space: str) -> list[Any]:
    """What a space of a server has."""
    frame_data: list[Any] = client.everything(client.space_id(space)).data
    return frame_data


def extension(value: ExtType) -> object:
    """What a value of an extension type is."""
    return codec.unpack(codec.pack(value))


def test_columns_are_the_arguments_of_a_procedure(target: IprotoClient) -> None:
    """Structs and maps arrive as maps, arrays as arrays, and nulls at the end are left out."""
    table = columns(
        "id long, name string",
        at=StructType().add("x", "integer").add("y", "double"),
        tags=ArrayType(StringType()),
        more=MapType(StringType(), LongType()),
    )
    taken = write(
        target,
        _CALLS,
        table,
        (1, "ä", {"x": 1, "y": 0.5}, ["a", None], [("k", 2)]),
        (2, None, None, ["b"], None),
        (3, None, None, None, None),
    )
    assert taken == 3
    assert stored(target, "calls") == [
        [1, "ä", {"x": 1, "y": 0.5}, ["a", None], {"k": 2}],
        [2, None, None, ["b"]],
        [3],
    ]


def test_exact_values_arrive_as_they_are(target: IprotoClient) -> None:
    """Decimals are decimals, integers of 64 bits integers, binary values binary; texts of JSON too."""
    options = {**_CALLS, "json_columns": "payload"}
    table = "id decimal(20,0), price decimal(10,2), bytes binary, payload string"
    write(target, options, table, (Decimal(2**64 - 1), Decimal("1.50"), b"\xff", '{"a": [1, 2.5, null]}'))
    (row,) = stored(target, "calls")
    number, price, raw, payload = row
    assert (number, payload) == (2**64 - 1, {"a": [1, 2.5, None]})
    # To Lua they are strings, which is what it stores.
    assert raw in (b"\xff", "\udcff")
    assert extension(price) == Decimal("1.50")


def test_moments_are_datetimes_where_the_server_knows_them(start_server: StartServer) -> None:
    """To the microsecond, which is why asynctnt does not send them."""
    server = start_server(["tests.spark.sink.application:app"])
    with IprotoClient(server.host, server.port) as client:
        write(client, _CALLS, "id long, at timestamp", (1, datetime(2023, 11, 14, 22, 13, 20, 1, UTC)))
        ((_, at),) = stored(client, "calls")
    assert extension(at) == codec.Datetime(1_700_000_000, 1000)


@pytest.mark.real_tarantool
@pytest.mark.parametrize("target", ["tarantool"], indirect=True)
def test_moments_are_seconds_where_it_does_not(target: IprotoClient) -> None:
    """Tarantool has datetimes from 2.10 on."""
    at = datetime(2023, 11, 14, 22, 13, 20, 500_000, UTC)
    write(target, _CALLS, "id long, at timestamp", (1, at))
    assert stored(target, "calls") == [[1, 1_700_000_000.5]]


def test_columns_are_the_fields_of_a_space_by_name(target: IprotoClient) -> None:
    """In any order, in the types that `spark.read` shows; what has no column is nil."""
    table = "data string, code string, price string, id decimal(20,0), share double, note string, delta long"
    code = UUID("01234567-89ab-cdef-0123-456789abcdef")
    write(target, _THINGS, table, ("[1]", str(code), "1.50", Decimal(7), 0.5, '{"a": 1}', -3))
    ((number, name, price, uuid, share, delta, flag, data, note),) = stored(target, "things")
    assert [number, name, share, delta, flag, data, note] == [7, None, 0.5, -3, None, [1], {"a": 1}]
    assert extension(price) == Decimal("1.50")
    assert extension(uuid) == code


def test_fields_behind_the_format_come_back_from_their_column(target: IprotoClient) -> None:
    """`spark.read` shows them as a JSON array."""
    write(target, _THINGS, "id long, _extra string", (1, '["x", 2]'), (2, None))
    assert stored(target, "things") == [[1, *[None] * 8, "x", 2], [2, *[None] * 8]]


def test_rows_replace_insert_or_delete(target: IprotoClient) -> None:
    """To replace is the default; a key that is deleted need not be there."""
    write(target, _THINGS, "id long, name string", (1, "a"), (2, "b"), (3, "c"))
    write(target, {"space": str(target.space_id("things"))}, "id long, name string", (1, "z"))
    write(target, {**_THINGS, "operation": "delete"}, "name string, id integer", ("?", 2), ("?", 99))
    write(target, {**_THINGS, "operation": "insert"}, "id long", (4,))
    assert [row[:2] for row in stored(target, "things")] == [[1, "z"], [3, "c"], [4, None]]
    assert "Duplicate key exists" in refusal(
        target, {**_THINGS, "operation": "insert"}, "id long", (5,), (1,)
    )


def test_an_upsert_inserts_a_row_or_assigns_its_columns(target: IprotoClient) -> None:
    """Fields without a column keep their value; fields behind the end of the row are added."""
    write(target, _THINGS, "id long, name string, share double", (1, "old", 0.5))
    write(target, _THINGS, "id long", (3,))
    options = {**_THINGS, "operation": "upsert"}
    rows = [(1, "new", True), (2, "other", None), (3, None, False), (1, "newer", None)]
    assert write(target, options, "id long, name string, flag boolean", *rows) == 4
    assert [row[:3] + row[4:7] for row in stored(target, "things")] == [
        [1, "newer", None, 0.5, None, None],
        [2, "other", None, None, None, None],
        [3, None, None, None, None, False],
    ]


def test_an_upsert_assigns_fields_of_the_format_only(target: IprotoClient) -> None:
    told = refusal(target, {**_THINGS, "operation": "upsert"}, "id long, _extra string", (1, "[1]"))
    assert 'column "_extra": operation=upsert assigns fields of the format only' in told


def test_a_refused_row_is_told_with_the_servers_code_and_words(target: IprotoClient) -> None:
    """And with its number and a view of it."""
    words = refusal(target, _CALLS, "id long, name string", (1, "a"), (13, "b" * 300), (2, "c"))
    assert "refused row 1: thirteen is not kept (error 32); the row is [13, 'bbb" in words
    assert len(words) < 400


def test_what_is_not_there_is_told(target: IprotoClient) -> None:
    """A procedure, a space, a field."""
    assert "'nobody' is not defined (error 33)" in refusal(
        target, {"procedure": "nobody"}, "id integer", (1,)
    )
    assert "no space 'nothing' on the server" in refusal(target, {"space": "nothing"}, "id integer", (1,))
    assert "column \"colour\" is not a field of space 'things'" in refusal(
        target, _THINGS, "id integer, colour integer", (1, 2)
    )
    deleting = {**_THINGS, "operation": "delete"}
    assert 'column "id" is missing: it is in the primary key' in refusal(
        target, deleting, "name string", ("a",)
    )


def test_columns_that_do_not_fit_a_field_are_told(target: IprotoClient) -> None:
    """By their types before anything is sent, by their values when they come."""
    words = refusal(target, _THINGS, "id string", ("1",))
    assert 'column "id" of type string does not fit the field of type unsigned' in words
    words = refusal(target, _THINGS, "id integer, code string", (1, None), (2, "no uuid"))
    assert "row 1: column \"code\": 'no uuid' is not a UUID" in words
    words = refusal(target, _THINGS, "id integer, data string", (1, "plain"))
    assert "'plain' is not a JSON text (strings need quotes)" in words


def test_a_password_is_asked_for_and_not_told(target: IprotoClient) -> None:
    """Neither the right one nor a wrong one, which ends it at once."""
    host, port = target.socket.getpeername()
    options = {**_CALLS, "url": f"{USER}:{PASSWORD}@{host}:{port}"}
    assert write(target, options, "id integer", (1,)) == 1
    assert PASSWORD not in repr(ServerOptions.parse(options))
    words = refusal(target, {**_CALLS, "url": f"{USER}:wr0ng@{host}:{port}"}, "id integer", (1,))
    assert f"{host}:{port}: " in words
    assert re.search(_WRONG_PASSWORD, words)
    assert "wr0ng" not in words
    words = refusal(target, {**_CALLS, "url": f"{USER}@{host}:{port}"}, "id integer", (1,))
    assert re.search(_WRONG_PASSWORD, words)


def test_a_server_that_is_not_there_is_told_after_so_many_attempts() -> None:
    """Port 1 of this machine has nobody who listens."""
    options = ServerOptions.parse({**_CALLS, "url": "127.0.0.1:1", "retries": "0"})
    with pytest.raises(
        SourceError, match=r"127.0.0.1:1: cannot connect: Connection refused; given up after 0"
    ):
        send_rows(options, columns("id integer"), iter([]))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"220 mail.example.com ESMTP".ljust(128), "the server is not Tarantool"),
        (b"Tarantool 2.11.0 (Binary)".ljust(128), "no answer within 0.2 seconds; given up after 0"),
        (b"Tarantool 2.11.0 (Binary)", "no answer within 0.2 seconds; given up after 0"),
        (
            b"Tarantool 2.11.0 (Binary)".ljust(128) + b"\xce\x00\x00\x00\x02\x81\xc1",
            "malformed response of the server; given up",
        ),
        (
            b"Tarantool 2.11.0 (Binary)".ljust(128) + b"\xc0",
            "malformed response of the server: Invalid MsgPack - packet length",
        ),
    ],
)
def test_what_answers_like_no_server_is_told(said: bytes, words: str) -> None:
    """Nobody waits for ever, and nothing makes it go on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        given = {**_CALLS, "url": f"127.0.0.1:{port}", "retries": "0", "timeout": "0.2"}
        ended = Event()

        def talk() -> None:
            with listening.accept()[0] as connected:
                connected.sendall(said)
                ended.wait()

        peer = Thread(target=talk)
        peer.start()
        schema = columns("id long")
        try:
            with pytest.raises(SourceError) as caught:
                send_rows(ServerOptions.parse(given), schema, iter([batch(schema, [(1,)])]))
        finally:
            ended.set()
            peer.join()
    assert words in str(caught.value)


def test_every_row_is_there_when_the_server_was_killed_in_the_middle(tmp_path: Path) -> None:
    """What was not answered is sent again to the server that comes back."""
    schema = columns("id long")
    applications = ["tests.spark.sink.application:app"]
    first = RunningServer(tmp_path, applications)
    started: list[RunningServer] = []

    def batches() -> Iterator[pyarrow.RecordBatch]:
        for begin in range(20, 1020, 100):
            if begin == 520:
                first.kill()
                started.append(RunningServer(tmp_path, applications, listen=first.address))
            yield batch(schema, [(number,) for number in range(begin, begin + 100)])

    try:
        options = ServerOptions.parse({**_CALLS, "url": first.address, "in_flight": "70"})
        send_rows(options, schema, batches())
        with IprotoClient(started[0].host, started[0].port) as client:
            assert stored(client, "calls") == [[number] for number in range(20, 1020)]
    finally:
        first.kill()
        for server in started:
            server.stop()


def test_repeated_puts_with_a_unique_key_are_one_task(start_server: StartServer) -> None:
    """The options of a put are a column with a struct."""
    server = start_server([QUEUE_APPLICATION])
    options = StructType().add("unique_key", "string").add("unique_for", "long")
    schema = columns("data string", options=options)
    rows = [(f"task {number}", {"unique_key": f"row {number}", "unique_for": 3600}) for number in range(3)]
    given = {"url": server.address, "procedure": "queue.put"}
    for _ in range(2):
        send_rows(ServerOptions.parse(given), schema, iter([batch(schema, rows)]))
    with IprotoClient(server.host, server.port) as client:
        assert len(stored(client, "queue")) == 3


def test_unix_sockets_are_reached(start_server: StartServer, tmp_path: Path) -> None:
    """By their path, with or without a prefix."""
    path = tmp_path / "s"
    server = start_server(["tests.spark.sink.application:app"], listen=f"unix:{path}")
    schema = columns("id long")
    for number, url in enumerate((str(path), f"unix:{path}")):
        send_rows(ServerOptions.parse({**_CALLS, "url": url}), schema, iter([batch(schema, [(number,)])]))
    with IprotoClient.at(server.address) as client:
        assert stored(client, "calls") == [[0], [1]]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "one of them is required"),
        ({"procedure": "p", "space": "s"}, "only one is allowed"),
        ({"procedure": "p", "operation": "insert"}, 'the option "operation" requires the option "space"'),
        ({"space": "s", "json_columns": "a"}, 'the option "json_columns" requires the option "procedure"'),
        ({"space": "s", "operation": "merge"}, 'one of replace, insert, upsert, delete, not "merge"'),
        ({"procedure": "p", "in_flight": "0"}, "a whole number from 1 on"),
        ({"procedure": "p", "retries": "-1"}, "a whole number from 0 on"),
        ({"procedure": "p", "timeout": "0"}, "a number of seconds above 0"),
        ({"procedure": "p", "timeout": "soon"}, "a number of seconds above 0"),
        ({"procedure": "p", "url": "user:s3cret@host"}, '"host" is not an address'),
        ({"procedure": "p", "url": ""}, 'the option "url" is missing'),
        ({"procedure": "p", "colour": "red"}, 'there is no option "colour"'),
        ({"procedure": "p", "json_columns": "nope"}, '"nope", which is not a column'),
        ({"procedure": "p", "json_columns": "id"}, "values of type int cannot be read as JSON texts"),
    ],
)
def test_wrong_options_are_told(given: dict[str, str], words: str) -> None:
    """In one sentence that names the option, and never the password."""
    schema = columns("id integer")
    with pytest.raises(SourceError) as caught:
        server_writer({"url": "127.0.0.1:3301", **given}, schema, overwrite=False)
    assert words in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_a_server_is_not_overwritten() -> None:
    """Neither by a table nor by the complete output of a stream."""
    options, schema = {"url": "127.0.0.1:3301", **_CALLS}, columns("id integer")
    with pytest.raises(SourceError, match=r"data on a server is not overwritten.*mode append"):
        server_writer(options, schema, overwrite=True)
    with pytest.raises(SourceError, match=r"data on a server is not overwritten.*append or update"):
        server_stream_writer(options, schema, overwrite=True)


def test_spark_writes_tables_and_streams(
    spark: SparkSession, start_server: StartServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the names of options in any case; plans do not show the password."""
    server = start_server(["tests.spark.sink.application:app"])
    source = tmp_path / "source"
    source.mkdir()
    (source / "rows.json").write_text("\n".join(json.dumps({"id": number}) for number in range(200, 210)))
    numbers = spark.range(20, 120, numPartitions=3)
    numbers.write.format("tarantool").mode("append").option("url", server.address).option(
        "Procedure", "keep"
    ).save()
    stream = (
        spark.readStream.schema("id bigint")
        .json(str(source))
        .writeStream.format("tarantool")
        .options(
            url=f"{USER}:{PASSWORD}@{server.address}",
            space="things",
            checkpointLocation=str(tmp_path / "checkpoint"),
        )
        .trigger(availableNow=True)
        .start()
    )
    stream.awaitTermination()
    stream.explain(extended=True)
    assert PASSWORD not in capsys.readouterr().out
    with IprotoClient(server.host, server.port) as client:
        assert stored(client, "calls") == [[number] for number in range(20, 120)]
        assert [row[0] for row in stored(client, "things")] == [*range(200, 210)]
