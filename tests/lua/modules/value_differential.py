"""Random snippets with decimals, UUIDs and files, here and in a real Tarantool.

`python -m tests.lua.modules.value_differential --count 20000 decimal` prints each snippet that differs.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random

from tests.lua.modules.random_decimals import decimal_snippet
from tests.lua.modules.random_files import files_snippet
from tests.lua.modules.random_uuids import uuid_snippet
from tests.lua.snippets import OurLua, TarantoolLua

SNIPPETS: Mapping[str, Callable[[Random], str]] = {
    "decimal": decimal_snippet,
    "files": files_snippet,
    "uuid": uuid_snippet,
}

_DIFFERENT = (
    (re.compile(r"builtin/[\w./]+\.lua:\d+"), "builtin"),
    (re.compile(r"[\w./-]*described\.lua:\d+"), "described"),
    (re.compile(r"struct \d+"), "struct NUMBER"),
    (re.compile(r"0x[0-9a-f]+|builtin#\d+"), "ADDRESS"),
)
"""What must differ: lines of modules, numbers of unnamed structs, and addresses."""


def comparable(described: str) -> str:
    """A description without what must differ."""
    for pattern, name in _DIFFERENT:
        described = pattern.sub(name, described)
    return described


def _tree(directory: Path) -> str:
    """Paths, modes, links and contents below a directory."""
    lines = []
    for path in sorted(directory.rglob("*")):
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else ""
        lines.append(f"{path.relative_to(directory)} {path.lstat().st_mode:o} {content!r}")
    return "\n".join(lines)


def run_in_directory(lua: OurLua | TarantoolLua, snippet: str, directory: Path) -> str:
    """Run a snippet in an empty directory. Returns what it did, and what is in the directory then."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    before = Path.cwd()
    try:
        described = lua.run(f"require('fio').chdir('{directory}')\n{snippet}")
    finally:
        os.chdir(before)
    return f"{comparable(described)}\n{_tree(directory)}"


def differences(
    ours: OurLua, real: TarantoolLua, module: str, seed: int, count: int
) -> Iterator[tuple[str, str, str]]:
    """Run random snippets, which depend on the seed alone.

    Yields:
        A snippet, and what it does here and there, where that differs.
    """
    random = Random(seed)
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as temporary:
        directory = Path(temporary) / "work"
        for _ in range(count):
            snippet = SNIPPETS[module](random)
            if module == "files":
                here, there = (run_in_directory(lua, snippet, directory) for lua in (ours, real))
            else:
                here, there = comparable(ours.run(snippet)), comparable(real.run(snippet))
            if here != there:
                yield snippet, here, there


def main() -> int:
    """Print the differences. Returns 0 if there are none."""
    parser = argparse.ArgumentParser(description="Compare this Lua with a real Tarantool.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("module", choices=SNIPPETS)
    options = parser.parse_args()
    program = shutil.which("tarantool")
    if program is None:
        parser.error("tarantool is not installed: apt-get install tarantool")
    found = 0
    with TarantoolLua(program) as real:
        for snippet, here, there in differences(OurLua(), real, options.module, options.seed, options.count):
            found += 1
            print(f"{snippet}\n  here  {here}\n  there {there}", flush=True)
    print(f"{options.count} snippets of {options.module}: {found} differ", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
