"""Time to recover from the files of many tasks, written by either server."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from bench.lib.table import Table
from bench.peers.contender import Server, alternating
from bench.peers.database import Database, DatabaseServer

AT_A_TIME: Final = 50_000
SNAPSHOT, LOG, NOTHING = "snapshot", "log", "no tasks"
_DONE: Final = 0.55
"""The share of the log's tasks that are taken and acknowledged: a million tasks make 2.1 million rows."""


@dataclass(frozen=True, slots=True)
class Files:
    """A directory to recover from.

    Attributes:
        directory: the directory.
        kind: "snapshot" or "log".
        writer: the name of the server that wrote it.
        rows: the number of rows in the files.
        tasks: the number of tasks after recovery.
    """

    directory: Path
    kind: str
    writer: str
    rows: int
    tasks: int


@dataclass(frozen=True, slots=True)
class Start:
    """One start.

    Attributes:
        contender: the contender's name.
        kind: as in `Files`.
        writer: as in `Files`.
        rows: as in `Files`.
        seconds: from the start of the process until it has returned the number of tasks.
        cpu_seconds: CPU time of that.
        recovery_seconds: the part of `seconds` spent on the files, according to the server's log.
    """

    contender: str
    kind: str
    writer: str
    rows: int
    seconds: float
    cpu_seconds: float
    recovery_seconds: float


def fill(server: Server, tasks: int) -> None:
    """Put tasks."""
    with server.load(10, 100) as load:
        for start in range(0, tasks, AT_A_TIME):
            load.put(min(AT_A_TIME, tasks - start))


def write_log(writer: Database, directory: Path, tasks: int) -> Files:
    """Let a server write a log.

    Parameters:
        writer: the contender.
        directory: the directory for its files.
        tasks: the number of tasks to put; a part of them is then taken and acknowledged.
    """
    done = int(tasks * _DONE)
    with DatabaseServer(writer, directory) as server:
        fill(server, tasks)
        with server.load(10, 100) as load:
            for start in range(0, done, AT_A_TIME):
                load.take(min(AT_A_TIME, done - start))
                load.ack()
    return Files(directory, LOG, writer.name, tasks + 2 * done, tasks - done)


def keep_snapshot(server: DatabaseServer, written: Path, directory: Path) -> Files:
    """Let a server take a snapshot, and copy the snapshot alone.

    Parameters:
        server: a server with tasks.
        written: the directory of its files.
        directory: the directory for the copy.
    """
    server.connection.call("box.snapshot")
    directory.mkdir()
    shutil.copy(max(written.glob("*.snap")), directory)
    tasks = server.count()
    return Files(directory, SNAPSHOT if tasks else NOTHING, server.name, tasks, tasks)


def measure(
    members: Sequence[Database],
    files: Sequence[Files],
    directory: Path,
    rounds: int,
    say: Callable[[str], None],
) -> list[Start]:
    """Start all contenders from copies of all files, one after the other in each round.

    Parameters:
        members: the contenders.
        files: the directories to start from.
        directory: the directory for the copies.
        rounds: the number of rounds.
        say: called with progress messages.
    """
    starts: list[Start] = []
    for round_number in range(rounds):
        for one in files:
            say(f"starts from {one.kind} by {one.writer}, round {round_number + 1} of {rounds}")
            starts += [
                _start(member, one, directory / "copy") for member in alternating(members, round_number)
            ]
    return starts


def _start(member: Database, files: Files, copy: Path) -> Start:
    subprocess.run(["cp", "--recursive", "--reflink=auto", files.directory, copy], check=True)
    # Flush the copy to the disk before the clock runs.
    os.sync()
    try:
        with DatabaseServer(member, copy, has_queue=False) as server:
            if server.tasks != files.tasks:
                raise RuntimeError(f"{member.name} found {server.tasks} tasks, not {files.tasks}")
    finally:
        shutil.rmtree(copy)
    return Start(
        member.name,
        files.kind,
        files.writer,
        files.rows,
        server.started_in,
        server.started_cpu,
        server.recovered_in,
    )


def worst_ratio(starts: Sequence[Start], names: Sequence[str]) -> float:
    """Our seconds over the others', at most, among the starts with tasks."""
    files = {(start.kind, start.writer) for start in starts if start.rows}
    worst = 0.0
    for of_files in files:
        ours, *others = (median(start.seconds for start in _of(starts, name, *of_files)) for name in names)
        worst = max(worst, *(ours / other for other in others), 0.0)
    return worst


def _of(starts: Sequence[Start], contender: str, kind: str, writer: str) -> list[Start]:
    wanted = (contender, kind, writer)
    return [start for start in starts if (start.contender, start.kind, start.writer) == wanted]


def tables(starts: Sequence[Start], names: Sequence[str]) -> Iterator[Table]:
    """A table of medians, and ours as multiples of the others'."""
    kinds = dict.fromkeys((start.kind, start.writer, start.rows) for start in starts)
    rows: list[list[str]] = []
    for kind, writer, count in kinds:
        found = [_of(starts, name, kind, writer) for name in names]
        wholes = [median(start.seconds for start in of_one) for of_one in found]
        costs = [median(start.cpu_seconds for start in of_one) for of_one in found]
        parts = [median(start.recovery_seconds for start in of_one) for of_one in found]
        rows.append(
            [
                kind,
                writer,
                f"{count:,}",
                *(f"{seconds:.2f}" for seconds in wholes),
                *(f"{wholes[0] / seconds:.2f}" for seconds in wholes[1:]),
                *(f"{seconds:.2f}" for seconds in costs),
                *(f"{costs[0] / seconds:.2f}" for seconds in costs[1:]),
                *(f"{seconds:.2f}" for seconds in parts),
                *(f"{parts[0] / seconds:.2f}" for seconds in parts[1:]),
                *(f"{count / seconds:,.0f}" for seconds in parts),
            ]
        )
    multiples = ["ratio" for _ in names[1:]]
    header = ["files", "written by", "rows", *(f"{name}\nstart s" for name in names), *multiples]
    header += [*(f"{name}\nCPU s" for name in names), *multiples]
    header += [*(f"{name}\nreading s" for name in names), *multiples]
    header += [f"{name}\nrows/s" for name in names]
    yield Table("From the start of the process to the first answers", header, rows, 2)
