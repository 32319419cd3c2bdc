"""Batches that take effect exactly once: repeated, refused, and with servers and queries that are killed."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pyspark_tarantool.sink.exactly_once import exactly_once
from pyspark_tarantool.sink.server_options import ServerOptions
from pyspark_tarantool.sink.server_writer import Written, send_rows
from pyspark_tarantool.source.errors import SourceError
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.running_server import RunningServer
from tests.spark.sink.rows import batch, columns
from tests.spark.source.chronicle import Chronicle

APPLICATION = "tests.spark.sink.application:app"
PATIENCE = 300
"""Seconds after which a test fails because nothing happens."""


def write(address: str, number: int, names: list[str], query: str = "names", **options: str) -> int:
    """Write a batch of names by a procedure that would store each repeated call as another row."""
    given = {"url": address, "procedure": "number", "query": query, "batch": str(number), "retries": "0"}
    schema = columns("name string")
    rows = [batch(schema, [(name,)]) for name in names]
    message = send_rows(ServerOptions.parse({**given, **options}), schema, iter(rows))
    assert isinstance(message, Written)
    return message.rows


def stored(address: str, space: str) -> list[Any]:
    """The rows of a space."""
    with IprotoClient.at(address) as client:
        rows: list[Any] = client.everything(client.space_id(space)).data
        return rows


@pytest.fixture
def server(start_server: StartServer) -> RunningServer:
    """A server with the spaces of `application`."""
    return start_server([APPLICATION])


def test_a_repeated_batch_has_no_effect(server: RunningServer) -> None:
    """The number of the last batch of each query is stored with its rows."""
    assert write(server.address, 0, ["a", "b"]) == 2
    assert write(server.address, 0, ["a", "b"]) == 0
    assert write(server.address, 1, []) == 0
    assert write(server.address, 1, ["c"]) == 0
    assert write(server.address, 2, ["d"]) == 1
    assert write(server.address, 0, ["e"], query="other") == 1
    assert [name for _, name in stored(server.address, "numbered")] == ["a", "b", "d", "e"]
    assert stored(server.address, "spark_batches") == [["names", 2], ["other", 0]]


def test_a_batch_with_a_refused_row_has_no_effect(server: RunningServer) -> None:
    """Not even that of the rows before it."""
    schema = columns("id long")
    options = {"url": server.address, "procedure": "keep", "query": "q", "batch": "0", "in_flight": "2"}
    with pytest.raises(SourceError, match=r"refused row 2: thirteen is not kept.*the batch has no effect"):
        send_rows(
            ServerOptions.parse(options), schema, iter([batch(schema, [(1,), (2,), (13,), (4,), (5,)])])
        )
    assert stored(server.address, "calls") == []
    assert stored(server.address, "spark_batches") == []


@pytest.mark.parametrize("operation", ["replace", "insert", "upsert", "delete"])
def test_changes_of_spaces_are_written_once_too(server: RunningServer, operation: str) -> None:
    schema = columns("id long")
    options = {"url": server.address, "space": "things", "operation": operation, "query": "q", "batch": "0"}
    for _ in range(2):
        send_rows(ServerOptions.parse(options), schema, iter([batch(schema, [(1,), (2,)])]))
    assert len(stored(server.address, "things")) == (0 if operation == "delete" else 2)


def test_one_of_two_simultaneous_attempts_fails(server: RunningServer) -> None:
    """Spark may run a task twice."""
    failures: list[str] = []
    schema = columns("name string")
    options = ServerOptions.parse({"url": server.address, "procedure": "number", "query": "q", "batch": "0"})
    both_began = threading.Barrier(2)

    def rows() -> Any:
        both_began.wait(PATIENCE)
        yield batch(schema, [("x",)])

    def attempt() -> None:
        try:
            send_rows(options, schema, rows())
        except SourceError as error:
            failures.append(str(error))

    threads = [threading.Thread(target=attempt) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(stored(server.address, "numbered")) == 1
    assert len(failures) == 1
    assert "conflict" in failures[0]


@pytest.mark.parametrize("seed", range(3))
def test_batches_take_effect_once_though_the_server_is_killed(tmp_path: Path, seed: int) -> None:
    """While a batch is sent, or committed; each is repeated until it succeeds, and sometimes after that."""
    generator = random.Random(seed)
    server = RunningServer(tmp_path, [APPLICATION])
    written: list[str] = []
    schema = columns("name string")

    def rows(names: list[str], killer: threading.Timer) -> Iterator[pyarrow.RecordBatch]:
        start = generator.randrange(len(names))
        for place, name in enumerate(names):
            if place == start and number % 3 == 0:
                server.kill()  # before anything of the batch is committed
            elif place == start:
                killer.start()
            yield batch(schema, [(name,)])

    failures: list[str] = []
    try:
        for number in range(10):
            names = [f"{number}:{row}" for row in range(generator.choice([1, 50, 400]))]
            options = {"url": server.address, "procedure": "number", "query": "names", "batch": str(number)}
            killer = threading.Timer(generator.random() * 0.01, server.kill)
            parsed = ServerOptions.parse({**options, "retries": "0", "in_flight": "16"})
            outcome = None
            try:
                outcome = send_rows(parsed, schema, rows(names, killer))
            except SourceError as error:
                failures.append(str(error))
            if killer.is_alive():
                killer.join()
            server = RunningServer(tmp_path, [APPLICATION])
            repeated = write(server.address, number, names)
            assert repeated == 0 or outcome is None
            written += names
        assert [name for _, name in stored(server.address, "numbered")] == written
        assert failures
        assert not any("refused" in failure for failure in failures)
    finally:
        server.stop()


def test_a_space_for_the_numbers_is_required(server: RunningServer) -> None:
    """The error says how to create it."""
    with pytest.raises(SourceError, match=r"there is no space 'absent'.*create_space\('spark_batches'"):
        write(server.address, 0, ["a"], batches_space="absent")
    with pytest.raises(SourceError, match=r"'things' is not its first field, a string"):
        write(server.address, 0, ["a"], batches_space="things")


@pytest.mark.real_tarantool
@pytest.mark.parametrize("target", ["tarantool"], indirect=True)
def test_an_old_server_has_no_such_batches(target: IprotoClient) -> None:
    host, port = target.socket.getpeername()
    with pytest.raises(SourceError, match=r"require interactive transactions.*version 2\.6"):
        write(f"{host}:{port}", 0, ["a"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch": "1"}, 'the options "query" and "batch" are given together'),
        ({"query": "q"}, 'the options "query" and "batch" are given together'),
        ({"query": "q", "batch": "-1"}, 'the option "batch" is a whole number from 0 on'),
    ],
)
def test_wrong_options_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        ServerOptions.parse({"url": "h:1", "space": "s", **options})


def test_wrong_options_are_refused_before_the_query_starts() -> None:
    with pytest.raises(SourceError, match="spcae"):
        exactly_once(url="h:1", space="s", spcae="x")


def test_a_query_without_an_id_needs_a_name(spark: SparkSession, server: RunningServer) -> None:
    """Outside of a stream, and over Spark Connect, Spark does not tell it."""
    rows = spark.createDataFrame([("a",)], "name string")
    with pytest.raises(SourceError, match="pass a name"):
        exactly_once(url=server.address, procedure="number")(rows, 0)
    for _ in range(2):
        exactly_once("names", url=server.address, procedure="number")(rows, 0)
    assert [name for _, name in stored(server.address, "numbered")] == ["a"]


def test_a_stream_is_written_once_though_its_query_fails_after_a_commit(
    spark: SparkSession, server: RunningServer, tmp_path: Path
) -> None:
    """The restarted query repeats the batch. The query's id in the checkpoint is the name of its numbers."""
    (tmp_path / "data").mkdir()
    database = Chronicle(tmp_path / "data")
    for number in range(6):
        database.commit(database.insert(number, f"name {number}", 0))
    database.rotate()
    database.snapshot()
    write_batch = exactly_once(url=server.address, procedure="number")
    failures = {1, 3}

    def write_and_fail(rows: DataFrame, number: int) -> None:
        write_batch(rows, number)
        if number in failures:
            failures.remove(number)
            raise RuntimeError("the query fails")

    stream = (
        spark.readStream.format("tarantool")
        .options(mode="changes", space="t", max_bytes_per_trigger="1")
        .load(str(tmp_path / "data"))
    )

    def start() -> StreamingQuery:
        writer = stream.selectExpr("trim('\"' from after.text) as name").writeStream
        writer = writer.foreachBatch(write_and_fail).trigger(availableNow=True)
        return writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()

    for _ in range(2):
        with pytest.raises(StreamingQueryException, match="the query fails"):
            start().awaitTermination(PATIENCE)
    query = start()
    assert query.awaitTermination(PATIENCE)
    assert [name for _, name in stored(server.address, "numbered")] == [f"name {n}" for n in range(6)]
    ((name, _),) = stored(server.address, "spark_batches")
    assert name == query.id
