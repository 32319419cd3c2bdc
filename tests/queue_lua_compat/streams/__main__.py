"""The command: `python -m tests.queue_lua_compat.streams tutorial fifottl --seconds 600 --seed 1`."""

from __future__ import annotations

import argparse
import logging
import random
import sys

from tests.queue_lua_compat.streams.campaign import STEPS, campaign
from tests.queue_lua_compat.streams.dialects import DIALECTS


def main() -> int:
    """Run random histories of queues, one kind after the other.

    Returns:
        0: nothing is wrong; 1: something is.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.queue_lua_compat.streams", description=__doc__)
    parser.add_argument(
        "kinds", nargs="*", choices=[*DIALECTS, []], help=f"of: {', '.join(DIALECTS)} (default: all)"
    )
    parser.add_argument("--seconds", type=float, default=60, help="how long in all (default: %(default)s)")
    parser.add_argument("--histories", type=int, help="how many of each kind at the most")
    parser.add_argument("--seed", type=int, help="of the first history (default: a new one)")
    parser.add_argument("--steps", type=int, default=STEPS, help="of each history (default: %(default)s)")
    arguments = parser.parse_args()
    # Exceptions that triggers raise on purpose are logged with tracebacks.
    logging.disable(logging.CRITICAL)
    kinds = arguments.kinds or list(DIALECTS)
    seed = random.SystemRandom().randrange(10**9) if arguments.seed is None else arguments.seed
    print(f"seed {seed}", flush=True)
    findings = 0
    for kind in kinds:
        report = campaign(
            kind,
            seed,
            histories=arguments.histories,
            seconds=arguments.seconds / len(kinds),
            steps=arguments.steps,
        )
        print(report, flush=True)
        findings += report.finding is not None
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
