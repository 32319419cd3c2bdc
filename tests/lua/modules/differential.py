"""Random snippets in this project's Lua and in a real Tarantool: `python -m tests.lua.modules.differential`.

It prints each snippet that does not do the same in both.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from random import Random

from tests.lua.modules.alike import comparable
from tests.lua.modules.random_snippets import SNIPPETS
from tests.lua.snippets import OurLua, TarantoolLua


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
    for _ in range(count):
        snippet = SNIPPETS[random.choice(modules)](random)
        here, there = comparable(ours.run(snippet)), comparable(real.run(snippet))
        if here != there:
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
            print(f"{snippet}\n  here  {here}\n  there {there}")
    print(f"{options.count} snippets of {', '.join(modules)}: {found} differ", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
