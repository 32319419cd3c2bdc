"""Measure the pieces of the server, and compare their times with the baseline's.

    make bench-pieces
    python -m bench.micro [--pure-python] [--fail] [--limit RATIO] [-- PYTEST-ARGUMENTS]

    make bench-baselines
    python -m bench.micro --store [--pure-python] [--runs N]

pytest-benchmark measures them, in a process of its own. What seems slower is measured again, twice: the time
in the middle counts, so that what disturbs one of three runs is not taken for a regression.
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
from bench.micro.baseline import BaselineError, Times, load, middle, store
from bench.micro.regressions import LIMIT, changes, report, slower
from iproto_server import native

BASELINES: Final = Path(__file__).parent / "baselines"
REPOSITORY: Final = Path(__file__).parents[2]
RUNS: Final = 3
"""How often pieces are measured that are stored, or that seem slower."""

Measure = Callable[[Sequence[str]], Times]
"""Measures the pieces that arguments to pytest select: all by default."""


class UnmeasuredError(Exception):
    """The pieces could not be measured; the text is what pytest said."""


def main(arguments: Sequence[str] | None = None, measure: Measure | None = None) -> int:
    """Run the command.

    Parameters:
        arguments: those of the command line, by default the process's own.
        measure: what measures.

    Returns:
        The process's exit status: 0 when there is a report, whatever it says; 1 when something is slower
        and `--fail` was asked for; 2 when there is none.
    """
    options = _parser().parse_args(arguments)
    try:
        return _run(options, measure or _measure_with(is_pure=options.pure_python))
    except (BaselineError, UnmeasuredError) as error:
        print(error, file=sys.stderr)
        return 2


def _run(options: argparse.Namespace, measure: Measure) -> int:
    if options.store:
        return _store(options, measure)
    # Before anything is measured, which takes its time.
    then = load(options.baselines, _implementation(is_pure=options.pure_python))
    now = measure(options.selection)
    if now.implementation != then.implementation:
        raise UnmeasuredError(f"{now.implementation!r} was measured instead of {then.implementation!r}")
    suspects = [change.name for change in slower(changes(now, then), options.limit)]
    if suspects:
        now = middle([now, *(measure(suspects) for _ in range(RUNS - 1))])
    every = changes(now, then, is_whole=not options.selection)
    print(report(every, now, then, options.limit))
    return 1 if options.fail and slower(every, options.limit) else 0


def _store(options: argparse.Namespace, measure: Measure) -> int:
    if options.selection:
        raise BaselineError("a baseline has all pieces: none can be selected with --store")
    times = middle([measure(()) for _ in range(options.runs)])
    print(f"{times.implementation}: {len(times.pieces)} pieces in {store(options.baselines, times)}")
    return 0


def _implementation(*, is_pure: bool) -> str:
    return "compiled" if native.IS_COMPILED and not is_pure else "pure Python"


def _measure_with(*, is_pure: bool) -> Measure:
    # pytest-benchmark measures nothing in what it takes for a worker of pytest-xdist.
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_XDIST_WORKER"}
    if is_pure:
        environment[native.PURE_PYTHON] = "1"

    def measure(selection: Sequence[str]) -> Times:
        """Have pytest-benchmark measure pieces; raises UnmeasuredError."""
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
                raise UnmeasuredError(f"{done.stdout}\nthe pieces could not be measured")
            try:
                return Times.from_report(file.read_text(encoding="utf-8"))
            except ValueError as error:
                raise UnmeasuredError(str(error)) from error

    return measure


def _command(file: Path, selection: Sequence[str]) -> list[str]:
    """Pytest's command line: names of tests among the arguments stand for all others."""
    has_names = any(argument.startswith("bench/") for argument in selection)
    return [
        *(sys.executable, "-m", "pytest", "-q", "-o", "addopts=--import-mode=importlib"),
        # What others do at the same time takes time, but no CPU time of ours.
        *(f"--benchmark-json={file}", "--benchmark-timer=time.process_time"),
        *(() if has_names else ("bench",)),
        *selection,
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.micro",
        description="Measure the pieces of the server, and compare their times with the baseline's.",
    )
    parser.add_argument("--pure-python", action="store_true", help="without what is compiled")
    parser.add_argument("--limit", type=_ratio, default=LIMIT, help="which ratio is marked [%(default)s]")
    parser.add_argument("--fail", action="store_true", help="exit with 1 when a piece is marked")
    parser.add_argument("--store", action="store_true", help="make the baseline instead")
    parser.add_argument("--runs", type=count, default=RUNS, help="with --store [%(default)s]")
    parser.add_argument("--baselines", type=Path, default=BASELINES, metavar="DIR", help="[bench/baselines]")
    parser.add_argument("selection", nargs="*", metavar="PYTEST-ARGUMENT", help="behind --: -k update")
    return parser


def _ratio(text: str) -> float:
    try:
        ratio = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
    if not ratio > 0:
        raise argparse.ArgumentTypeError(f"{text} is no ratio above 0")
    return ratio


if __name__ == "__main__":
    sys.exit(main())
