"""Random snippets with values of `box` here and in a real Tarantool.

`python -m tests.lua.values.differential --count 20000 tuple` prints each snippet that differs.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from random import Random

from tests.lua.snippets import OurLua, TarantoolLua
from tests.lua.values.alike import run
from tests.lua.values.random_box import SNIPPETS


def differences(
    ours: OurLua, real: TarantoolLua, seed: int, count: int, kinds: Sequence[str]
) -> Iterator[tuple[str, str, str]]:
    """Run random snippets, which depend on the seed alone.

    Parameters:
        ours: this project's Lua.
        real: a real Tarantool.
        seed: the seed.
        count: the number of snippets.
        kinds: their kinds, names of `SNIPPETS`.

    Yields:
        A snippet, and what it does here and there, where that differs.
    """
    random = Random(seed)
    for _ in range(count):
        snippet = SNIPPETS[random.choice(kinds)](random)
        here, there = run(ours, snippet), run(real, snippet)
        if here != there:
            yield snippet, here, there


def main() -> int:
    """Print the differences. Returns 0 if there are none."""
    parser = argparse.ArgumentParser(description="Compare values of box with a real Tarantool.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("kinds", nargs="*", help=f"some of: {', '.join(SNIPPETS)}")
    options = parser.parse_args()
    program = shutil.which("tarantool")
    if program is None:
        parser.error("tarantool is not installed: apt-get install tarantool")
    found = 0
    kinds = options.kinds or list(SNIPPETS)
    real = TarantoolLua(program)
    with real:
        for snippet, here, there in differences(OurLua(), real, options.seed, options.count, kinds):
            found += 1
            print(f"{snippet}\n  here  {here}\n  there {there}", flush=True)
    print(f"{options.count} snippets of {', '.join(kinds)}: {found} differ", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
