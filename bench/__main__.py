"""Compares our server with Tarantool, beanstalkd and Redis, under the same load in the same run.

    python -m bench [--quick] [--rounds N] [--tasks N] [--only PART,... ...] [--contender NAME ...]
                    [--shape 10x100 ...] [--tarantool-app FILE] [--output DIR] [--directory DIR]
    python -m bench --show FILE ...

Prints tables, and writes all figures to DIR/comparison-TIME.json, with a chart and a Markdown file beside it.
docs/PERFORMANCE.md explains the figures.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.lib.arguments import count
from bench.peers.contender import REPOSITORY, Contender
from bench.peers.database import DEFAULT_QUEUE
from bench.report.chart import draw
from bench.report.comparison import NAMES, SECTIONS, SHAPES, Comparison, Plan, find
from bench.report.markdown import described, markdown
from bench.report.results import Results, read, this_machine
from bench.report.tables import tables
from bench.workloads.rate import Shape

FULL: Final = Plan(rounds=3, share=1.0, tasks=1_000_000, latency_rounds=9)
QUICK: Final = Plan(rounds=1, share=0.2, tasks=100_000, latency_rounds=3)
_FEW_FILES: Final = 4096


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, and print the tables.

    Parameters:
        arguments: the command line; None for this process's own.

    Returns:
        The exit status: 0 if the measurements succeeded, whether or not the goals are met.
    """
    options = _parser().parse_args(arguments)
    if options.show:
        try:
            results = read(options.show)
        except (OSError, ValueError) as error:
            print(f"python -m bench: {error}", file=sys.stderr)
            return 1
        _print(results)
        return 0
    _allow_files()
    members, missing = find(options.contender or NAMES, options.tarantool_app)
    for name in missing:
        _say(f"{name} is not installed: skipped")
    if not members:
        print("python -m bench: none of the contenders is installed", file=sys.stderr)
        return 1
    results = _measure(members, options)
    results.machine = this_machine()
    results.missing += missing
    _print(results)
    options.output.mkdir(parents=True, exist_ok=True)
    file = options.output / f"comparison-{time.strftime('%Y%m%d-%H%M%S')}.json"
    file.write_text(results.to_json())
    draw(results, file.with_suffix(".png"))
    file.with_suffix(".md").write_text(markdown(results))
    _say(f"wrote {file}, and its tables and chart beside it")
    return 0


def _measure(members: Sequence[Contender], options: argparse.Namespace) -> Results:
    usual = QUICK if options.quick else FULL
    plan = Plan(
        rounds=options.rounds or usual.rounds,
        share=usual.share,
        tasks=options.tasks or usual.tasks,
        shapes=list(dict.fromkeys(options.shape or SHAPES)),
        sections=list(dict.fromkeys(part for parts in options.only for part in parts)) or SECTIONS,
        latency_rounds=usual.latency_rounds,
    )
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        comparison = Comparison(members, Path(directory), plan, _say)
        comparison.run()
    _say(f"done in {time.perf_counter() - begun:.0f} s")
    return comparison.results


def _print(results: Results) -> None:
    for one in tables(results):
        print(one)
    print(described(results))
    for name in results.missing:
        print(f"Not installed: {name}")
    for note in results.notes:
        print(note)


def _allow_files() -> None:
    """Raise the limit of open files for this process and its servers to the number of connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FEW_FILES if hard == resource.RLIM_INFINITY else min(_FEW_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Compare our server with Tarantool, beanstalkd and Redis."
    )
    parser.add_argument("--quick", action="store_true", help="one round with less load: about a minute")
    parser.add_argument("--rounds", type=count, metavar="N", help=f"number of rounds [{FULL.rounds}]")
    parser.add_argument("--tasks", type=count, metavar="N", help=f"tasks in a backlog [{FULL.tasks:,}]")
    parser.add_argument("--contender", nargs="+", type=_contender, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument(
        "--shape",
        nargs="+",
        type=Shape.parse,
        metavar="CxN",
        help="connections x requests in flight of each, such as 10x100",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        type=_parts,
        metavar="PART,...",
        default=(),
        help=f"measure only these parts: {', '.join(SECTIONS)}",
    )
    parser.add_argument(
        "--tarantool-app", type=_file, metavar="FILE", default=DEFAULT_QUEUE, help="Tarantool's queue in Lua"
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        default=REPOSITORY / "bench" / "results",
        help="directory for results",
    )
    parser.add_argument(
        "--directory", type=_directory, metavar="DIR", help="directory for the servers' temporary files"
    )
    parser.add_argument(
        "--show", nargs="+", type=Path, metavar="FILE", help="do not measure, but show these results together"
    )
    return parser


def _contender(text: str) -> str:
    for name in NAMES:
        if name.lower() == text.lower():
            return name
    raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(NAMES)}")


def _parts(text: str) -> list[str]:
    parts = text.strip(",").split(",")
    for part in parts:
        if part not in SECTIONS:
            raise argparse.ArgumentTypeError(f"{part!r} is not one of {', '.join(SECTIONS)}")
    return parts


def _file(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"file {text!r} does not exist")
    return path


def _directory(text: str) -> Path:
    path = Path(text)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"directory {text!r} does not exist")
    return path


def _say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
