"""The packages of this project as one file for the executors of a cluster."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile

PACKAGES: Final = ("iproto_server", "queue_lua_compat", "spark")
"""Executors run them in pure Python: a compiled module cannot be imported from a zip file."""

_NAME: Final = "tarantool-for-spark.zip"


@cache
def build_archive() -> Path | None:
    """Pack the packages into a zip file, once per process; it is removed at exit.

    Returns:
        The file; None if this process imports the packages from such a file, as a driver inside the cluster
        may do: the executors have it then, too.

    Raises:
        OSError: If the file cannot be created.
    """
    roots = [Path(import_module(package).__path__[0]) for package in PACKAGES]
    if not all(root.is_dir() for root in roots):
        return None
    directory = tempfile.mkdtemp(prefix="tarantool-for-spark-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    archive = Path(directory, _NAME)
    with ZipFile(archive, "w", ZIP_DEFLATED) as file:
        for root in roots:
            for path in sorted(root.rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    file.write(path, path.relative_to(root.parent))
    return archive
