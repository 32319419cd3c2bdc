"""One sentence out of what Spark says of an error in a worker, or in Java."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, PySparkException

from pyspark_tarantool.jobs.error_messages import sentence_of

WORKER = """\
[FAILED_EXECUTE] Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times:
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/somewhere/spark/source/ranges.py", line 83, in read_blocks
    damages.add(error, end)
{error}

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:581)
Driver stacktrace:"""


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            "iproto_server.storage.errors.XlogError: /data/1.xlog: wrong checksum of a block at offset 5",
            "/data/1.xlog: wrong checksum of a block at offset 5",
        ),
        (
            "iproto_server.storage.errors.LogGapError: /data/9.xlog: rows are missing before {1: 9}",
            "/data/9.xlog: rows are missing before {1: 9}",
        ),
        ("pyspark_tarantool.source.errors.SourceError: there is no space 'x'", "there is no space 'x'"),
        ("FileNotFoundError: [Errno 2] No such file: '/d/1.snap'", "[Errno 2] No such file: '/d/1.snap'"),
        ("java.io.IOException: Mkdirs failed to create file:/proc/x", "Mkdirs failed to create file:/proc/x"),
    ],
)
def test_what_a_user_can_do_something_about(error: str, sentence: str) -> None:
    assert sentence_of(PySparkException(WORKER.format(error=error))) == sentence


@pytest.mark.parametrize("error", ["KeyError: 'queue'", "AssertionError", "ValueError: not ours"])
def test_mistakes_in_programs_keep_their_traces(error: str) -> None:
    assert sentence_of(PySparkException(WORKER.format(error=error))) is None


def test_a_query_that_does_not_fit_the_data() -> None:
    text = "[COLUMN_ALREADY_EXISTS] The column `id` already exists. SQLSTATE: 42711\n== Plan ==\n'Project"
    sentence = "[COLUMN_ALREADY_EXISTS] The column `id` already exists."
    assert sentence_of(AnalysisException(text)) == sentence


def test_files_of_the_driver() -> None:
    assert sentence_of(PermissionError(13, "Permission denied", "/p.html")) == "/p.html: Permission denied"
    assert sentence_of(OSError("the disk is gone")) == "the disk is gone"
