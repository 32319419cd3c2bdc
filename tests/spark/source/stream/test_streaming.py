"""Streams in Spark: queries that are killed and started again while a server is busy, and what users see."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import asynctnt
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from iproto_server.storage.directory import list_files
from iproto_server.storage.xlog import FileType
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.programs import REPOSITORY
from tests.real_tarantool import RealTarantool, queue_application
from tests.running_server import QUEUE_APPLICATION
from tests.spark.source.changing_spaces import Database, primary, space
from tests.spark.source.chronicle import Chronicle
from tests.storage.files import insertion

PROGRAM = "tests.spark.source.streaming_query"

PATIENCE = 300
"""So many seconds may pass before a test says that nothing happens."""


AHEAD = 1500
"""The clients rest while they are so many rows ahead of the query: it may take long to start."""


class Load:
    """Clients that put, take and acknowledge tasks, in a thread, until they are told to stop.

    Parameters:
        address: Of the server.

    Attributes:
        put: How many tasks were put.
        wants_checkpoint: A checkpoint is taken when this is set; then it is cleared.
        checkpoint: The number of the last row before the newest checkpoint.
        read: How many rows the query has read.
    """

    def __init__(self, address: str) -> None:
        self._host, _, port = address.rpartition(":")
        self._port = int(port)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self.wants_checkpoint = threading.Event()
        self.put = 0
        self.checkpoint = 0
        self.read = 0

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._thread.join(PATIENCE)

    def has_come_to(self, query: Query, lsn: int, *, in_batch: bool = False) -> bool:
        """Whether a query has read so many rows, and is at work on more."""
        assert self._thread.is_alive(), "the clients have ended"
        self.read = max(self.read, query.lsn)
        return query.lsn >= lsn and (query.is_in_batch() or not in_batch)

    async def _run(self) -> None:
        await asyncio.gather(*(self._work(number) for number in range(4)), self._checkpoints())

    async def _work(self, number: int) -> None:
        connection = await asynctnt.connect(host=self._host, port=self._port)
        while not self._is_over.is_set():
            if 3 * self.put > self.read + AHEAD:
                await asyncio.sleep(0.01)
                continue
            await connection.call("queue.put", [{"worker": number, "text": "x" * 50 * number}])
            self.put += 1
            taken = (await connection.call("queue.take", [1])).body
            if taken and number:
                await connection.call("queue.ack", [taken[0]["id"]])
        await connection.disconnect()

    async def _checkpoints(self) -> None:
        connection = await asynctnt.connect(host=self._host, port=self._port)
        while not self._is_over.is_set():
            if self.wants_checkpoint.is_set():
                self.checkpoint = (await connection.call("box.info")).body[0]["lsn"]
                await connection.call("box.snapshot")
                self.wants_checkpoint.clear()
            await asyncio.sleep(0.01)
        await connection.disconnect()


class Query:
    """The query as a process, with its Java, in a process group of its own.

    Parameters:
        directory: Where the logs are.
        output: Where the rows go; the checkpoint is beside it.
        when: `once`, if it is to end by itself.
        options: Further options of the source.

    Attributes:
        lsn: How far it has come, as it tells.
    """

    def __init__(self, directory: Path, output: Path, *when: str, **options: str) -> None:
        self._checkpoint = output.with_name("checkpoint")
        self._log = output.with_name("query.log").open("ab")
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", PROGRAM, str(directory), str(output), str(self._checkpoint)),
                *(json.dumps(options), *when),
            ],
            cwd=REPOSITORY,
            env={**os.environ, "SPARK_LOCAL_DIRS": str(output.parent)},
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self.lsn = 0
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lsn = json.loads(line).get("1", self.lsn)

    def wait_for(self, what: Callable[[], bool]) -> None:
        """Wait until something has happened while the query runs."""
        deadline = time.monotonic() + PATIENCE
        while not what():
            assert self._process.poll() is None, Path(self._log.name).read_text()
            assert time.monotonic() < deadline, Path(self._log.name).read_text()
            time.sleep(0.002)

    def is_in_batch(self) -> bool:
        """Whether a batch was begun and is not done."""
        newest = [
            max((int(path.name) for path in (self._checkpoint / kind).glob("[0-9]*")), default=-1)
            for kind in ("offsets", "commits")
        ]
        return newest[0] > newest[1]

    def kill(self) -> None:
        """End it and all that it has started as `kill -9` does."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._end()

    def finish(self) -> None:
        """Wait until it ends by itself."""
        status = self._process.wait(PATIENCE)
        self._end()
        assert status == 0, Path(self._log.name).read_text()

    def _end(self) -> None:
        self._process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        self._log.close()


@contextmanager
def killed_at_the_end(query: Query) -> Iterator[Query]:
    """Leave nothing running where a test fails."""
    try:
        yield query
    finally:
        if query._process.poll() is None:
            query.kill()


def kill_and_restart(load: Load, directory: Path, output: Path, kills: int) -> None:
    """Follow a busy server with a query that is killed within batches, and at last comes to the end.

    Checkpoints remove logs meanwhile, but none that the query has not read.
    """
    reached = 0
    with load:
        for _ in range(kills):
            with killed_at_the_end(Query(directory, output)) as query:
                for _ in range(2):
                    query.wait_for(partial(load.has_come_to, query, max(reached + 300, load.checkpoint)))
                    reached = query.lsn
                    load.wants_checkpoint.set()
                    query.wait_for(lambda: not load.wants_checkpoint.is_set())
                query.wait_for(partial(load.has_come_to, query, reached, in_batch=True))
                query.kill()
    with killed_at_the_end(Query(directory, output, "once")) as query:
        query.finish()


def check(spark: SparkSession, output: Path, load: Load, last: int, first: int = 1) -> None:
    """Compare what the query has kept with what the server knows."""
    changes = spark.read.parquet(str(output)).filter("replica_id = 1")
    (told,) = changes.selectExpr(
        "count(*) as count",
        "count(distinct lsn) as different",
        "sum(lsn) as sum",
        "count_if(operation = 'INSERT' and space = 'queue') as put",
    ).collect()
    assert told.asDict() == {
        "count": last - first + 1,
        "different": last - first + 1,
        "sum": sum(range(first, last + 1)),
        "put": load.put,
    }


def call(address: str, name: str) -> Any:
    """What a server answers to a call."""

    async def ask() -> Any:
        host, _, port = address.rpartition(":")
        connection = await asynctnt.connect(host=host, port=int(port))
        try:
            return (await connection.call(name)).body
        finally:
            await connection.disconnect()

    return asyncio.run(ask())


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_query_that_is_killed_during_load_has_each_row_once(
    spark: SparkSession, start_server: StartServer, tmp_path: Path
) -> None:
    """With logs that are rotated, and checkpoints that remove those that were read."""
    options = ["--wal-max-size", "20000", "--checkpoint-count", "2"]
    server = start_server([QUEUE_APPLICATION], options, work_dir=tmp_path)
    load = Load(server.address)
    kill_and_restart(load, tmp_path, tmp_path / "output", kills=2)
    assert list_files(tmp_path, FileType.LOG)[0].name != f"{0:020}.xlog"
    check(spark, tmp_path / "output", load, call(server.address, "box.info")[0]["lsn"])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_query_that_begins_with_a_snapshot_is_killed_while_checkpoints_remove_its_files(
    spark: SparkSession, start_server: StartServer, tmp_path: Path
) -> None:
    """Also before the first batch is done. The rebuilt rows are those of the server."""
    data, held, output = tmp_path / "data", tmp_path / "held", tmp_path / "output"
    data.mkdir()
    server = start_server([QUEUE_APPLICATION], ["--checkpoint-count", "1"], work_dir=data)
    load = Load(server.address)
    options = {"starting": "snapshot", "hold_path": str(held), "space": "queue", "mode": "changes"}

    def is_held() -> bool:
        links = [held / log.name for log in list_files(data, FileType.LOG)[-1:]]
        return all(link.exists() for link in links)

    def checkpoint(query: Query | None = None) -> None:
        if query is not None:
            query.wait_for(is_held)
        load.wants_checkpoint.set()
        while load.wants_checkpoint.is_set():
            time.sleep(0.002)

    with load:
        while load.put < 300:
            time.sleep(0.01)
        checkpoint()
        reached = 0
        for _ in range(2):
            with killed_at_the_end(Query(data, output, **options)) as query:
                query.wait_for(query.is_in_batch)
                for _ in range(3):
                    checkpoint(query)
                query.wait_for(partial(load.has_come_to, query, reached + 300, in_batch=True))
                reached = query.lsn
                query.kill()
    with killed_at_the_end(Query(data, output, "once", **options)) as query:
        query.finish()
    changes = spark.read.parquet(str(output)).select("replica_id", "lsn", "operation", "key", "after")
    rows = sorted(map(tuple, changes.collect()))
    lsns = [lsn for member, lsn, *_ in rows if member == 1]
    assert lsns == sorted(set(lsns))
    (first,) = {lsn for member, lsn, *_ in rows if member == 0}
    assert first < lsns[0]
    state: dict[int, Any] = {}
    for _, _, operation, key, after in rows:
        if operation == "DELETE":
            del state[int(key.id)]
        else:
            assert operation in ("INSERT", "REPLACE")
            state[int(after.id)] = after.data
    with IprotoClient(server.host, server.port) as client:
        stored = client.everything(client.space_id("queue")).data
    assert sorted(state) == [row[0] for row in stored]
    assert [json.loads(state[row[0]]) for row in stored] == [row[-1] for row in stored]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_query_that_is_killed_follows_a_real_tarantool(spark: SparkSession, tmp_path: Path) -> None:
    """As it follows ours."""
    settings = {"wal_mode": "'write'", "wal_max_size": "20000", "checkpoint_count": "2"}
    with RealTarantool(tmp_path, queue_application(), settings) as server:
        load = Load(server.address)
        kill_and_restart(load, tmp_path, tmp_path / "output", kills=1)
        check(spark, tmp_path / "output", load, call(server.address, "box.info")[0]["lsn"])


def test_a_stream_has_the_columns_of_changes_in_batches(spark: SparkSession, tmp_path: Path) -> None:
    """As much at a time as the option says, until all is read that was there when the query began."""
    database = Database(tmp_path)
    database.log(space(600, "jobs", "id", "data"), primary(600), *(insertion(600, n, "x") for n in range(4)))
    options = {"mode": "changes", "space": "jobs", "max_bytes_per_trigger": "1"}
    stream = spark.readStream.format("tarantool").options(**options).load(str(tmp_path))
    writer = stream.writeStream.format("memory").queryName("changes").trigger(availableNow=True)
    query = writer.start()
    assert query.awaitTermination(PATIENCE)
    assert [batch["numInputRows"] for batch in query.recentProgress if batch["numInputRows"]] == [1] * 4
    shown = spark.table("changes").select("space", "operation", "key.id", "after.data")
    assert sorted(map(tuple, shown.collect())) == [("jobs", "INSERT", n, '"x"') for n in range(4)]


def test_a_change_feed_begins_with_the_rows_of_the_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    """With the option name of Delta's users; files are held meanwhile, and given up at the end."""
    (tmp_path / "data").mkdir()
    database = Chronicle(tmp_path / "data")
    database.commit(database.insert(1, "a", 1), database.insert(2, "b", 2))
    database.rotate()
    database.snapshot()
    database.commit(database.delete(1))
    database.rotate()
    options = {"readChangeFeed": "true", "space": "t", "hold_path": str(tmp_path / "held")}
    stream = spark.readStream.format("tarantool").options(**options).load(str(tmp_path / "data"))
    for expected in (3, 4):
        writer = stream.select("lsn", "replica_id", "operation", "key.id").writeStream.format("parquet")
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start(str(tmp_path / "output"))
        assert query.awaitTermination(PATIENCE)
        rows = sorted(map(tuple, spark.read.parquet(str(tmp_path / "output")).collect()))
        told = [(2, 0, "INSERT", 1), (2, 0, "INSERT", 2), (3, 1, "DELETE", 1), (4, 1, "REPLACE", 3)]
        assert rows == told[:expected]
        database.commit(database.replace(3, "c", 3))
        database.rotate()


def test_what_is_wrong_is_said_in_a_sentence(spark: SparkSession, tmp_path: Path) -> None:
    """It is in what Spark says of the query that has failed."""
    stream = spark.readStream.format("tarantool").load(str(tmp_path / "nowhere"))
    query = stream.writeStream.format("memory").queryName("none").trigger(availableNow=True).start()
    with pytest.raises(StreamingQueryException, match="nowhere: there is no such file or directory"):
        query.awaitTermination(PATIENCE)
