"""Random snippets in this project's Lua and in a real Tarantool: `python -m tests.lua.modules.differential`.

It prints each snippet that does not do the same in both. Snippets of fio have a directory of their own, whose
contents are compared as well.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from tests.lua.modules.alike import comparable
from tests.lua.modules.random_snippets import SNIPPETS
from tests.lua.snippets import OurLua, TarantoolLua


def _contents(directory: Path) -> str:
    """Paths, modes, links and contents below a directory."""
    lines = []
    for path in sorted(directory.rglob("*")):
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else ""
        lines.append(f"{path.relative_to(directory)} {path.lstat().st_mode:o} {content!r}")
    return "\n".join(lines)


def _run_in(directory: Path, lua: OurLua | TarantoolLua, snippet: str) -> str:
    """Run a snippet in a new directory. Returns what it did, and what is in the directory then."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    before = Path.cwd()
    try:
        described = lua.run(f"require('fio').chdir('{directory}')\n{snippet}")
    finally:
        os.chdir(before)
    return f"{described}\n{_contents(directory)}"


def differences(
    ours: OurLua, real: TarantoolLua, seed: int, count: int, modules: Sequence[str]
) -> Iterator[tuple[str, str, str]]:
    """Run random snippets.

    Parameters:
        ours: this project's Lua.
        real: a real Tarantool.
        seed: the seed; the snippets depend on it alone.
        count: the number of snippets.
        modules: their modules, names of `SNIPPETS`.

    Yields:
        A snippet, and what it does here and there, where that differs.
    """
    real.run("jit.off()")  # Tarantool 2.6 compiles a few loops wrongly
    random = Random(seed)
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as temporary:
        directory = Path(temporary) / "work"
        for _ in range(count):
            module = random.choice(modules)
            snippet = SNIPPETS[module](random)
            if module == "fio":
                here, there = (_run_in(directory, lua, snippet) for lua in (ours, real))
            else:
                here, there = ours.run(snippet), real.run(snippet)
            if comparable(here) != comparable(there):
                yield snippet, here, there


def main() -> int:
    """Print the differences. Returns 0 if there are none."""
    parser = argparse.ArgumentParser(description="Compare this Lua with a real Tarantool.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("modules", nargs="*", help=f"some of: {', '.join(SNIPPETS)}")
    options = parser.parse_args()
    program = shutil.which("tarantool")
    if program is None:
        parser.error("tarantool is not installed: apt-get install tarantool")
    found = 0
    with TarantoolLua(program) as real:
        modules = options.modules or list(SNIPPETS)
        for snippet, here, there in differences(OurLua(), real, options.seed, options.count, modules):
            found += 1
            print(f"{snippet}\n  here  {here}\n  there {there}", flush=True)
    print(f"{options.count} snippets of {', '.join(modules)}: {found} differ", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
