"""Speed of Spark reading snapshots and logs, compared with `tarantoolctl cat` and `spark.read.json`.

    python -m bench.scenarios.spark.spark_read [--tasks N,N] [--modes MODE,MODE] [--cores N,N] [--rounds N,N]
                                         [--warm-ups N,N] [--tries N] [--alone] [--no-memory]
                                         [--partition-bytes SIZE,SIZE | --logs KIND,KIND]
                                         [--directory DIRECTORY] [--json FILE]

The files hold 100-byte tasks of the tutorial's queue: a snapshot of N tasks followed by logs of N/10 puts,
takes and acknowledgements; and logs of N puts, 55 % of which are taken and acknowledged. Each query reads
all columns of all rows, once by a Spark with one core for all its processes and once by one with two. The
peer, if Debian's `tarantoolctl` is installed, is the way without the data source: it converts the rows to
lines of JSON, which Spark reads with two cores.

All these Sparks run all the time, and only one of them works at a time. A query with one core is directly
followed by the same query with two, so that slow minutes of the machine affect both alike. If the hypervisor
takes processor time away meanwhile, both are repeated; the stolen time is reported. The first queries are
warm-up: Java compiles code that runs often.

Then each mode is read once by a new Spark with the most cores, for the peak memory of its processes.

With `--partition-bytes`, the modes are read with these sizes of partitions instead (8M,16M), by a Spark with
the most cores. With `--logs`, logs of N rows are read in the modes `changes` and `current`: `upserts`,
`transactions` of 1,000 rows, and `single` for comparison.

Lists of `--rounds` and `--warm-ups` are for the sizes of `--tasks` in order; the last number is for all
others.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from bench.lib.arguments import choice, count, items, size
from bench.lib.cpu_steal import Steal
from bench.lib.table import table
from bench.scenarios.spark.spark_logs import LOG_MODES, logs_table, measure_logs
from bench.scenarios.spark.spark_memory import Memory, measure_memory, memory_table
from bench.scenarios.spark.spark_partitions import measure_partitions, partitions_table
from bench.scenarios.spark.spark_process import Spark
from bench.scenarios.spark.spark_rounds import TRIES, Reading, Rounds, measure_rounds, say
from bench.workloads.history import SPACE, History, HistoryWriter
from bench.workloads.special_logs import DONE, LogKind

TASKS: Final = (1_000_000, 10_000_000)
LOG_ROWS: Final = (1_000_000,)
ROUNDS: Final = (9,)
WARM_UPS: Final = (15, 1)
PEER_ROUNDS: Final = 3
"""The maximum number of rounds of the peer, which takes longer and is far off."""
PEER_WARM_UPS: Final = 2
"""The number of warm-up rounds of the peer's Spark, for the smallest files."""
CORES: Final = (1, 2)
MODES: Final = ("snapshot", "current", "changes")
PEER: Final = "tarantoolctl cat, read.json"
RATIO: Final = 10
SPEED_UP: Final = 1.7


def write_files(directory: Path, tasks: int, modes: Sequence[str] = MODES) -> dict[str, History]:
    """Write the files of a number of tasks.

    Parameters:
        directory: the directory for the files.
        tasks: the number of tasks.
        modes: the modes of the data source that read the files.

    Returns:
        The files by mode.
    """
    begin = time.perf_counter()
    directory.mkdir(exist_ok=True)
    writer = HistoryWriter(directory / "template")
    tenth = tasks // 10
    files = {}
    if set(modes) & {"snapshot", "current"}:
        files["snapshot"] = files["current"] = writer.write(directory / "standing", tasks, tenth, tenth)
    if "changes" in modes:
        files["changes"] = writer.write(directory / "busy", 0, tasks, int(tasks * DONE))
    written = sum(file.stat().st_size for file in directory.rglob("*.*") if file.is_file())
    say(f"{tasks:,} tasks: wrote {written / 1e6:,.0f} MB in {time.perf_counter() - begin:.0f} s")
    return {mode: files[mode] for mode in modes}


def measure(
    sparks: Mapping[int, Spark], files: Mapping[str, History], tasks: int, rounds: Rounds
) -> Iterator[Reading]:
    """Measure ours, alternating between the numbers of cores.

    Parameters:
        sparks: the sessions by their number of cores.
        files: the files by mode.
        tasks: the number of tasks in the files.
        rounds: how often.
    """
    cases = {
        mode: {cores: partial(spark.run, mode, history.directory) for cores, spark in sparks.items()}
        for mode, history in files.items()
    }
    for mode, found in measure_rounds(cases, rounds).items():
        rows = files[mode].rows_read(mode)
        for cores in sparks:
            yield Reading.of(cores, found, mode=mode, tasks=tasks, cores=cores, rows=rows)


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
    suffixes = {"snapshot": "snap", "changes": "xlog"}
    for mode in (each for each in suffixes if each in files):
        json_file = files[mode].directory / f"{mode}.json"
        all_seconds, all_stolen = [], []
        for each in range(rounds):
            steal = Steal()
            cat = cat_seconds(sorted(files[mode].directory.glob(f"*.{suffixes[mode]}")), json_file)
            for _ in range(0 if each else warm_ups):
                spark.seconds("json", json_file)
            read = spark.seconds("json", json_file)
            json_file.unlink()
            all_seconds.append(cat + read)
            all_stolen.append(steal.share())
            say(f"{PEER}, {mode}: {cat:.2f} s and {read:.2f} s; {all_stolen[-1]:.1%} stolen")
        rows = files[mode].rows_read(mode)
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
            *(formatted_rate(found[*kind, tasks]) if (*kind, tasks) in found else "" for tasks in sizes),
        ]
        for kind in kinds
    ]
    yield table(
        "Thousand rows per second; the same per core; seconds",
        ["", "mode", "cores", *(f"{tasks:,}" for tasks in sizes)],
        rows,
        texts=2,
    )
    required = []
    for tasks in sizes:
        for mode in dict.fromkeys(each.mode for each in readings):
            one, two = (found.get(("ours", mode, cores, tasks)) for cores in CORES)
            if one is not None and two is not None:
                required.append(
                    [f"two cores over one, {mode}, {tasks:,}", *formatted_ratio(two, one), f"{SPEED_UP}"]
                )
            peer = found.get((PEER, mode, CORES[-1], tasks))
            if peer is not None and two is not None:
                required.append([f"over {PEER}, {mode}, {tasks:,}", *formatted_ratio(two, peer), f"{RATIO}"])
    if required:
        yield table("Ratios", ["", "is", "rounds", "stolen at most", "at least"], required)


def formatted_rate(reading: Reading) -> str:
    """Format the medians of the speed, in all and per core, and of the duration."""
    thousands = reading.rate / 1000
    return f"{thousands:,.0f}; {thousands / reading.cores:,.0f}; {median(reading.seconds):.1f}"


def formatted_ratio(this: Reading, other: Reading) -> tuple[str, str, str]:
    """Format the median, minimum and maximum of the relative speed, and the stolen time."""
    ratios = this.ratios(other)
    stolen = max((*this.stolen, *other.stolen), default=0.0)
    return f"{median(ratios):.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}", f"{stolen:.1%}"


class Benchmark:
    """The measurements that the command line asks for.

    Parameters:
        options: the command line.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._sizes: list[int] = sorted(options.tasks or (LOG_ROWS if options.logs else TASKS))
        self.readings: list[Reading] = []
        self.memory: list[Memory] = []

    def run(self) -> None:
        """Measure each size."""
        options = self._options
        is_usual = not options.logs and not options.partition_bytes
        has_peer = is_usual and not options.alone and shutil.which("tarantoolctl") is not None
        if is_usual and not has_peer:
            say("measuring only ours" + ("" if options.alone else ": tarantoolctl is not installed"))
        cores = sorted(options.cores)
        with ExitStack() as running:
            measured = cores[-1:] if options.partition_bytes else cores
            sparks = {each: running.enter_context(Spark(each)) for each in measured}
            peer = running.enter_context(Spark(CORES[-1])) if has_peer else None
            for number, tasks in enumerate(self._sizes):
                with tempfile.TemporaryDirectory(dir=options.directory) as directory:
                    rounds = Rounds(_of(options.rounds, number), _of(options.warm_ups, number), options.tries)
                    if options.logs:
                        self.readings += measure_logs(
                            sparks,
                            Path(directory),
                            options.logs,
                            [mode for mode in LOG_MODES if mode in options.modes],
                            tasks,
                            rounds,
                        )
                        continue
                    files = write_files(Path(directory), tasks, options.modes)
                    if options.partition_bytes:
                        spark = sparks[cores[-1]]
                        self.readings += measure_partitions(
                            spark, files, tasks, options.partition_bytes, rounds
                        )
                        continue
                    self.readings += measure(sparks, files, tasks, rounds)
                    if peer is not None:
                        # Large files once only: it takes minutes.
                        repeats, warm_ups = (1, 0) if number else (PEER_ROUNDS, PEER_WARM_UPS)
                        repeats = min(rounds.count, repeats)
                        self.readings += measure_peer(peer, files, tasks, repeats, warm_ups)
                    if options.memory:
                        self.memory += measure_memory(files, tasks, cores[-1])

    def tables(self) -> Iterator[str]:
        """Format what was measured."""
        if self._options.logs:
            yield logs_table(self.readings)
        elif self._options.partition_bytes:
            yield partitions_table(self.readings)
        else:
            yield from tables(self.readings)
        if self.memory:
            yield memory_table(self.memory)


def _of(numbers: Sequence[int], place: int) -> int:
    return numbers[min(place, len(numbers) - 1)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measure how fast Spark reads snapshots and logs.")
    parser.add_argument("--tasks", type=items(count), help="numbers of tasks, or of rows with --logs")
    parser.add_argument("--modes", type=items(choice(*MODES)), default=MODES, help=f"[{','.join(MODES)}]")
    parser.add_argument("--cores", type=items(count), default=CORES, help="numbers of cores [1,2]")
    parser.add_argument("--rounds", type=items(count), default=ROUNDS, help="number of rounds, by size [9]")
    parser.add_argument(
        "--warm-ups", type=items(int), default=WARM_UPS, help="number of rounds before, by size [15,1]"
    )
    parser.add_argument(
        "--tries", type=count, default=TRIES, help=f"most repetitions because of stolen time [{TRIES}]"
    )
    parser.add_argument("--directory", type=Path, help="directory for temporary files")
    parser.add_argument("--alone", action="store_true", help="do not measure the peer")
    parser.add_argument("--no-memory", dest="memory", action="store_false", help="do not measure memory")
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--partition-bytes", type=items(size), help="compare sizes of partitions: 8M,16M")
    other.add_argument("--logs", type=items(LogKind), help=f"read special logs: {','.join(LogKind)}")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    return parser


def main() -> None:
    """Measure, and print the tables."""
    options = _parser().parse_args()
    benchmark = Benchmark(options)
    benchmark.run()
    if options.json is not None:
        found = {
            "readings": [asdict(each) for each in benchmark.readings],
            "memory": [asdict(each) for each in benchmark.memory],
        }
        options.json.write_text(json.dumps(found, indent=1))
    for each in benchmark.tables():
        print(each)


if __name__ == "__main__":
    main()
