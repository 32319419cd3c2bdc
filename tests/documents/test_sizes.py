"""`tools/check_sizes.py`, a part of `make lint`: what it finds, and what its exceptions excuse."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.programs import REPOSITORY


@pytest.fixture(scope="module")
def check() -> dict[str, Any]:
    return runpy.run_path(str(REPOSITORY / "tools" / "check_sizes.py"))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A folder with too many files, and one with a file of too many lines."""
    for folder in ("many", "long", "long/node_modules"):
        Path(tmp_path, folder).mkdir()
    for number in range(17):
        Path(tmp_path, "many", f"{number}.py").write_text("")
    Path(tmp_path, "many", "notes.md").write_text("")
    for name, lines in (("a.c", 420), ("b.c", 421), ("c.md", 1000), ("node_modules/d.js", 1000)):
        Path(tmp_path, "long", name).write_text("\n" * lines)
    return tmp_path


def test_what_is_too_large_is_named(check: dict[str, Any], repository: Path) -> None:
    assert check["complaints"](repository, ["many", "long"], ()) == [
        "long/b.c has 421 lines, more than 420",
        "many has 17 source files, more than 16",
    ]


def test_exceptions_excuse_a_file_or_all_of_a_folder(check: dict[str, Any], repository: Path) -> None:
    assert check["complaints"](repository, ["many", "long"], ("many", "long/")) == []


def test_an_exception_that_is_not_needed_is_named(check: dict[str, Any], repository: Path) -> None:
    found = check["complaints"](repository, ["many"], ("many", "long/a.c"))
    assert found == ["long/a.c is within the limits: remove it from the exceptions"]
