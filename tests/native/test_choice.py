"""Whether compiled code runs is chosen at the start, and nothing is missing without it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from iproto_server import native
from tests.compiled import needs_compiled_server

REPOSITORY = Path(__file__).resolve().parents[2]

SPECIFICATIONS = [
    "tests/codec/test_msgpack.py",
    "tests/protocol/test_request.py",
    "tests/protocol/test_framing.py",
    "tests/protocol/test_response.py",
    "tests/box/key/test_key_def.py",
    "tests/box/tuple/test_tuple.py",
    "tests/box/tuple/test_format.py",
    "tests/box/api/test_space.py",
    "tests/storage/test_wal.py",
    "tests/spark/source/arrow/test_columns.py",
    "tests/spark/source/schema/test_definitions.py",
    "tests/spark/source/io/test_block_filter.py",
]
"""Tests of what has compiled twins. Where these are in use, they have run with them already."""


def run_in_pure_python(*command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, native.PURE_PYTHON: "1", "PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(
        [sys.executable, *command],
        env=environment,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_environment_variable_chooses_pure_python() -> None:
    program = "from iproto_server import native; print(native.IS_COMPILED, native.in_python)"
    assert run_in_pure_python("-c", program).stdout == "False {}\n"


def test_the_version_tells_which_code_runs() -> None:
    assert "in pure Python" in run_in_pure_python("-m", "iproto_server", "--version").stdout


@pytest.mark.slow
@needs_compiled_server
@pytest.mark.parametrize("file", SPECIFICATIONS)
def test_pure_python_meets_the_specification(file: str) -> None:
    done = run_in_pure_python("-m", "pytest", "-q", "-p", "no:cacheprovider", file)
    assert done.returncode == 0, done.stdout


def test_what_has_a_compiled_twin_says_so() -> None:
    def nobody_has_compiled_this() -> None:
        """Nothing."""

    decorate: Callable[[Callable[[], None]], Callable[[], None]] = native.twin
    if native.IS_COMPILED:
        with pytest.raises(LookupError):
            decorate(nobody_has_compiled_this)
    else:
        assert decorate(nobody_has_compiled_this) is nobody_has_compiled_this
