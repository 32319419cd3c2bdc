"""The command: `python -m tests.differential.random --group dml --requests 20000 --seed 1`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from itertools import count
from pathlib import Path
from random import SystemRandom

from tests.differential.random.campaign import Campaign
from tests.differential.random.groups import GROUPS


def main() -> int:
    """Run a campaign for each requested group.

    Returns:
        0: no difference; 1: there are some.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.differential.random", description=__doc__)
    parser.add_argument(
        "--group", choices=GROUPS, action="append", help="may be given several times (default: all)"
    )
    parser.add_argument(
        "--requests", type=int, default=20000, help="how many of each group (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, help="ask the same again (default: a new one)")
    parser.add_argument(
        "--seconds", type=float, help="go on with one seed after the other, for so long (default: one seed)"
    )
    parser.add_argument(
        "--differences", type=int, default=5, help="end a group after so many (default: %(default)s)"
    )
    arguments = parser.parse_args()
    seed = SystemRandom().randrange(10**6) if arguments.seed is None else arguments.seed
    end = time.monotonic() + (arguments.seconds or 0)
    found = 0
    for each in count(seed):
        found += sum(_run(name, each, arguments) for name in arguments.group or GROUPS)
        if time.monotonic() >= end:
            break
    return 1 if found else 0


def _run(name: str, seed: int, arguments: argparse.Namespace) -> int:
    """Run a group's campaign with a seed, and return the number of differences."""
    with tempfile.TemporaryDirectory(prefix=f"diff-{name}-") as directory:
        campaign = Campaign(
            name,
            seed,
            Path(directory),
            lambda line: print(line, flush=True),
            most=arguments.differences,
        )
        report = campaign.run(arguments.requests)
    print(report, flush=True)
    return len(report.findings)


if __name__ == "__main__":
    sys.exit(main())
