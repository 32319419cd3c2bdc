"""Copies of the project to build from, so that nothing is written into the repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).resolve().parents[2]
FILES: Final = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "MANIFEST.in",
    "Makefile",
    "README.md",
    "SECURITY.md",
    "mkdocs.yml",
    "pyproject.toml",
    "setup.py",
)
OFFLINE: Final = ("--quiet", "--no-deps", "--no-index", "--disable-pip-version-check")
"""Options of pip: it uses nothing but the files that it is given."""


def copy_project(copy: Path, folders: Iterable[str]) -> None:
    """Copy what a build reads.

    Parameters:
        copy: The folder to make.
        folders: The folders of the project to copy; compiled modules in them are left out. Links stay links.
    """
    copy.mkdir()
    for name in FILES:
        shutil.copy(REPOSITORY / name, copy)
    for folder in folders:
        if (REPOSITORY / folder).is_symlink():
            (copy / folder).symlink_to((REPOSITORY / folder).readlink())
            continue
        ignored = shutil.ignore_patterns("__pycache__", "*.so", "node_modules", "results")
        shutil.copytree(REPOSITORY / folder, copy / folder, ignore=ignored)


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program without variables that choose a compiler.

    Parameters:
        command: Its command line.
        environment: Variables to set.

    Returns:
        What it wrote, and its exit status.
    """
    return subprocess.run(
        [str(word) for word in command],
        env=_inherited() | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def pip(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run pip with this Python, its installed setuptools and no network.

    Parameters:
        arguments: The command and its arguments; `OFFLINE` and `--no-build-isolation` are added.
        environment: As of `run`.

    Returns:
        As of `run`.
    """
    command, *others = arguments
    return run(sys.executable, "-m", "pip", command, *OFFLINE, "--no-build-isolation", *others, **environment)


def _inherited() -> dict[str, str]:
    chosen = ("CC", "CFLAGS", "LDFLAGS", "PYTHONPATH")
    return {name: value for name, value in os.environ.items() if name not in chosen}
