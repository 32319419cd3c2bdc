"""Parts of the benchmarks in C, built by the first run that needs them, into `build/bench`."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).resolve().parent
BUILT: Final = FOLDER.parents[1] / "build" / "bench"
_FLAGS: Final = ("-std=c11", "-O2", "-Wall", "-Wextra")
_DIGITS: Final = 16


def shared_library(name: str) -> Path:
    """Build a shared library if there is none of the same source.

    Parameters:
        name: the name of its source in this folder, without `.c`.

    Returns:
        Its path.

    Raises:
        RuntimeError: There is no compiler, or it failed.
    """
    return _built(name, ".so", "-shared", "-fPIC")


def program(name: str) -> Path:
    """Build a program if there is none of the same source; as `shared_library`."""
    return _built(name, "")


def _built(name: str, suffix: str, *flags: str) -> Path:
    source = FOLDER / f"{name}.c"
    compiler = shlex.split(os.environ.get("CC", "cc"))
    command = [*compiler, *_FLAGS, *flags]
    digest = hashlib.sha256(" ".join(command).encode() + source.read_bytes()).hexdigest()[:_DIGITS]
    result = BUILT / f"{name}-{digest}{suffix}"
    if result.exists():
        return result
    if shutil.which(compiler[0]) is None:
        raise RuntimeError(f"benchmarks need a C compiler, and there is none ({compiler[0]})")
    BUILT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILT) as folder:
        # Others may build the same at the same time.
        made = Path(folder) / result.name
        done = subprocess.run(
            [*command, str(source), "-o", str(made)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{shlex.join(command)} cannot build {source}:\n{done.stderr}")
        made.replace(result)
    return result
