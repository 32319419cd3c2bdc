"""How fast Spark reads snapshots and logs: rows per second, beside `tarantoolctl cat` and `spark.read.json`.

    python -m bench.scenarios.spark_read [--tasks N,N] [--rounds N] [--alone] [--directory DIRECTORY]
                                         [--json FILE]

The files are those of tasks of 100 bytes of the tutorial's queue: a snapshot of N tasks with the logs of N/10
puts, takes and acknowledgements behind it, and logs of N puts, of which 55 in 100 are taken and acknowledged.
Each is read whole, every column made, by a Spark with one core for all its processes and by one with two. The
peer, where Debian's `tarantoolctl` is installed, is what there is without the data source: the rows as lines
of JSON, which Spark reads with two cores.

All these Sparks run from the beginning to the end, and the one does nothing while another is measured. So a
query with one core and the same with two come right after each other, in turns, and a machine that is slower
for some minutes is so for both. Where the hypervisor gives the processors to others meanwhile, the two come
once more; what it did give away is told. The first queries do not count: Java compiles what is run often.
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
from bench.scenarios.history import SPACE, History, HistoryWriter

TASKS: Final = (1_000_000, 10_000_000)
ROUNDS: Final = 9
WARM_UPS: Final = 15
"""How many rounds do not count, of the smallest files; of the others it is one."""
PEER_ROUNDS: Final = 3
"""How often the peer is measured, at most: it takes longer, and is far off."""
PEER_WARM_UPS: Final = 2
"""How often the peer's Spark reads the JSON of the smallest files before that counts."""
CORES: Final = (1, 2)
MODES: Final = ("snapshot", "current", "changes")
STOLEN: Final = 0.01
"""A round with more than this part of the processors' time stolen comes again."""
TRIES: Final = 4
"""So often, at most: then that with the least stolen counts."""
PEER: Final = "tarantoolctl cat, read.json"
RATIO: Final = 10
SPEED_UP: Final = 1.7
_DONE: Final = 0.55


@dataclass(frozen=True, slots=True)
class Reading:
    """The measurements of one kind.

    Attributes:
        who: `ours` or the peer.
        mode: what was read.
        tasks: how many tasks the files are of.
        cores: of Spark.
        rows: how many rows of the files were read.
        seconds: of each round, from the query to its end; of the peer, for the JSON, too.
        stolen: the part of the processors' time that was stolen in each round, from 0 to 1.
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
        """Rows per second, in the middle of all rounds."""
        return self.rows / median(self.seconds)

    def ratios(self, other: Reading) -> Sequence[float]:
        """How many times as fast as another it was, round by round; the other's may be fewer."""
        return [theirs / ours for ours, theirs in zip(self.seconds, cycle(other.seconds), strict=False)]


class Spark:
    """A Spark that runs until the block ends, and does nothing but what it is asked."""

    def __init__(self, cores: int) -> None:
        """Prepare one.

        Parameters:
            cores: for all its processes.
        """
        self.cores = cores

    def __enter__(self) -> Self:
        """Start it."""
        command = [sys.executable, "-m", "bench.scenarios.spark_queries", str(self.cores)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let it end."""
        self._process.communicate()

    def seconds(self, mode: str, path: Path) -> float:
        """How many seconds a query takes.

        Parameters:
            mode: of the data source, or `json`.
            path: what it reads.

        Raises:
            EOFError: if the Spark ends; it says why.
            BrokenPipeError: if it has ended before.
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
    """Queries that came right after each other.

    Attributes:
        seconds: how long they took, by the number of cores.
        stolen: the part of the processors' time that was stolen meanwhile.
    """

    seconds: Mapping[int, float]
    stolen: float


def write_files(directory: Path, tasks: int) -> dict[str, History]:
    """Write the files of so many tasks: what each mode reads."""
    directory.mkdir(exist_ok=True)
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


def measure(
    sparks: Mapping[int, Spark], files: Mapping[str, History], tasks: int, rounds: int, warm_ups: int
) -> Iterator[Reading]:
    """Measure ours, in turns.

    Parameters:
        sparks: for each number of cores.
        files: what each mode reads.
        tasks: how many tasks the files are of.
        rounds: how often.
        warm_ups: how many more rounds come before, and do not count.
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
        sparks: for each number of cores, in the order in which they are asked.
        mode: what is read.
        history: the files.
    """
    steal = Steal()
    seconds = {cores: spark.seconds(mode, history.directory) for cores, spark in sparks.items()}
    found = Round(seconds, steal.share())
    told = ", ".join(f"{cores} cores {each:.2f} s" for cores, each in seconds.items())
    say(f"ours, {mode}: {told}; {found.stolen:.1%} stolen")
    return found


def least_stolen(measured: Callable[[], Round], tries: int) -> Round:
    """Measure until little was stolen.

    Parameters:
        measured: measures a round.
        tries: how often at most.

    Returns:
        The round with the least stolen.
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
    """Measure the peer, of the modes that it has.

    Parameters:
        spark: which reads the JSON.
        files: what each mode reads.
        tasks: how many tasks the files are of.
        rounds: how often.
        warm_ups: how often Spark reads the JSON before, which does not count.
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
                f"{found[*kind, size].rate / 1000:,.0f}; {median(found[*kind, size].seconds):.1f}"
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
            one, two = (found["ours", mode, cores, size] for cores in CORES)
            required.append([f"two cores over one, {mode}, {size:,}", *told(two, one), f"{SPEED_UP}"])
            peer = found.get((PEER, mode, CORES[-1], size))
            if peer is not None:
                required.append([f"over {PEER}, {mode}, {size:,}", *told(two, peer), f"{RATIO}"])
    yield table("Ratios", ["", "is", "rounds", "stolen at most", "at least"], required)


def told(this: Reading, other: Reading) -> tuple[str, str, str]:
    """How many times as fast this is, in the middle, and the least and the most; and what was stolen."""
    ratios = this.ratios(other)
    stolen = max((*this.stolen, *other.stolen), default=0.0)
    return f"{median(ratios):.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}", f"{stolen:.1%}"


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
                    # Of larger files once: it takes minutes.
                    rounds, warm_ups = (PEER_ROUNDS, PEER_WARM_UPS) if first else (1, 0)
                    readings += measure_peer(peer, files, size, min(arguments.rounds, rounds), warm_ups)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps([asdict(each) for each in readings], indent=1))
    for each in tables(readings):
        print(each)


if __name__ == "__main__":
    main()
