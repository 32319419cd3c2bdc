"""The engine's core, tested in C under the address and undefined-behaviour sanitizers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.programs import require_program

HERE = Path(__file__).parent
CORE = HERE.parents[1] / "iproto_server" / "engine" / "core"
FLAGS = ["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-DIPROTO_ENGINE_DEBUG"]
WRAPPED = "-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc"
"""The linker's option that lets tests refuse memory: see `random_rows.h`."""
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]

pytestmark = pytest.mark.process


def build(name: str, directory: Path) -> Path:
    """Compile a test with the core.

    Parameters:
        name: the test's file without its suffix.
        directory: where the program goes.
    """
    program = directory / name
    sources = [HERE / f"{name}.c", *sorted(CORE.rglob("*.c"))]
    command: list[str | Path] = [
        require_program("cc", "gcc"),
        *FLAGS,
        *SANITIZERS,
        WRAPPED,
        f"-I{CORE}",
        "-o",
        program,
        *sources,
    ]
    subprocess.run(command, check=True)
    return program


@pytest.mark.parametrize(
    ("name", "count", "result"),
    [
        ("test_changes", 30_000, "30000 operations"),
        ("test_build", 100_000, "100000 rows"),
        ("test_pages", 30_000, "30000 operations"),
        ("test_replay", 100_000, "100000 rows"),
        ("test_reading", 300_000, "300000 inputs"),
        ("test_budget", 200_000, "200000 operations"),
        ("test_checksums", 100, "100 stray writes were found"),
        ("test_updates", 100_000, "100000 updates"),
        ("test_views", 100_000, "100000 operations"),
        ("test_spaces", 60_000, "60000 operations"),
    ],
)
def test_in_c(name: str, count: int, result: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [build(name, tmp_path), str(count), "1"], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(result)


def test_the_core_needs_no_python() -> None:
    assert [file.name for file in CORE.rglob("*.[ch]") if "Python.h" in file.read_text()] == []
