"""The example examples/declarative_pipeline/ beside a server under load, with Spark's own program."""

from __future__ import annotations

import subprocess
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pyspark
import pytest

from tests.iproto_client import IprotoClient
from tests.programs import REPOSITORY, require_program
from tests.running_server import QUEUE_APPLICATION, RunningServer
from tests.spark.examples.test_pipeline_example import Load
from tests.spark.test_found_by_itself import environment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(find_spec("grpc") is None, reason="spark-pipelines needs pyspark[pipelines]"),
]

EXAMPLE = REPOSITORY / "examples" / "declarative_pipeline"
DATA = "/var/lib/tarantool/queue"
RESULTS = "/var/tmp/queue_history"
"""The directories that the example names."""


class Pipeline:
    """A copy of the example, with directories of the test.

    Parameters:
        directory: The directory of the copy, the results and the server's `data`.
        replaced: Further texts of the example's files that differ in the copy, and what is there instead.
    """

    def __init__(self, directory: Path, replaced: dict[str, str] | None = None) -> None:
        require_program("java", "default-jre-headless")
        self.copy = directory / "example"
        self.results = directory / "results"
        replaced = {DATA: str(directory / "data"), RESULTS: str(self.results), **(replaced or {})}
        found = set()
        for file in EXAMPLE.rglob("*.*"):
            if file.suffix in (".conf", ".py", ".yml"):
                text = file.read_text(encoding="utf-8")
                for old, new in replaced.items():
                    if old in text:
                        found.add(old)
                        text = text.replace(old, new)
                target = self.copy / file.relative_to(EXAMPLE)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
        assert found == replaced.keys()

    def command(self, name: str) -> subprocess.CompletedProcess[str]:
        """Run `spark-pipelines run` or `dry-run` as the example says.

        Parameters:
            name: The command.

        Returns:
            The ended process, with its output.
        """
        return subprocess.run(
            [
                Path(pyspark.__path__[0], "bin", "spark-pipelines"),
                name,
                "--spec",
                self.copy / "spark-pipeline.yml",
            ],
            cwd=self.copy.parent,
            # The variable SPARK_TESTING makes Spark Connect choose a free port.
            env=environment(SPARK_CONF_DIR=str(self.copy), SPARK_TESTING="0"),
            capture_output=True,
            text=True,
            check=False,
        )

    def run(self) -> Counter[str]:
        """Run the pipeline.

        Returns:
            The number of changes by operation, from the table `hourly`.
        """
        done = self.command("run")
        assert done.returncode == 0, done.stdout + done.stderr
        counted: Counter[str] = Counter()
        for row in self.table("hourly"):
            assert (row["hour"].minute, row["hour"].second, row["hour"].microsecond) == (0, 0, 0)
            counted[row["operation"]] += row["changes"]
        return counted

    def table(self, name: str) -> list[dict[str, Any]]:
        """Read a table without Spark.

        Parameters:
            name: The table.

        Returns:
            Its rows.
        """
        rows: list[dict[str, Any]] = pyarrow.parquet.read_table(self.results / "tables" / name).to_pylist()
        return rows


def test_each_change_since_the_snapshot_is_counted_once(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    pipeline = Pipeline(tmp_path)
    with RunningServer(data, [QUEUE_APPLICATION]) as server:
        with IprotoClient.at(server.address) as client:
            for number in range(3):
                client.call("queue.put", {"number": number})
            client.call("queue.ack", client.call("queue.take").data[0]["id"])
            assert client.call("box.snapshot").ok
            client.call("queue.ack", client.call("queue.take").data[0]["id"])
        load = Load(server)
        try:
            during = pipeline.run()
        finally:
            tasks = load.stop()
    # The snapshot has two tasks. A task is taken by an update that is logged as the whole tuple.
    after = pipeline.run()
    assert after == {"INSERT": 2 + tasks, "REPLACE": 1 + tasks, "DELETE": 1 + tasks}
    assert all(0 < during[operation] <= after[operation] for operation in after)
    changes = pipeline.table("changes")
    assert Counter(row["operation"] for row in changes) == after
    logged = [row["lsn"] for row in changes if row["operation"] != "INSERT"]
    assert len(set(logged)) == len(logged)


def test_a_dry_run_reports_a_wrong_option(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with RunningServer(data, [QUEUE_APPLICATION]):
        pass
    pipeline = Pipeline(tmp_path, {'readChangeFeed="true"': 'readChangeFeed="yes"'})
    done = pipeline.command("dry-run")
    assert done.returncode == 1
    message = """SourceError: the option "readChangeFeed" is 'yes', not true or false\n"""
    assert message in done.stdout, done.stdout + done.stderr
    assert not (pipeline.results / "tables" / "changes").exists()
