"""What is done in the processes in which Spark runs tasks."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyspark_tarantool.source.batch.changes_reader import ChangesReader
from pyspark_tarantool.source.batch.snapshot_reader import SnapshotReader
from pyspark_tarantool.source.batch.worker import WorkerSetup
from pyspark_tarantool.source.state.state_reader import StateReader
from pyspark_tarantool.source.stream.stream_reader import ChangesStreamReader
from tests.storage.databases import jobs_box, save

_IN_A_PROCESS_OF_SPARK = """
import gc, os, pickle, socket, sys
from importlib.machinery import ModuleSpec
from pyspark_tarantool.source.batch.worker import WorkerSetup

sys.modules["__main__"].__spec__ = ModuleSpec("pyspark.daemon", None)

class Task(WorkerSetup):
    def __init__(self):
        self.number = 7

def arrive():
    task = pickle.loads(pickle.dumps(Task()))
    assert task.number == 7

"""

_ONCE = """
arrive()
frozen = gc.get_freeze_count()
more = [[] for _ in range(1000)]
arrive()
assert frozen > 1000, frozen
assert gc.get_freeze_count() <= frozen
"""

_CONNECTED = """
with socket.create_server(("127.0.0.1", 0)) as listening:
    client = socket.create_connection(listening.getsockname())
    server, _ = listening.accept()

def is_prompt():
    return server.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK) == 1

server.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
assert not is_prompt()
"""

_PROMPT = """
before = os.listdir("/proc/self/fd")
arrive()
assert is_prompt()
assert os.listdir("/proc/self/fd") == before
client.sendall(b"more")
assert server.recv(4) == b"more"
"""

_READING = """
from pyspark_tarantool.source.batch.worker import ends_quietly

class Reader:
    @ends_quietly
    def read(self, partition):
        yield 1
        yield 2

rows = Reader().read(None)
next(rows)
"""

_UNREAD = """
try:
    raise BrokenPipeError
finally:
    rows.close()
"""

_FAILED = """
try:
    try:
        raise ValueError("a row")
    finally:
        rows.close()
except ValueError:
    print("goes on")
"""

_ELSEWHERE = """
sys.modules["__main__"].__spec__ = None
arrive()
assert not is_prompt()
assert gc.get_freeze_count() < 1000
"""


def _frozen(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """How many objects are out of garbage collection where a task runs."""
    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"frozen": [gc.get_freeze_count()]})


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
def test_what_is_loaded_is_no_garbage_where_tasks_have_read(spark: SparkSession, tmp_path: Path) -> None:
    """The same processes do what comes next."""
    save(jobs_box([1, "ready"], [2, "ready"]), tmp_path, {})
    read = spark.read.format("tarantool").option("space", "jobs").load(str(tmp_path))
    assert read.count() == 2
    tasks = spark.range(8).repartition(8).mapInArrow(_frozen, "frozen long").collect()
    assert max(task.frozen for task in tasks) > 1000


@pytest.mark.parametrize(
    "what",
    [
        pytest.param(_ONCE, id="what comes later may be garbage, so it is done once"),
        pytest.param(_CONNECTED + _PROMPT, id="what has come over TCP is acknowledged at once"),
        pytest.param(_CONNECTED + _ELSEWHERE, id="other processes are left alone"),
    ],
)
def test_where_tasks_arrive(what: str) -> None:
    subprocess.run([sys.executable, "-c", _IN_A_PROCESS_OF_SPARK + what], check=True)


@pytest.mark.parametrize(
    ("what", "output"),
    [
        pytest.param(_UNREAD, "", id="a lost connection ends the process without a traceback"),
        pytest.param(_FAILED, "goes on\n", id="other errors are reported by Spark"),
    ],
)
def test_where_reading_stops_early(what: str, output: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _IN_A_PROCESS_OF_SPARK + _READING + what], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, output, "")


_FIRST_ROWS = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
reader = spark.read.format("tarantool").option("space", "jobs")
for mode in ("current", "snapshot"):
    assert len(reader.option("mode", mode).load(sys.argv[1]).limit(2).collect()) == 2
"""


@pytest.mark.slow
def test_a_query_of_the_first_rows_prints_no_traceback(tmp_path: Path) -> None:
    save(jobs_box(*([number, "ready" * 200] for number in range(30_000))), tmp_path, {})
    done = subprocess.run(
        [sys.executable, "-c", _FIRST_ROWS, str(tmp_path)],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "BrokenPipeError" not in done.stderr


@pytest.mark.parametrize("kind", [SnapshotReader, StateReader, ChangesReader, ChangesStreamReader])
def test_all_readers_are_what_arrives(kind: type) -> None:
    assert issubclass(kind, WorkerSetup)
