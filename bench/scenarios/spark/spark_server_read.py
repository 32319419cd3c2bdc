"""Reading a space of a running server: Spark compared with asynctnt, net.box and `tarantoolctl connect`.

    python -m bench.scenarios.spark.spark_server_read [--rows N] [--rounds N] [--warm-ups N] [--page-rows N]
                                                [--rate N] [--peers ours,tarantool] [--readers NAME,...]
                                                [--idle] [--directory DIRECTORY] [--json FILE]

Our server and Tarantool run all the time, each with a queue of N tasks of 100 bytes, from the same snapshot.
Each reader reads all columns of all rows, in pages of the same number of rows, each page after the last key
of the one before:

- spark-1, spark-2: `spark.read.format("tarantool")` with one core for all processes of Spark, and with two;
- asynctnt: one connection of a Python program, with uvloop;
- net.box: one connection of a program in Tarantool's Lua, which unpacks all tuples;
- tarantoolctl: a terminal of `tarantoolctl connect`, in which each line of Lua code prints a page as YAML. It
  reads Tarantool only, because it requires a server that evaluates Lua.

One reader works at a time. While it reads, a client in a process of its own with real-time priority puts,
takes and acknowledges tasks at fixed times. It does so just as long before, without any reader. Reader,
server and client share the processors, so that the latencies include the server's waiting for one. With
`--idle`, readers get only processor time that is idle otherwise, as if they were on machines of their own.

The first readings are warm-up: Java compiles code that runs often.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Final, Self

from bench.client import net_box_pages
from bench.client.steady_clients import SteadyClients, Times
from bench.lib.arguments import choice, count, items
from bench.lib.cpu_steal import Steal
from bench.lib.process import MemoryWatch
from bench.lib.process_tree import ProcessTreeWatch
from bench.lib.query_process import Answer, QueryProcess
from bench.lib.table import Table
from bench.peers.contender import alternating
from bench.peers.database import MEMTX_MEMORY, DatabaseServer, Tarantool, databases
from bench.scenarios.spark.spark_rounds import say
from bench.workloads.history import HistoryWriter

ROWS: Final = 10_000_000
ROUNDS: Final = 5
PAGE_ROWS: Final = 1000
"""The default of the data source."""
RATE: Final = 200
"""Requests of the writing client per second."""
WARM_UP_ROWS: Final = 10_000_000
MOST_WARM_UPS: Final = 10
"""By default, each Spark reads so many rows of each server before, but at most so many times."""
SPACE: Final = "queue"
TARANTOOL: Final = "tarantool"
SPARKS: Final = {"spark-1": 1, "spark-2": 2}
ASYNCTNT, NET_BOX, TARANTOOLCTL = "asynctnt", "net.box", "tarantoolctl"
READERS: Final = (*SPARKS, ASYNCTNT, NET_BOX, TARANTOOLCTL)
_PROGRAMS: Final = {NET_BOX: TARANTOOL, TARANTOOLCTL: "tarantoolctl"}
"""The programs of readers that may not be installed."""
_CYCLE: Final = 3
"""Requests of a task: put, take, ack."""
_TARANTOOL_ROW: Final = 400
"""Bytes of memory that Tarantool is given per row, more than twice of what it needs."""
_MEBIBYTE: Final = 2**20


@dataclass(frozen=True, slots=True)
class Writing:
    """The requests of the writing client.

    Attributes:
        requests: the number of requests.
        p50: the time within which half of the answers came, in milliseconds.
        p99: the same for 99 % of the answers.
        longest: the same for all.
    """

    requests: int
    p50: float
    p99: float
    longest: float

    @classmethod
    def of(cls, times: Times) -> Self:
        """Summarize response times. Raises RuntimeError if there were errors."""
        if times.errors:
            raise RuntimeError(f"the writing client failed: {times.errors}")
        return cls(len(times.seconds), *map(times.milliseconds, (0.5, 0.99, 1.0)))


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading.

    Attributes:
        server: the server's name.
        reader: the reader's name.
        round: the number of the round, from 0.
        rows: the number of rows read.
        seconds: the duration.
        server_cpu: seconds of processor time of the server, including that for the writing client.
        reader_cpu: the same of all processes of the reader.
        memory_before: bytes of the server's memory before it.
        memory_peak: the most bytes during it.
        stolen: the share of processor time that was stolen, from 0 to 1.
        alone: the requests of the writing client before it.
        beside: the requests during it.
    """

    server: str
    reader: str
    round: int
    rows: int
    seconds: float
    server_cpu: float
    reader_cpu: float
    memory_before: int
    memory_peak: int
    stolen: float
    alone: Writing
    beside: Writing

    @property
    def growth(self) -> int:
        """Bytes by which the server's memory grew."""
        return self.memory_peak - self.memory_before


class Subject:
    """A server with its writing client.

    Parameters:
        server: the server.
        writer: the client.
        rows: the number of rows of the space, between two tasks of the client.
        page_rows: the maximum number of rows of a response.
    """

    def __init__(self, server: DatabaseServer, writer: SteadyClients, rows: int, page_rows: int) -> None:
        self.server = server
        self._writer = writer
        self._rows = rows
        host, port = server.address
        self._query = {"url": f"{host}:{port}", "space": SPACE, "page_rows": page_rows}

    @property
    def name(self) -> str:
        """The server's name."""
        return self.server.name

    def read(self, process: QueryProcess) -> Answer:
        """Read without the writing client.

        Parameters:
            process: the reader.

        Raises:
            RuntimeError: The number of rows is wrong.
        """
        answer = process.ask(self._query)
        self._check(answer["rows"], 0)
        return answer

    def measure(self, reader: str, process: QueryProcess, number: int, idle_seconds: float) -> Reading:
        """Read while the client writes.

        Parameters:
            reader: the reader's name.
            process: the reader.
            number: the number of the round.
            idle_seconds: how long the client writes before, alone.

        Raises:
            RuntimeError: The number of rows is wrong, or the writing client failed.
        """
        alone = Writing.of(self._writer.run(idle_seconds))
        server, steal = self.server.process, Steal()
        with MemoryWatch(server) as memory, ProcessTreeWatch(process.pid) as tree:
            cpu = server.cpu_seconds()
            self._writer.begin()
            answer = process.ask(self._query)
            beside = Writing.of(self._writer.end())
            cpu = server.cpu_seconds() - cpu
            peak = max(server.peak(), memory.most)
        self._check(answer["rows"], beside.requests // _CYCLE)
        return Reading(
            server=self.name,
            reader=reader,
            round=number,
            rows=answer["rows"],
            seconds=answer["seconds"],
            server_cpu=cpu,
            reader_cpu=sum(usage.cpu_seconds for usage in tree.usages),
            memory_before=memory.before,
            memory_peak=peak,
            stolen=steal.share(),
            alone=alone,
            beside=beside,
        )

    def _check(self, rows: int, changed: int) -> None:
        """Check a number of rows: each task of the client adds a row and then removes one."""
        if abs(rows - self._rows) > changed:
            raise RuntimeError(f"{rows} rows of {self.name} were read, not {self._rows} ± {changed}")


def command_of(reader: str) -> list[str]:
    """Return the command of a reader."""
    python = [sys.executable, "-m"]
    if reader in SPARKS:
        return [*python, "bench.scenarios.spark.spark_server_queries", str(SPARKS[reader])]
    if reader == ASYNCTNT:
        return [*python, "bench.client.asynctnt_pages"]
    if reader == NET_BOX:
        return net_box_pages.command(_program(NET_BOX))
    return [*python, "bench.client.tarantoolctl_pages", _program(TARANTOOLCTL)]


def warm_up(subjects: Sequence[Subject], reader: str, process: QueryProcess, times: int) -> dict[str, float]:
    """Let a reader read all servers.

    Parameters:
        subjects: the servers.
        reader: the reader's name.
        process: the reader.
        times: how often.

    Returns:
        The seconds of the last reading of each server, by its name.
    """
    seconds: dict[str, float] = {}
    for number in range(times):
        for each in alternating(subjects, number):
            seconds[each.name] = each.read(process)["seconds"]
    for name, duration in seconds.items():
        say(f"{reader}, {name}: {duration:.2f} s, warm")
    return seconds


def measure(
    subjects: Sequence[Subject], processes: Mapping[str, QueryProcess], rounds: int, warm_ups: int
) -> list[Reading]:
    """Measure each reader with each server that it can read, in each round.

    Parameters:
        subjects: the servers.
        processes: the readers by name.
        rounds: the number of rounds.
        warm_ups: the number of readings of each Spark and server before; of other readers there is one.
    """
    readable = {reader: [each for each in subjects if can_read(reader, each.name)] for reader in processes}
    last = {
        reader: warm_up(readable[reader], reader, process, warm_ups if reader in SPARKS else 1)
        for reader, process in processes.items()
    }
    found: list[Reading] = []
    for number in range(rounds):
        for reader, process in processes.items():
            for each in alternating(readable[reader], number):
                reading = each.measure(reader, process, number, last[reader][each.name])
                last[reader][each.name] = reading.seconds
                found.append(reading)
                say(
                    f"{reader}, {each.name}: {reading.seconds:.2f} s, "
                    f"{reading.growth / _MEBIBYTE:.1f} MiB more, p99 {reading.alone.p99:.2f} ms alone and "
                    f"{reading.beside.p99:.2f} ms beside, {reading.stolen:.1%} stolen"
                )
    return found


def can_read(reader: str, server: str) -> bool:
    """Whether a reader can read a server."""
    return reader != TARANTOOLCTL or server == Tarantool.name


def tables(readings: Sequence[Reading]) -> Iterator[Table]:
    """Two tables of medians: speed and memory, and the latencies of the writing client."""
    grouped: dict[tuple[str, str], list[Reading]] = {}
    for each in readings:
        grouped.setdefault((each.server, each.reader), []).append(each)
    speeds, latencies = [], []
    for names, some in grouped.items():
        speeds.append(
            [
                *names,
                f"{median(each.rows / each.seconds for each in some) / 1000:,.0f}",
                f"{median(each.seconds for each in some):.2f}",
                f"{median(each.server_cpu / each.rows for each in some) * 1e6:.3f}",
                f"{median(each.reader_cpu / each.rows for each in some) * 1e6:.3f}",
                f"{median(each.memory_before for each in some) / _MEBIBYTE:,.0f}",
                f"{max(each.memory_peak for each in some) / _MEBIBYTE:,.0f}",
                f"{max(each.growth for each in some) / _MEBIBYTE:.1f}",
                f"{max(each.stolen for each in some):.1%}",
            ]
        )
        latencies.append(
            [
                *names,
                *(
                    f"{median(getattr(writing, figure) for writing in writings):.2f}"
                    for figure in ("p50", "p99", "longest")
                    for writings in ([each.alone for each in some], [each.beside for each in some])
                ),
                f"{max(each.beside.longest for each in some):.2f}",
            ]
        )
    header = ["server", "reader", "thousand\nrows/s", "seconds", "server\nCPU µs/row", "reader\nCPU µs/row"]
    header += ["server MiB\nbefore", "MiB\npeak", "most MiB\nmore", "stolen\nat most"]
    yield Table("Reading all rows", header, speeds, 2)
    header = ["server", "reader", "p50\nalone", "p50\nbeside", "p99\nalone", "p99\nbeside"]
    header += ["longest\nalone", "longest\nbeside", "longest\nof all rounds"]
    yield Table(
        "Milliseconds until a put, take or ack is answered, alone and beside the reader", header, latencies, 2
    )


def run(options: argparse.Namespace, directory: Path) -> list[Reading]:
    """Start servers and readers, and measure.

    Parameters:
        options: the command line.
        directory: the directory for the servers' files.
    """
    memory = max(MEMTX_MEMORY, options.rows * _TARANTOOL_ROW)
    members = [each for each in databases(memory=memory) if each.name.lower() in options.peers]
    say(f"{options.rows:,} rows: writing the files")
    files = HistoryWriter(directory / "template").write(directory / "files", options.rows, 0, 0).directory
    with ExitStack() as stack:
        subjects = []
        for member in members:
            shutil.copytree(files, directory / member.name)
            server = stack.enter_context(DatabaseServer(member, directory / member.name))
            say(f"{server.name} has started in {server.started_in:.1f} s")
            writer = SteadyClients(server.address, 1, _CYCLE / options.rate, is_real_time=True)
            subjects.append(Subject(server, stack.enter_context(writer), options.rows, options.page_rows))
        processes = {
            reader: stack.enter_context(QueryProcess(command_of(reader), is_idle=options.idle))
            for reader in options.readers
            if any(can_read(reader, each.name) for each in subjects)
        }
        warm_ups = options.warm_ups or min(MOST_WARM_UPS, -(-WARM_UP_ROWS // options.rows))
        return measure(subjects, processes, options.rounds, warm_ups)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the tables.

    Parameters:
        arguments: the command line; None for this process's own.
    """
    peers = ["ours", TARANTOOL] if shutil.which(TARANTOOL) else ["ours"]
    readers = [each for each in READERS if each not in _PROGRAMS or shutil.which(_PROGRAMS[each])]
    parser = argparse.ArgumentParser(
        prog="python -m bench.scenarios.spark.spark_server_read",
        description="Measure how fast Spark and others read a running server, and what its clients notice.",
    )
    parser.add_argument("--rows", type=count, default=ROWS, help=f"number of rows [{ROWS}]")
    parser.add_argument("--rounds", type=count, default=ROUNDS, help=f"number of rounds [{ROUNDS}]")
    parser.add_argument("--warm-ups", type=count, help="readings of each Spark before [10 million rows]")
    parser.add_argument(
        "--page-rows", type=count, default=PAGE_ROWS, help=f"rows of a response [{PAGE_ROWS}]"
    )
    parser.add_argument(
        "--rate", type=count, default=RATE, help=f"requests of the writing client per second [{RATE}]"
    )
    parser.add_argument("--peers", type=items(choice(*peers)), default=peers, help="servers [all installed]")
    parser.add_argument(
        "--readers", type=items(choice(*readers)), default=readers, help="readers [all installed]"
    )
    parser.add_argument("--idle", action="store_true", help="readers use idle processor time only")
    parser.add_argument("--directory", type=Path, help="directory for temporary files")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        readings = run(options, Path(directory))
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(each) for each in readings], indent=1))
    for each in tables(readings):
        print(each.markdown())


def _program(reader: str) -> str:
    program = shutil.which(_PROGRAMS[reader])
    assert program is not None, f"{_PROGRAMS[reader]} is not installed"
    return program


if __name__ == "__main__":
    main()
