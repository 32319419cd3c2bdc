"""Sanitizers' reports fail `tools/test-with-sanitizers`, wherever they come from."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import REPOSITORY, require_program

LIBRARY = r"""
#include <stdlib.h>
int past_the_end(int place) { char *some = malloc(4); int found = some[place]; free(some); return found; }
int after_free(int place) { char *some = malloc(4); free(some); return some[place]; }
int overflow(int number) { return number + 1; }
int nothing(int number) { return number; }
"""
CALL = "import ctypes; ctypes.CDLL('./faults.so').{name}({argument})"
IN_A_CHILD = "import subprocess as s, sys; s.run([sys.executable, '-c', {code!r}], stderr=s.PIPE)"
FAULTS = [
    ("past_the_end", 4, "heap-buffer-overflow"),
    ("after_free", 1, "heap-use-after-free"),
    ("overflow", 2**31 - 1, "signed integer overflow"),
]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a library, built with sanitizers, of functions with faults."""
    directory = tmp_path_factory.mktemp("sanitized")
    (directory / "faults.c").write_text(LIBRARY)
    flags = ["-shared", "-fPIC", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    command = [require_program("cc", "gcc"), *flags, "-o", "faults.so", "faults.c"]
    subprocess.run(command, cwd=directory, check=True)
    return directory


def run(directory: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run Python code under sanitizers."""
    tool = REPOSITORY / "tools" / "test-with-sanitizers"
    return subprocess.run(
        [tool, sys.executable, directory, "-c", code], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(("name", "argument", "report"), FAULTS)
def test_a_fault_fails_the_command(directory: Path, name: str, argument: int, report: str) -> None:
    done = run(directory, CALL.format(name=name, argument=argument))
    assert done.returncode == 1
    assert report in done.stderr


@pytest.mark.parametrize(("name", "argument"), [fault[:2] for fault in FAULTS])
def test_a_fault_in_a_child_fails_the_command(directory: Path, name: str, argument: int) -> None:
    done = run(directory, IN_A_CHILD.format(code=CALL.format(name=name, argument=argument)))
    assert done.returncode == 1
    assert f" in {name} " in done.stderr


def test_the_status_is_that_of_the_command_otherwise(directory: Path) -> None:
    assert run(directory, CALL.format(name="nothing", argument=1)).returncode == 0
    assert run(directory, "raise SystemExit(7)").returncode == 7
