"""Runs the microbenchmarks, and compares their times with a baseline.

    make bench-pieces
    python -m bench.micro [--fail] [--limit RATIO] [-- PYTEST-ARGUMENTS]

    make bench-baselines
    python -m bench.micro --store [--runs N]

pytest-benchmark runs them in a separate process. Benchmarks that seem slower run twice more, and the median
counts, so that a disturbance of one of three runs does not count as a regression.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from bench.lib.arguments import count
from bench.micro.baseline import BaselineError, Times, load, median, store
from bench.micro.regressions import LIMIT, changes, report, slower

BASELINES: Final = Path(__file__).parent / "baselines"
REPOSITORY: Final = Path(__file__).parents[2]
RUNS: Final = 3
"""The number of runs for a new baseline, and of benchmarks that seem slower."""

Measure = Callable[[Sequence[str]], Times]
"""Runs the benchmarks that arguments to pytest select: all by default."""


class UnmeasuredError(Exception):
    """The benchmarks could not run; the text is pytest's output."""


def main(arguments: Sequence[str] | None = None, measure: Measure | None = None) -> int:
    """Run the command.

    Parameters:
        arguments: the command line; None for the process's own.
        measure: runs the benchmarks.

    Returns:
        The exit status: 0 if there is a report; 1 if something is slower and `--fail` was given; 2 without a
        report.
    """
    options = _parser().parse_args(arguments)
    try:
        return _run(options, measure or _measure)
    except (BaselineError, UnmeasuredError) as error:
        print(error, file=sys.stderr)
        return 2


def _run(options: argparse.Namespace, measure: Measure) -> int:
    if options.store:
        return _store(options, measure)
    # First, as measuring takes time.
    then = load(options.baselines)
    now = measure(options.selection)
    suspects = [change.name for change in slower(changes(now, then), options.limit)]
    if suspects:
        now = median([now, *(measure(suspects) for _ in range(RUNS - 1))])
    every = changes(now, then, is_whole=not options.selection)
    print(report(every, now, then, options.limit))
    return 1 if options.fail and slower(every, options.limit) else 0


def _store(options: argparse.Namespace, measure: Measure) -> int:
    if options.selection:
        raise BaselineError("--store needs all benchmarks: none can be selected")
    times = median([measure(()) for _ in range(options.runs)])
    print(f"{len(times.pieces)} pieces in {store(options.baselines, times)}")
    return 0


def _measure(selection: Sequence[str]) -> Times:
    """Run benchmarks with pytest-benchmark; raises UnmeasuredError."""
    # pytest-benchmark measures nothing in processes that it takes for workers of pytest-xdist.
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_XDIST_WORKER"}
    with tempfile.TemporaryDirectory(prefix="pieces-") as directory:
        file = Path(directory) / "report.json"
        done = subprocess.run(
            _command(file, selection),
            cwd=REPOSITORY,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0 or not file.exists():
            raise UnmeasuredError(f"{done.stdout}\nthe benchmarks could not run")
        try:
            return Times.from_report(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise UnmeasuredError(str(error)) from error


def _command(file: Path, selection: Sequence[str]) -> list[str]:
    """Build pytest's command line; names of tests among the arguments replace the whole directory."""
    has_names = any(argument.startswith("bench/") for argument in selection)
    return [
        *(sys.executable, "-m", "pytest", "-q", "-o", "addopts=--import-mode=importlib"),
        # CPU time does not include the time that other processes take.
        *(f"--benchmark-json={file}", "--benchmark-timer=time.process_time"),
        *(() if has_names else ("bench",)),
        *selection,
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.micro",
        description="Run the microbenchmarks of the server, and compare their times with a baseline.",
    )
    parser.add_argument("--limit", type=_ratio, default=LIMIT, help="ratio to mark as slower [%(default)s]")
    parser.add_argument("--fail", action="store_true", help="exit with 1 if a benchmark is slower")
    parser.add_argument("--store", action="store_true", help="store a new baseline instead")
    parser.add_argument("--runs", type=count, default=RUNS, help="number of runs with --store [%(default)s]")
    parser.add_argument(
        "--baselines", type=Path, default=BASELINES, metavar="DIR", help="[bench/micro/baselines]"
    )
    parser.add_argument("selection", nargs="*", metavar="PYTEST-ARGUMENT", help="after --: such as -k update")
    return parser


def _ratio(text: str) -> float:
    try:
        ratio = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not ratio > 0:
        raise argparse.ArgumentTypeError(f"{text} is not a ratio above 0")
    return ratio


if __name__ == "__main__":
    sys.exit(main())
