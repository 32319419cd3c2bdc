"""The command: `python -m tests.differential.tubes python lua --requests 50000 --seed 1`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from random import SystemRandom

from tests.differential.tubes.campaign import Campaign
from tests.differential.tubes.servers import Kind
from tests.queue_lua_compat.real_tubes import CHECKOUT


def main() -> int:
    """Compare two servers of tubes.

    Returns:
        0: no difference; 1: there are some.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tests.differential.tubes",
        description="Send random requests to two servers of tubes, whose data directories change hands. "
        "TARANTOOL_QUEUE_CHECKOUT names a checkout of https://github.com/tarantool/queue.",
    )
    parser.add_argument("ours", type=Kind, choices=list(Kind), nargs="?", default=Kind.PYTHON)
    parser.add_argument("theirs", type=Kind, choices=list(Kind), nargs="?", default=Kind.LUA)
    parser.add_argument("--requests", type=int, default=50000, help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="ask the same again (default: a new one)")
    arguments = parser.parse_args()
    if not os.environ.get(CHECKOUT):
        parser.error(f"set {CHECKOUT} to a checkout of https://github.com/tarantool/queue")
    seed = SystemRandom().randrange(10**6) if arguments.seed is None else arguments.seed
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="diff-tubes-") as directory:
        campaign = Campaign(
            arguments.ours, arguments.theirs, seed, Path(directory), lambda line: print(line, flush=True)
        )
        report = campaign.run(arguments.requests)
    print(report, f"{time.monotonic() - began:.0f} s", sep="\n", flush=True)
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
