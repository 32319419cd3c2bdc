"""The first page of docs/SPARK.md works when pasted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import REPOSITORY, require_program

_PAGE = (REPOSITORY / "docs/SPARK.md").read_text()


def test_it_has_ten_lines_at_most() -> None:
    assert len([line for line in _first_example().splitlines() if line]) <= 10


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_it_prints_what_the_page_shows_and_may_be_pasted_again(tmp_path: Path) -> None:
    require_program("java", "default-jre-headless")
    shown = re.search(r"^    \+-.*?\n\n", _PAGE, re.MULTILINE | re.DOTALL)
    assert shown is not None
    done = subprocess.run(
        [sys.executable, "-c", _first_example() * 2],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == shown[0].split() * 2, done.stderr
    assert done.stderr == ""
    assert [path.name for path in tmp_path.iterdir()] == ["tasks"]


def _first_example() -> str:
    match = re.search(r"```python\n(.*?)```", _PAGE, re.DOTALL)
    assert match is not None
    return match[1]
