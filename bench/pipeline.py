"""How fast Spark reads snapshots and logs: rows per second, beside `tarantoolctl cat` and `spark.read.json`.

    python -m bench.pipeline [--tasks N,N] [--rounds N] [--alone] [--directory DIRECTORY] [--json FILE]

The files are those of tasks of 100 bytes of the tutorial's queue: a snapshot of N tasks with the logs of N/10
puts, takes and acknowledgements behind it, and logs of N puts, of which 55 in 100 are taken and acknowledged.
Each is read whole, every column made, by a Spark with one core for all its processes and by one with two. The
peer, where Debian's `tarantoolctl` is installed, is what there is without the data source: the rows as lines
of JSON, which Spark reads; for the smallest N only. What Spark does once, when it starts and for its first
queries, counts for nobody.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Final

from bench.history import SPACE, History, HistoryWriter
from bench.table import table

TASKS: Final = (1_000_000, 10_000_000)
ROUNDS: Final = 3
CORES: Final = (1, 2)
MODES: Final = ("snapshot", "current", "changes")
PEER: Final = "tarantoolctl cat, read.json"
RATIO: Final = 10
SPEED_UP: Final = 1.7
_DONE: Final = 0.55


@dataclass(frozen=True, slots=True)
class Reading:
    """One measurement.

    Attributes:
        who: `ours` or the peer.
        mode: what was read.
        tasks: how many tasks the files are of.
        cores: of Spark.
        rows: how many rows of the files were read.
        seconds: from the query to its end; of the peer, for the JSON, too.
    """

    who: str
    mode: str
    tasks: int
    cores: int
    rows: int
    seconds: float

    @property
    def rate(self) -> float:
        """Rows per second."""
        return self.rows / self.seconds


def write_files(directory: Path, tasks: int) -> dict[str, History]:
    """Write the files of so many tasks: what each mode reads."""
    writer = HistoryWriter(directory / "template")
    tenth = tasks // 10
    standing = writer.write(directory / "standing", tasks, tenth, tenth)
    busy = writer.write(directory / "busy", 0, tasks, int(tasks * _DONE))
    return {"snapshot": standing, "current": standing, "changes": busy}


def rows_read(mode: str, history: History) -> int:
    """How many rows of the files a mode has to look at."""
    return {
        "snapshot": history.snapshot_rows,
        "current": history.snapshot_rows + history.log_rows,
        "changes": history.log_rows,
    }[mode]


def in_spark(cores: int, queries: Sequence[dict[str, object]]) -> list[float]:
    """Run queries one after the other in a Spark of its own, and say how many seconds each has taken.

    Parameters:
        cores: of the Spark.
        queries: what `bench.pipeline_queries` is told of each.
    """
    command = [sys.executable, "-m", "bench.pipeline_queries", str(cores)]
    answer = subprocess.run(
        command, input=json.dumps(queries), stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    seconds: list[float] = json.loads(answer.splitlines()[-1])
    return seconds


def measure(files: dict[str, History], tasks: int, rounds: int, *, with_peer: bool) -> Iterator[Reading]:
    """Measure everything, in turns: medians of so many rounds."""
    json_files = {}
    if with_peer:
        for mode, suffix in (("snapshot", "snap"), ("changes", "xlog")):
            paths = sorted(files[mode].directory.glob(f"*.{suffix}"))
            json_files[mode] = (files[mode].directory / f"{mode}.json", paths)
    found: dict[tuple[str, str, int], list[float]] = {}
    for _ in range(rounds):
        for cores in CORES:
            queries: list[dict[str, object]] = [
                {"mode": mode, "path": str(files[mode].directory), "cores": cores} for mode in MODES
            ]
            for mode, seconds in zip(MODES, in_spark(cores, queries), strict=True):
                found.setdefault(("ours", mode, cores), []).append(seconds)
                say(f"ours, {mode}, {cores} cores: {seconds:.2f} s")
        for mode, (json_file, paths) in json_files.items():
            cat = cat_seconds(paths, json_file)
            (read,) = in_spark(CORES[-1], [{"mode": "json", "path": str(json_file), "cores": CORES[-1]}])
            json_file.unlink()
            found.setdefault((PEER, mode, CORES[-1]), []).append(cat + read)
            say(f"{PEER}, {mode}: {cat:.2f} s and {read:.2f} s")
    for (who, mode, cores), each in found.items():
        yield Reading(who, mode, tasks, cores, rows_read(mode, files[mode]), median(each))


def cat_seconds(paths: Sequence[Path], json_file: Path) -> float:
    """How long `tarantoolctl cat` takes to make lines of JSON of files."""
    command = ["tarantoolctl", "cat", "--format", "json", "--space", str(SPACE), *map(str, paths)]
    begin = time.perf_counter()
    with json_file.open("wb") as output:
        subprocess.run(command, stdout=output, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


def tables(readings: Sequence[Reading]) -> Iterator[str]:
    """Rows per second, and what is required."""
    sizes = sorted({each.tasks for each in readings})
    found = {(each.who, each.mode, each.cores, each.tasks): each for each in readings}
    kinds = list(dict.fromkeys((each.who, each.mode, each.cores) for each in readings))
    rows = [
        [
            *map(str, kind),
            *(
                f"{found[*kind, size].rate / 1000:,.0f}; {found[*kind, size].seconds:.1f}"
                if (*kind, size) in found
                else ""
                for size in sizes
            ),
        ]
        for kind in kinds
    ]
    yield table(
        "Thousand rows in a second; seconds",
        ["", "mode", "cores", *(f"{size:,}" for size in sizes)],
        rows,
        texts=2,
    )
    required = []
    for size in sizes:
        for mode in MODES:
            one, two = (found["ours", mode, cores, size].rate for cores in CORES)
            required.append([f"two cores over one, {mode}, {size:,}", f"{two / one:.2f}", f"{SPEED_UP}"])
            peer = found.get((PEER, mode, CORES[-1], size))
            if peer is not None:
                required.append([f"over {PEER}, {mode}, {size:,}", f"{two / peer.rate:.1f}", f"{RATIO}"])
    yield table("Ratios", ["", "is", "at least"], required)


def say(what: str) -> None:
    """Tell those who wait how far it is."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description="How fast Spark reads snapshots and logs.")
    parser.add_argument("--tasks", default=",".join(map(str, TASKS)), help="numbers of tasks")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"how often each is measured [{ROUNDS}]")
    parser.add_argument("--directory", type=Path, help="where the files go while it runs")
    parser.add_argument("--alone", action="store_true", help="without the peer")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    arguments = parser.parse_args()
    sizes = sorted(map(int, arguments.tasks.split(",")))
    has_peer = not arguments.alone and shutil.which("tarantoolctl") is not None
    if not has_peer:
        say("only ours" + ("" if arguments.alone else ": there is no tarantoolctl"))
    readings: list[Reading] = []
    for size in sizes:
        with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
            say(f"{size:,} tasks: writing the files")
            files = write_files(Path(directory), size)
            readings += measure(files, size, arguments.rounds, with_peer=has_peer and size == sizes[0])
    if arguments.json is not None:
        arguments.json.write_text(json.dumps([asdict(each) for each in readings], indent=1))
    for each in tables(readings):
        print(each)


if __name__ == "__main__":
    main()
