"""The command: `python -m tests.fuzz updates logs --seconds 600 --seed 1`.

The targets share the time; several at once, in processes of their own, get more of it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import monotonic

from tests.fuzz.campaign import Report, fuzz, greedy, mutate
from tests.fuzz.target import TARGETS


def main() -> int:
    """Fuzz targets, some of them at once.

    Returns:
        0: nothing is wrong; 1: something is.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    names = ", ".join(TARGETS)
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], help=f"of: {names} (default: all)")
    parser.add_argument("--seconds", type=int, default=60, help="how long in all (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="targets at once (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="what to draw from (default: a new one)")
    parser.add_argument("--corpus", type=Path, help="where corpora are kept (default: a temporary place)")
    unguided = "mutate the corpus without guidance by coverage, as is necessary under sanitizers"
    parser.add_argument("--unguided", action="store_true", help=unguided)
    arguments = parser.parse_args()
    targets = arguments.targets or [*TARGETS]
    directory = arguments.corpus or Path(tempfile.mkdtemp(prefix="fuzz-"))
    print(f"corpora in {directory}", flush=True)
    begin = monotonic()
    inputs = findings = 0
    seconds = share(arguments.seconds, len(targets), arguments.jobs)
    run = partial(mutate if arguments.unguided else fuzz, seconds=seconds, seed=arguments.seed)
    for report in run_all(targets, lambda name: run(name, directory), arguments.jobs):
        print(report, flush=True)
        is_measured = report.found is None and not arguments.unguided
        needing_much = greedy(report.name, directory) if is_measured else []
        for data in needing_much:
            print(f"TOO MUCH MEMORY FOR {data!r}", flush=True)
        inputs += report.runs
        findings += (report.found is not None) + len(needing_much)
    took = monotonic() - begin
    print(f"{len(targets)} targets, {seconds} s each: {inputs} inputs, {findings} findings, {took:.0f} s")
    return 1 if findings else 0


def share(seconds: int, targets: int, jobs: int) -> int:
    """Return the seconds of a target if all together are to take some time."""
    return max(seconds * min(jobs, targets) // targets, 1)


def run_all(targets: Sequence[str], run: Callable[[str], Report], jobs: int) -> Iterator[Report]:
    """Run targets, some at once.

    Yields:
        Their reports, in the order of the targets.
    """
    with ThreadPoolExecutor(jobs) as threads:
        yield from threads.map(run, targets)


if __name__ == "__main__":
    sys.exit(main())
