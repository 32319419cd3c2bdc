"""Jobs on the command line: what they print and write, and the one line that says what is wrong."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyspark_tarantool.backlog import backlog
from pyspark_tarantool.export import export
from pyspark_tarantool.suspects import suspects
from tests.programs import REPOSITORY
from tests.spark.interpreted import interpreted
from tests.spark.jobs_data import damaged, run, tutorial_directory


@pytest.fixture(scope="module", autouse=True)
def _interpreted(spark: SparkSession) -> Iterator[None]:
    with interpreted(spark):
        yield


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tutorial_directory(tmp_path_factory.mktemp("tutorial"))


@pytest.fixture
def hurt(directory: Path, tmp_path: Path) -> Path:
    """The same, with a damaged log."""
    copy = tmp_path / "hurt"
    shutil.copytree(directory, copy)
    damaged(copy)
    return copy


class TestResults:
    @pytest.mark.slow
    def test_backlog(self, directory: Path, tmp_path: Path) -> None:
        results, page = tmp_path / "results", tmp_path / "page.html"
        outcome = run(
            backlog,
            directory,
            "--queue",
            "tutorial",
            "--output",
            results,
            "--format",
            "csv",
            "--report",
            page,
        )
        assert outcome.status == 0, outcome.errors
        assert "Tasks by queue and status" in outcome.output
        assert any(f"in {directory}" in line for line in outcome.errors), "it says what it reads"
        (file,) = (results / "backlog").glob("*.csv")
        rows = list(csv.DictReader(file.read_text().splitlines()))
        assert [(row["queue"], row["status"], row["tasks"]) for row in rows] == [
            ("queue", "ready", "4"),
            ("queue", "delayed", "1"),
        ]
        assert {path.name for path in results.iterdir()} == {"backlog", "delayed", "delayed_by_time"}
        assert str(directory) in page.read_text()

    @pytest.mark.slow
    def test_suspects(self, directory: Path, tmp_path: Path) -> None:
        results, page = tmp_path / "results", tmp_path / "page.html"
        options = ("--output", results, "--format", "json", "--report", page, "--attempts", 2, "--waiting", 0)
        outcome = run(suspects, directory, "--queue", "tutorial", *options)
        assert outcome.status == 0, outcome.errors
        files = (results / "suspects").glob("*.json")
        rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        assert [(row["why"], row["status"], row["attempts"]) for row in rows if row["attempts"]] == [
            ("that come back", "acked", 3)
        ]
        assert "acked" in page.read_text()

    def test_what_is_there_is_not_replaced_unless_asked(self, directory: Path, tmp_path: Path) -> None:
        (tmp_path / "tuples").mkdir()
        arguments = (directory, "--space", "queue", "--output", tmp_path, "--format", "csv")
        outcome = run(export, *arguments)
        assert outcome.status == 1
        assert outcome.errors[-1] == (
            f"pyspark_tarantool.export: {tmp_path}/tuples already exists: "
            "choose another --output, or use --overwrite"
        )
        assert run(export, *arguments, "--overwrite").status == 0
        (file,) = (tmp_path / "tuples").glob("*.csv")
        with file.open(newline="") as lines:
            data = [row["data"] for row in csv.DictReader(lines)]
        assert json.dumps('a "quoted", long\nline') in data

    def test_a_report_that_is_there_is_not_replaced(self, directory: Path, tmp_path: Path) -> None:
        page = tmp_path / "page.html"
        page.write_text("mine")
        outcome = run(backlog, directory, "--queue", "tutorial", "--report", page)
        sentence = f"{page} already exists: choose another --report, or use --overwrite"
        assert (outcome.status, outcome.errors) == (1, [f"pyspark_tarantool.backlog: {sentence}"])
        assert page.read_text() == "mine"


class TestExport:
    def test_a_queues_tasks_as_of_a_change(
        self, directory: Path, tmp_path: Path, spark: SparkSession
    ) -> None:
        arguments = (directory, "--queue", "tutorial", "--output", tmp_path, "--partition-by", "status")
        assert run(export, *arguments).status == 0
        rows = spark.read.parquet(str(tmp_path / "tasks")).groupBy("status").count().collect()
        assert {row.status: row["count"] for row in rows} == {"ready": 4, "delayed": 1}
        assert (tmp_path / "tasks" / "status=delayed").is_dir()

    def test_changes_by_day(self, directory: Path, tmp_path: Path, spark: SparkSession) -> None:
        arguments = (directory, "--changes", "--space", "queue", "--number", "double", "--output", tmp_path)
        assert run(export, *arguments, "--partition-by", "day(timestamp)", "--files", 1).status == 0
        rows = spark.read.parquet(str(tmp_path / "changes"))
        assert "timestamp_day" in rows.columns
        assert rows.schema["key"].dataType.simpleString() == "struct<id:double>"

    @pytest.mark.parametrize(
        ("options", "status", "sentence"),
        [
            ([], 2, "--space, --queue or --changes is required"),
            (["--space", "queue", "--queue", "tutorial"], 2, "--space and --queue exclude each other"),
            (["--space", "queue"], 2, "--output is required: the directory for the results"),
            (["--changes", "--snapshot"], 2, "--snapshot excludes --changes, --at-lsn and --at-time"),
            (["--space", "nosuch", "--output", "o"], 1, "there is no space 'nosuch': there are queue"),
            (
                ["--space", "queue", "--output", "o", "--partition-by", "nosuch"],
                1,
                'there is no column "nosuch" to partition by: there are id, status, runat, data, _extra',
            ),
            (
                ["--space", "queue", "--output", "o", "--partition-by", "day(id)"],
                1,
                'the column "id" has no days: its type is string, not timestamp',
            ),
        ],
    )
    def test_what_cannot_be_exported(
        self, directory: Path, options: list[str], status: int, sentence: str
    ) -> None:
        outcome = run(export, directory, *options)
        assert (outcome.status, outcome.errors[-1]) == (status, f"pyspark_tarantool.export: {sentence}")


class TestDamage:
    def test_it_is_one_line_that_names_file_and_offset(self, hurt: Path, tmp_path: Path) -> None:
        outcome = run(export, hurt, "--space", "queue", "--output", tmp_path / "o")
        assert outcome.status == 1
        (complaint,) = (line for line in outcome.errors if line.startswith("pyspark_tarantool.export:"))
        assert str(max(hurt.glob("*.xlog"))) in complaint
        assert complaint.partition(" at offset ")[2].isdecimal()
        assert not any("Traceback" in line or "Exception" in line for line in outcome.errors)

    def test_what_was_skipped_is_counted(self, hurt: Path, tmp_path: Path) -> None:
        kept = tmp_path / "kept"
        options = ("--output", tmp_path / "o", "--damaged", "skip", "--bad-records", kept)
        outcome = run(export, hurt, "--changes", *options)
        assert outcome.status == 0, outcome.errors
        assert outcome.errors[-1].startswith("skipped 1 damaged place, ")
        assert " at offset " in outcome.errors[-2]
        assert list(kept.iterdir()), "the reports stay where they are asked for"


class TestWrongCommandLines:
    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (["."], "Missing option '--queue'. Choose from: tutorial, legacy, tubes"),
            (["--queue", "tutorial"], "Missing argument 'DIR...'."),
            (
                [".", "--queue", "sqs"],
                "Invalid value for '--queue': 'sqs' is not one of 'tutorial', 'legacy', 'tubes'.",
            ),
            ([".", "--queue", "tubes", "--xyzzy"], "No such option '--xyzzy'."),
            (
                [".", "--queue", "tubes", "--at-time", "noon"],
                "Invalid value for '--at-time': it is 'noon', neither seconds since 1970 nor a time such "
                "as 2026-01-31T12:00:00Z",
            ),
            (
                [".", "--queue", "tubes", "--at-lsn", "x"],
                "Invalid value for '--at-lsn': it is 'x', neither a number nor a vector clock such as "
                "{1: 10, 2: 7}",
            ),
            (
                [".", "--queue", "tubes", "--partition-bytes", "much"],
                "Invalid value for '--partition-bytes': it is 'much', not a number of bytes such as 64m",
            ),
            (
                [".", "--queue", "tubes", "--conf", "memory=4g"],
                "Invalid value for '--conf': \"memory=4g\" is not like spark.driver.memory=4g",
            ),
            (
                [".", "--queue", "tubes", "--at-lsn", "5", "--at-time", "5"],
                "--at-lsn and --at-time exclude each other",
            ),
        ],
    )
    def test_they_are_one_line(self, arguments: list[str], sentence: str) -> None:
        outcome = run(backlog, *arguments)
        error = f"pyspark_tarantool.backlog: {sentence}"
        assert (outcome.status, outcome.output, outcome.errors) == (2, "", [error])

    def test_nothing_to_read_is_one_line(self, tmp_path: Path) -> None:
        outcome = run(backlog, tmp_path / "nosuch", "--queue", "tutorial")
        sentence = f"{tmp_path}/nosuch: there is no such file or directory"
        assert (outcome.status, outcome.errors) == (1, [f"pyspark_tarantool.backlog: {sentence}"])

    @pytest.mark.parametrize("job", [backlog, suspects, export])
    def test_help_ends_with_examples(self, job: object) -> None:
        outcome = run(job, "--help")  # type: ignore[arg-type]
        assert outcome.status == 0
        _, _, examples = outcome.output.partition("Examples:\n")
        assert examples.count("python -m pyspark_tarantool ") >= 3


def test_without_java_there_is_one_line(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": str(tmp_path), "PYTHONPATH": str(REPOSITORY)}
    environment.pop("JAVA_HOME", None)
    done = subprocess.run(
        [sys.executable, "-m", "pyspark_tarantool", "backlog", str(tmp_path), "--queue", "tutorial"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("pyspark_tarantool.backlog: Spark needs Java ")
    assert "apt-get install" in line


@pytest.mark.parametrize("master", ["foo", "local[", "spark:", "sparkHOST:7077"])
def test_what_is_no_master_is_refused_before_java_starts(tmp_path: Path, master: str) -> None:
    outcome = run(backlog, tmp_path, "--queue", "tutorial", "--master", master)
    sentence = f"it is {master!r}, not like local[2], yarn, spark://HOST:PORT or k8s://URL"
    error = f"pyspark_tarantool.backlog: Invalid value for '--master': {sentence}"
    assert (outcome.status, outcome.output, outcome.errors) == (2, "", [error])


def test_the_clock_of_a_job_begins_before_spark_starts(
    directory: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    """Spark needs 15 seconds here; the first message comes after them."""
    now = [100.0]
    monkeypatch.setattr("pyspark_tarantool.jobs.job.time.monotonic", lambda: now[0])

    def start(*_: object) -> SparkSession:
        now[0] += 15
        return spark

    monkeypatch.setattr("pyspark_tarantool.jobs.command_line.sessions.start", start)
    outcome = run(backlog, directory, "--queue", "tutorial")
    assert outcome.status == 0, outcome.errors
    assert outcome.errors[0].startswith("   15.0 s  reading ")
