"""The packages of this project as files for the executors of a cluster."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile

import iproto_server.native
import pyspark_tarantool.native

PACKAGES: Final = ("iproto_server", "queue_lua_compat", "pyspark_tarantool")

_NAME: Final = "tarantool-for-spark.zip"
_LEFT_OUT: Final = (".so", ".c", ".h")
"""Compiled modules cannot be imported from a zip file; they are files of their own."""


@cache
def build_archive() -> Sequence[Path]:
    """Pack the packages into a zip file, once per process, and copy the compiled modules; removed at exit.

    Executors find the compiled modules beside the zip file, if these are for their Python and system.

    Returns:
        The zip file and the compiled modules; nothing if this process imports the packages from such a
        file, as a driver inside the cluster may do: the executors have it then, too.

    Raises:
        OSError: If a file cannot be created.
    """
    roots = [Path(import_module(package).__path__[0]) for package in PACKAGES]
    if not all(root.is_dir() for root in roots):
        return ()
    directory = Path(tempfile.mkdtemp(prefix="tarantool-for-spark-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    archive = directory / _NAME
    with ZipFile(archive, "w", ZIP_DEFLATED) as file:
        for root in roots:
            for path in sorted(root.rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts and path.suffix not in _LEFT_OUT:
                    file.write(path, path.relative_to(root.parent))
    files = [archive]
    for module in (iproto_server.native.module, pyspark_tarantool.native.module):
        source, name = module.shipped
        files.append(Path(shutil.copy(source, directory / name)))
    return files
