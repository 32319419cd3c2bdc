"""The command: `python -m tests.crash --lives 10000 --seed 1`."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from random import SystemRandom

from tests.crash.campaign import Campaign
from tests.crash.moment import EVENTS, Event
from tests.crash.scale import LONG, SHORT
from tests.crash.servers.subject import (
    APPLICATION,
    LUA_APPLICATION,
    ForkedServer,
    OurServer,
    Subject,
    Tarantool,
)

TOLD_EVERY = 100
"""One of so many short lives is reported."""

APPLICATIONS = {"iproto-server": APPLICATION, "lua": LUA_APPLICATION}
"""What our server serves, by subject."""

SUBJECTS = (*APPLICATIONS, "tarantool")


def new_subject(name: str, is_short: bool) -> Subject:
    """Return what is killed; for short lives, what starts quickly."""
    if name not in APPLICATIONS:
        return Tarantool()
    return (ForkedServer if is_short else OurServer)(APPLICATIONS[name])


def main() -> int:
    """Run a campaign.

    Returns:
        0: nothing is wrong; 1: something is.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--seconds", type=float, help="at least so long (default: 60 without numbers)")
    parser.add_argument("--lives", type=int, default=0, help="at least so many lives")
    parser.add_argument(
        "--kills", type=int, default=0, help="at least so many kills, most lives have several"
    )
    parser.add_argument("--seed", type=int, help="repeat what was drawn from this seed (default: a new one)")
    parser.add_argument("--subject", choices=SUBJECTS, default="iproto-server", help="what is killed")
    parser.add_argument(
        "--long", action="store_true", help="lives of seconds in new processes, as always with tarantool"
    )
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
    seconds = arguments.seconds
    if seconds is None:
        seconds = 0 if arguments.lives or arguments.kills else 60
    is_short = arguments.subject in APPLICATIONS and not arguments.long
    with closing(new_subject(arguments.subject, is_short)) as subject:

        def tell(line: str) -> None:
            if not is_short:
                print(line, flush=True)
            elif campaign.report.lives and not campaign.report.lives % TOLD_EVERY:
                print(campaign.report.progress, flush=True)

        campaign = Campaign(
            subject, directory, seed, tell, events=arguments.events, scale=SHORT if is_short else LONG
        )
        report = campaign.run(seconds=seconds, lives=arguments.lives, kills=arguments.kills)
    print(report, flush=True)
    if report.findings:
        return 1
    if arguments.directory is None:
        shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
