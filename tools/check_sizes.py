"""Checks that folders and source files are small: `python tools/check_sizes.py`, a part of `make lint`.

A folder has at most 16 source files, and a source file at most 420 lines. A path in `EXCEPTIONS` may have
more; an exception that is no longer needed is an error, too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).resolve().parents[1]
ROOTS: Final = ("iproto_server", "queue_lua_compat", "spark", "bench", "examples", "tests", "tools")
SUFFIXES: Final = {".py", ".pyi", ".c", ".h", ".lua", ".js", ".pl"}
NOT_OURS: Final = {"node_modules", "__pycache__"}
FILES: Final = 16
LINES: Final = 420

EXCEPTIONS: Final = (
    "iproto_server/native/_native.pyi",  # describes the whole compiled module
    # These are to become smaller.
    "tests/native/space/test_spaces.py",
)
"""Paths that may be larger. A folder that ends with a slash stands for all that is in it."""


def sources(root: Path) -> Iterator[tuple[Path, list[Path]]]:
    """Yields: each folder below a path, with its source files."""
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in NOT_OURS]
        yield Path(folder), [Path(folder, name) for name in names if Path(name).suffix in SUFFIXES]


def too_large(roots: Iterable[Path]) -> dict[Path, str]:
    """Find folders with too many files, and files with too many lines.

    Parameters:
        roots: The folders to look through.

    Returns:
        What is wrong, by path.
    """
    found = {}
    for root in roots:
        for folder, files in sources(root):
            if len(files) > FILES:
                found[folder] = f"has {len(files)} source files, more than {FILES}"
            for file in files:
                lines = len(file.read_bytes().splitlines())
                if lines > LINES:
                    found[file] = f"has {lines} lines, more than {LINES}"
    return found


def complaints(repository: Path, roots: Iterable[str], exceptions: Sequence[str]) -> list[str]:
    """Compare a repository with the limits.

    Parameters:
        repository: Its folder.
        roots: The folders in it to look through.
        exceptions: The paths in it that may be larger.

    Returns:
        One line for each path that is too large, and for each exception that is not needed.
    """
    found = {
        str(path.relative_to(repository)): text
        for path, text in too_large(repository / root for root in roots).items()
    }
    wrong = [
        f"{path} {text}"
        for path, text in sorted(found.items())
        if not any(covers(exception, path) for exception in exceptions)
    ]
    return wrong + [
        f"{exception} is within the limits: remove it from the exceptions"
        for exception in exceptions
        if not any(covers(exception, path) for path in found)
    ]


def covers(exception: str, path: str) -> bool:
    """Return whether an exception is for a path."""
    return path == exception or (exception.endswith("/") and f"{path}/".startswith(exception))


def main() -> int:
    """Print what is too large.

    Returns:
        0: nothing is; 1: something is.
    """
    wrong = complaints(REPOSITORY, ROOTS, EXCEPTIONS)
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
