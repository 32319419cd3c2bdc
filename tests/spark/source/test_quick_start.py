"""The first examples of the documents, run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.programs import REPOSITORY
from tests.storage.databases import jobs_box, save


@pytest.mark.parametrize(("document", "path"), [("docs/SPARK.md", "/var/lib/tarantool/queue")])
def test_the_first_example_runs(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], document: str, path: str
) -> None:
    """With a path and a space of the test's own."""
    save(jobs_box([1, "taken"], [2, "ready"], [3, "ready"]), tmp_path, {})
    text = (REPOSITORY / document).read_text()
    match = re.search(r"```python\n(from spark.*?)```", text, re.DOTALL)
    assert match is not None
    example = match[1].replace(f'"{path}"', f'"{tmp_path}"').replace('"queue"', '"jobs"')
    exec(compile(example, document, "exec"), {})
    shown = capsys.readouterr().out
    assert re.search(r"\|\s*ready\|\s*2\|", shown)
    assert re.search(r"\|\s*taken\|\s*1\|", shown)
