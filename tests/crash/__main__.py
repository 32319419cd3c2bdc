"""The command: `python -m tests.crash --seconds 600 --seed 1`."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from random import SystemRandom

from tests.crash.campaign import Campaign
from tests.crash.moment import EVENTS, Event
from tests.crash.subject import SUBJECTS


def main() -> int:
    """Run a campaign.

    Returns:
        0: nothing is wrong; 1: something is.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long to go on (default: %(default)s)")
    parser.add_argument("--lives", type=int, default=0, help="at least so many lives")
    parser.add_argument("--seed", type=int, help="repeat what was drawn from this seed (default: a new one)")
    parser.add_argument("--subject", choices=SUBJECTS, default="iproto-server", help="what is killed")
    parser.add_argument(
        "--events",
        type=lambda text: [Event(word) for word in text.split(",")],
        default=EVENTS,
        help=f"what the lives end with, one after the other, of: {','.join(Event)}",
    )
    parser.add_argument("--directory", type=Path, help="where the files go (default: a temporary place)")
    arguments = parser.parse_args()
    seed = SystemRandom().randrange(10**6) if arguments.seed is None else arguments.seed
    directory = arguments.directory or Path(tempfile.mkdtemp(prefix="crash-"))
    directory.mkdir(parents=True, exist_ok=True)
    print(f"seed {seed}, files in {directory}", flush=True)
    campaign = Campaign(
        SUBJECTS[arguments.subject](),
        directory,
        seed,
        lambda line: print(line, flush=True),
        events=arguments.events,
    )
    report = campaign.run(seconds=arguments.seconds, lives=arguments.lives)
    print(report)
    if report.findings:
        return 1
    if arguments.directory is None:
        shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
