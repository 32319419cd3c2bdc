"""Speed of Spark reading snapshots and logs, compared with `tarantoolctl cat` and `spark.read.json`.

    python -m bench.scenarios.spark_read [--tasks N,N] [--rounds N] [--alone] [--directory DIRECTORY]
                                         [--json FILE]

The files hold 100-byte tasks of the tutorial's queue: a snapshot of N tasks followed by logs of N/10 puts,
takes and acknowledgements; and logs of N puts, 55 % of which are taken and acknowledged. Each query reads
all columns of all rows, once by a Spark with one core for all its processes and once by one with two. The
peer, if Debian's `tarantoolctl` is installed, is the way without the data source: it converts the rows to
lines of JSON, which Spark reads with two cores.

All these Sparks run all the time, and only one of them works at a time. A query with one core is directly
followed by the same query with two, so that slow minutes of the machine affect both alike. If the hypervisor
takes processor time away meanwhile, both are repeated; the stolen time is reported. The first queries are
warm-up: Java compiles code that runs often.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Final, NamedTuple, Self

from bench.lib.cpu_steal import Steal
from bench.lib.table import table
from bench.workloads.history import SPACE, History, HistoryWriter

TASKS: Final = (1_000_000, 10_000_000)
ROUNDS: Final = 9
WARM_UPS: Final = 15
"""The number of warm-up rounds of the smallest files; of others there is one."""
PEER_ROUNDS: Final = 3
"""The maximum number of rounds of the peer, which takes longer and is far off."""
PEER_WARM_UPS: Final = 2
"""The number of warm-up rounds of the peer's Spark, for the smallest files."""
CORES: Final = (1, 2)
MODES: Final = ("snapshot", "current", "changes")
STOLEN: Final = 0.01
"""The maximum share of stolen processor time of a round; rounds with more are repeated."""
TRIES: Final = 4
"""The maximum number of repetitions; after that, the one with the least stolen time counts."""
PEER: Final = "tarantoolctl cat, read.json"
RATIO: Final = 10
SPEED_UP: Final = 1.7
_DONE: Final = 0.55


@dataclass(frozen=True, slots=True)
class Reading:
    """The measurements of one kind.

    Attributes:
        who: `ours` or the peer.
        mode: the mode of the data source.
        tasks: the number of tasks in the files.
        cores: the number of Spark's cores.
        rows: the number of rows read from the files.
        seconds: the duration of each query; for the peer, including the conversion to JSON.
        stolen: the share of processor time that was stolen in each round, from 0 to 1.
    """

    who: str
    mode: str
    tasks: int
    cores: int
    rows: int
    seconds: Sequence[float]
    stolen: Sequence[float] = ()

    @property
    def rate(self) -> float:
        """Rows per second: the median of all rounds."""
        return self.rows / median(self.seconds)

    def ratios(self, other: Reading) -> Sequence[float]:
        """Return the speed relative to another reading, round by round; the other may have fewer rounds."""
        return [theirs / ours for ours, theirs in zip(self.seconds, cycle(other.seconds), strict=False)]


class Spark:
    """A process with a Spark session that runs queries on request, as a context manager."""

    def __init__(self, cores: int) -> None:
        """Prepare the process.

        Parameters:
            cores: the number of cores for all its processes.
        """
        self.cores = cores

    def __enter__(self) -> Self:
        """Start the process."""
        command = [sys.executable, "-m", "bench.scenarios.spark_queries", str(self.cores)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the process."""
        self._process.communicate()

    def seconds(self, mode: str, path: Path) -> float:
        """Return the duration of a query in seconds.

        Parameters:
            mode: of the data source, or `json`.
            path: the path to read.

        Raises:
            EOFError: Spark has ended; its output says why.
            BrokenPipeError: Spark had ended before.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"mode": mode, "path": str(path)}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise EOFError(f"Spark has not read {path}")
        return float(answer)


class Round(NamedTuple):
    """Queries that ran directly after each other.

    Attributes:
        seconds: their durations, by the number of cores.
        stolen: the share of processor time that was stolen meanwhile.
    """

    seconds: Mapping[int, float]
    stolen: float


def write_files(directory: Path, tasks: int) -> dict[str, History]:
    """Write the files of a number of tasks, by the mode that reads them."""
    directory.mkdir(exist_ok=True)
    writer = HistoryWriter(directory / "template")
    tenth = tasks // 10
    standing = writer.write(directory / "standing", tasks, tenth, tenth)
    busy = writer.write(directory / "busy", 0, tasks, int(tasks * _DONE))
    return {"snapshot": standing, "current": standing, "changes": busy}


def rows_read(mode: str, history: History) -> int:
    """Return the number of rows that a mode reads from the files."""
    return {
        "snapshot": history.snapshot_rows,
        "current": history.snapshot_rows + history.log_rows,
        "changes": history.log_rows,
    }[mode]


def measure(
    sparks: Mapping[int, Spark], files: Mapping[str, History], tasks: int, rounds: int, warm_ups: int
) -> Iterator[Reading]:
    """Measure ours, alternating between the numbers of cores.

    Parameters:
        sparks: the sessions by their number of cores.
        files: the files by mode.
        tasks: the number of tasks in the files.
        rounds: the number of rounds.
        warm_ups: the number of additional rounds before, which do not count.
    """
    rounds_of: dict[str, list[Round]] = {mode: [] for mode in MODES}
    for each in range(warm_ups + rounds):
        for mode in MODES:
            some = dict(sorted(sparks.items(), reverse=bool(each % 2)))
            is_warm = each >= warm_ups
            found = least_stolen(partial(measure_round, some, mode, files[mode]), TRIES if is_warm else 1)
            if is_warm:
                rounds_of[mode].append(found)
    for mode, found_rounds in rounds_of.items():
        for cores in sparks:
            yield Reading(
                "ours",
                mode,
                tasks,
                cores,
                rows_read(mode, files[mode]),
                [each.seconds[cores] for each in found_rounds],
                [each.stolen for each in found_rounds],
            )


def measure_round(sparks: Mapping[int, Spark], mode: str, history: History) -> Round:
    """Measure ours once with each number of cores.

    Parameters:
        sparks: the sessions by their number of cores, in the order of measurement.
        mode: the mode of the data source.
        history: the files.
    """
    steal = Steal()
    seconds = {cores: spark.seconds(mode, history.directory) for cores, spark in sparks.items()}
    found = Round(seconds, steal.share())
    durations = ", ".join(f"{cores} cores {each:.2f} s" for cores, each in seconds.items())
    say(f"ours, {mode}: {durations}; {found.stolen:.1%} stolen")
    return found


def least_stolen(measured: Callable[[], Round], tries: int) -> Round:
    """Repeat a measurement until little processor time is stolen.

    Parameters:
        measured: measures a round.
        tries: the maximum number of tries.

    Returns:
        The round with the least stolen time.
    """
    best = measured()
    for _ in range(tries - 1):
        if best.stolen <= STOLEN:
            break
        best = min(best, measured(), key=lambda each: each.stolen)
    return best


def measure_peer(
    spark: Spark, files: Mapping[str, History], tasks: int, rounds: int, warm_ups: int
) -> Iterator[Reading]:
    """Measure the peer in the modes that it supports.

    Parameters:
        spark: the session that reads the JSON.
        files: the files by mode.
        tasks: the number of tasks in the files.
        rounds: the number of rounds.
        warm_ups: the number of additional readings of the JSON before, which do not count.
    """
    for mode, suffix in (("snapshot", "snap"), ("changes", "xlog")):
        json_file = files[mode].directory / f"{mode}.json"
        all_seconds, all_stolen = [], []
        for each in range(rounds):
            steal = Steal()
            cat = cat_seconds(sorted(files[mode].directory.glob(f"*.{suffix}")), json_file)
            for _ in range(0 if each else warm_ups):
                spark.seconds("json", json_file)
            read = spark.seconds("json", json_file)
            json_file.unlink()
            all_seconds.append(cat + read)
            all_stolen.append(steal.share())
            say(f"{PEER}, {mode}: {cat:.2f} s and {read:.2f} s; {all_stolen[-1]:.1%} stolen")
        rows = rows_read(mode, files[mode])
        yield Reading(PEER, mode, tasks, spark.cores, rows, all_seconds, all_stolen)


def cat_seconds(paths: Sequence[Path], json_file: Path) -> float:
    """Measure `tarantoolctl cat`, which converts files to lines of JSON, in seconds."""
    command = ["tarantoolctl", "cat", "--format", "json", "--space", str(SPACE), *map(str, paths)]
    begin = time.perf_counter()
    with json_file.open("wb") as output:
        subprocess.run(command, stdout=output, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


def tables(readings: Sequence[Reading]) -> Iterator[str]:
    """Format rows per second, and the goals."""
    sizes = sorted({each.tasks for each in readings})
    found = {(each.who, each.mode, each.cores, each.tasks): each for each in readings}
    kinds = list(dict.fromkeys((each.who, each.mode, each.cores) for each in readings))
    rows = [
        [
            *map(str, kind),
            *(
                f"{found[*kind, size].rate / 1000:,.0f}; {median(found[*kind, size].seconds):.1f}"
                if (*kind, size) in found
                else ""
                for size in sizes
            ),
        ]
        for kind in kinds
    ]
    yield table(
        "Thousand rows per second; seconds",
        ["", "mode", "cores", *(f"{size:,}" for size in sizes)],
        rows,
        texts=2,
    )
    required = []
    for size in sizes:
        for mode in MODES:
            one, two = (found["ours", mode, cores, size] for cores in CORES)
            required.append(
                [f"two cores over one, {mode}, {size:,}", *formatted_ratio(two, one), f"{SPEED_UP}"]
            )
            peer = found.get((PEER, mode, CORES[-1], size))
            if peer is not None:
                required.append([f"over {PEER}, {mode}, {size:,}", *formatted_ratio(two, peer), f"{RATIO}"])
    yield table("Ratios", ["", "is", "rounds", "stolen at most", "at least"], required)


def formatted_ratio(this: Reading, other: Reading) -> tuple[str, str, str]:
    """Format the median, minimum and maximum of the relative speed, and the stolen time."""
    ratios = this.ratios(other)
    stolen = max((*this.stolen, *other.stolen), default=0.0)
    return f"{median(ratios):.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}", f"{stolen:.1%}"


def say(what: str) -> None:
    """Print progress to standard error."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description="Measure how fast Spark reads snapshots and logs.")
    parser.add_argument("--tasks", default=",".join(map(str, TASKS)), help="numbers of tasks")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"number of rounds [{ROUNDS}]")
    parser.add_argument("--directory", type=Path, help="directory for temporary files")
    parser.add_argument("--alone", action="store_true", help="do not measure the peer")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    arguments = parser.parse_args()
    sizes = sorted(map(int, arguments.tasks.split(",")))
    has_peer = not arguments.alone and shutil.which("tarantoolctl") is not None
    if not has_peer:
        say("measuring only ours" + ("" if arguments.alone else ": tarantoolctl is not installed"))
    readings: list[Reading] = []
    with ExitStack() as running:
        sparks = {cores: running.enter_context(Spark(cores)) for cores in CORES}
        peer = running.enter_context(Spark(CORES[-1])) if has_peer else None
        for size in sizes:
            first = size == sizes[0]
            warm_ups = WARM_UPS if first else 1
            with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
                say(f"{size:,} tasks: writing the files")
                files = write_files(Path(directory), size)
                readings += measure(sparks, files, size, arguments.rounds, warm_ups)
                if peer is not None:
                    # Large files once only: it takes minutes.
                    rounds, warm_ups = (PEER_ROUNDS, PEER_WARM_UPS) if first else (1, 0)
                    readings += measure_peer(peer, files, size, min(arguments.rounds, rounds), warm_ups)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps([asdict(each) for each in readings], indent=1))
    for each in tables(readings):
        print(each)


if __name__ == "__main__":
    main()
