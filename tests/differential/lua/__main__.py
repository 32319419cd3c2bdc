"""The command: `python -m tests.differential.lua --count 20000 --seed 1 rows tuples`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from random import SystemRandom

from tests.differential.lua.campaign import Campaign
from tests.differential.lua.snippet import TOPICS


def main() -> int:
    """Compare random snippets of Lua by EVAL.

    Returns:
        0: no difference; 1: there are some.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tests.differential.lua",
        description="Evaluate random snippets of Lua on a server of ours and on a real Tarantool.",
    )
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help=f"some of: {', '.join(TOPICS)}")
    parser.add_argument("--count", type=int, default=20000, help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="make the same again (default: a new one)")
    parser.add_argument(
        "--differences", type=int, default=20, help="end after so many (default: %(default)s)"
    )
    arguments = parser.parse_args()
    unknown = set(arguments.topics) - set(TOPICS)
    if unknown:
        parser.error(f"unknown topics: {', '.join(sorted(unknown))}")
    seed = SystemRandom().randrange(10**6) if arguments.seed is None else arguments.seed
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="diff-lua-") as directory:
        campaign = Campaign(
            seed, Path(directory), arguments.topics or tuple(TOPICS), lambda line: print(line, flush=True)
        )
        report = campaign.run(arguments.count, arguments.differences)
    print(report, f"{time.monotonic() - began:.0f} s", sep="\n", flush=True)
    return 1 if report.differences else 0


if __name__ == "__main__":
    sys.exit(main())
