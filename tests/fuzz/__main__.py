"""The command: `python -m tests.fuzz updates logs --seconds 600 --seed 1`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.fuzz.campaign import fuzz, greedy, mutate
from tests.fuzz.target import TARGETS


def main() -> int:
    """Fuzz targets, one after the other.

    Returns:
        0: nothing is wrong; 1: something is.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    names = ", ".join(TARGETS)
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], help=f"of: {names} (default: all)")
    parser.add_argument("--seconds", type=int, default=60, help="how long in all (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="what to draw from (default: a new one)")
    parser.add_argument("--corpus", type=Path, help="where corpora are kept (default: a temporary place)")
    unguided = "mutate the corpus without guidance by coverage, as is necessary under sanitizers"
    parser.add_argument("--unguided", action="store_true", help=unguided)
    arguments = parser.parse_args()
    targets = arguments.targets or TARGETS
    directory = arguments.corpus or Path(tempfile.mkdtemp(prefix="fuzz-"))
    print(f"corpora in {directory}", flush=True)
    findings = 0
    seconds = max(arguments.seconds // len(targets), 1)
    for name in targets:
        run = mutate if arguments.unguided else fuzz
        report = run(name, directory, seconds=seconds, seed=arguments.seed)
        print(report, flush=True)
        is_measured = report.found is None and not arguments.unguided
        needing_much = greedy(name, directory) if is_measured else []
        for data in needing_much:
            print(f"TOO MUCH MEMORY FOR {data!r}", flush=True)
        findings += report.found is not None or bool(needing_much)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
