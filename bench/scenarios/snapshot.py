"""Cost of a snapshot of a million tasks: time, pauses of the event loop, memory.

    python -m bench.scenarios.snapshot [--tasks 1000000] [--size 100] [--idle] [--directory DIR]
                                       [view] [copy] [fork]

Each technique is measured in a process of its own, which puts the tasks into the tutorial's queue and then
takes a snapshot while a client in the same process puts, takes and acknowledges tasks, unless `--idle`:

- view: a consistent read view, as in the server, see `iproto_server.box.memtx.read_view`;
- copy: a list of all rows, copied at the start of the snapshot;
- fork: a forked child process writes the rows.

A pause is the delay of a timer that is due every millisecond. Memory is the peak of the proportional set size
(PSS) of the process and, with fork, its child, minus its value before the snapshot.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import select
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import uvloop

from bench.lib.process import kilobytes
from iproto_server import Application, Box
from iproto_server.app import Procedure
from iproto_server.box.index.iterator_type import IteratorType
from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.box.memtx.read_view import Reader, ReadView
from iproto_server.config.config import Config
from iproto_server.server.checkpointer import Checkpointer
from iproto_server.server.connection.group_commit import Batch
from iproto_server.server.loop_clock import LoopClock
from iproto_server.server.snapshot_task import SnapshotTask
from iproto_server.storage.snapshot import SnapshotWriter
from iproto_server.storage.vclock import VClock
from iproto_server.storage.wal import WalMode, WriteAheadLog
from iproto_server.storage.xlog import FileType, XlogHeader
from queue_lua_compat.tutorial import TutorialQueue

CYCLES_AT_A_TIME: Final = 5
PING_INTERVAL: Final = 0.001
SAMPLE_INTERVAL: Final = 0.05
WARM_UP: Final = 1.0
COMPARED: Final = 3.0
"""Seconds before the snapshot in which pauses are measured as well: other processes cause some."""


class Queue:
    """The tutorial's queue in a box with a log, and a client of it.

    Parameters:
        directory: the directory of the log and the snapshot.
        size: bytes of a task's data, which consists of hexadecimal digits.
    """

    def __init__(self, directory: Path, size: int) -> None:
        self._size = size
        self._executor = ThreadPoolExecutor(1)
        log = WriteAheadLog(directory, WalMode.WRITE, uuid.uuid4(), 1, VClock(), defer=self._executor.submit)
        self.box = Box(log, LoopClock(asyncio.get_running_loop()))
        self.batch = Batch(self.box.transactions, log)
        self.checkpointer = Checkpointer(
            self.box, log, self.batch, Config(work_dir=directory, checkpoint_interval=0), VClock()
        )
        application = Application("queue")
        TutorialQueue(application)
        for setup in application.setups:
            self.box.run(self.box.session.background, setup, self.box)
        self._procedures: Mapping[str, Procedure] = application.procedures
        self._session = self.box.session.open("binary", "bench", user="admin")
        self.cycles = 0

    def call(self, name: str, *arguments: object) -> dict[str, Any]:
        """Call a procedure of the queue."""
        function = self._procedures[f"queue.{name}"].function
        return dict(self.box.run(self._session, function, self.box, *arguments))

    def _payload(self) -> str:
        return os.urandom(self._size // 2).hex()

    async def fill(self, tasks: int) -> None:
        """Put tasks, with all of them logged."""
        for number in range(tasks):
            self.call("put", self._payload())
            if number % 1000 == 0:
                await asyncio.sleep(0)

    async def work(self) -> None:
        """Put, take and acknowledge tasks endlessly, a few in each iteration of the event loop."""
        while True:
            for _ in range(CYCLES_AT_A_TIME):
                self.call("put", self._payload())
                self.call("ack", self.call("take")["id"])
            self.cycles += CYCLES_AT_A_TIME
            await asyncio.sleep(0)


class Pings:
    """Measures the delay of timers of the event loop."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._loop = asyncio.get_running_loop()
        self._due = 0.0
        self._next()

    def _next(self) -> None:
        self._due = time.perf_counter() + PING_INTERVAL
        self._loop.call_later(PING_INTERVAL, self._called)

    def _called(self) -> None:
        self.longest = max(self.longest, time.perf_counter() - self._due)
        self._next()


class CopiedRows(Reader):
    """A copy of all rows of a space."""

    def __init__(self, space: MemtxSpace) -> None:
        super().__init__(space)
        self._rows = space.select(0, IteratorType.ALL, 0, len(space), [])
        self._rows.reverse()

    @property
    def is_done(self) -> bool:
        """Whether there are no more rows."""
        return not self._rows

    @property
    def kept(self) -> int:
        """The number of rows that were not read yet."""
        return len(self._rows)

    def take(self, count: int, size: int) -> list[bytes]:
        """Return the next rows."""
        rows = self._rows[: -count - 1 : -1]
        del self._rows[-count:]
        return rows

    def close(self) -> None:
        """Drop the rows."""
        self._rows.clear()


class CopiedView(ReadView):
    """A view with a copy of all rows."""

    def __init__(self, box: Box) -> None:
        super().__init__(())
        self._readers = [CopiedRows(space) for space in box.catalog if space.engine == "memtx" and len(space)]


async def take_with_view(queue: Queue, directory: Path) -> None:
    """Write the snapshot as the server does."""
    done = asyncio.Event()
    queue.checkpointer.start()
    waiter = queue.box.snapshot()
    waiter.on_done(lambda _: done.set())
    await done.wait()
    if waiter.error is not None:
        raise waiter.error
    await queue.checkpointer.stop()


async def take_with_copy(queue: Queue, directory: Path) -> None:
    """Write the snapshot from copied lists of all rows."""
    with ThreadPoolExecutor(1) as executor:
        task = SnapshotTask(directory, header_of(queue), time.time(), executor)
        with CopiedView(queue.box) as view:
            await task.write(view)
        await task.publish()


async def take_with_fork(queue: Queue, directory: Path) -> None:
    """Write the snapshot in a child process."""
    child = os.fork()
    if child == 0:
        with SnapshotWriter(directory, header_of(queue), time.time()) as writer:
            for space in queue.box.catalog:
                if space.engine == "memtx" and len(space):
                    writer.write(space.id, space.rows())
        os._exit(0)
    _, status = await asyncio.get_running_loop().run_in_executor(None, os.waitpid, child, 0)
    assert status == 0


TECHNIQUES: Final = {"view": take_with_view, "copy": take_with_copy, "fork": take_with_fork}


def header_of(queue: Queue) -> XlogHeader:
    """Return the header of a snapshot."""
    return XlogHeader(FileType.SNAPSHOT, queue.box.uuid, VClock(queue.box.transactions.journal.vclock))


class Memory:
    """Measures the memory of this process and its child, as Linux counts it."""

    def __init__(self) -> None:
        # Reset the peak of this process.
        Path("/proc/self/clear_refs").write_text("5")
        self._before = kilobytes(os.getpid(), "status", "VmRSS")
        # In a process of its own: reading the PSS takes the kernel milliseconds.
        self._watcher = subprocess.Popen(
            [sys.executable, "-m", "bench.scenarios.snapshot", "--watch", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def growth(self, with_child: bool) -> float:
        """Return the peak minus the memory before."""
        output, _ = self._watcher.communicate(b"")
        most = int(output) if with_child else kilobytes(os.getpid(), "status", "VmHWM")
        return most / self._before


def watch(parent: int) -> None:
    """Print the peak memory of a process and its children at the end of standard input."""
    most = 0
    while not select.select([sys.stdin], [], [], SAMPLE_INTERVAL)[0]:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        processes = {parent, *map(int, children)} - {os.getpid()}
        size = 0
        for process in processes:
            with suppress(OSError):
                size += kilobytes(process, "smaps_rollup", "Pss")
        most = max(most, size)
    print(most)


async def measure(
    technique: str, tasks: int, size: int, directory: Path, *, is_idle: bool
) -> dict[str, float]:
    """Fill a queue, then take a snapshot under load."""
    queue = Queue(directory, size)
    await queue.fill(tasks)
    # The server does the same after recovery.
    gc.collect()
    gc.freeze()
    load = asyncio.create_task(asyncio.sleep(0) if is_idle else queue.work())
    memory = Memory()
    await asyncio.sleep(WARM_UP)
    pings = Pings()
    await asyncio.sleep(COMPARED)
    figures = {"pause_before_ms": pings.longest * 1000}
    pings.longest, cycles, begun = 0.0, queue.cycles, time.perf_counter()
    await TECHNIQUES[technique](queue, directory)
    seconds = time.perf_counter() - begun
    figures |= {
        "seconds": seconds,
        "pause_ms": pings.longest * 1000,
        "cycles_per_second": (queue.cycles - cycles) / seconds,
        "memory": memory.growth(technique == "fork"),
    }
    load.cancel()
    return figures


def main() -> None:
    """Measure each technique in a process of its own."""
    parser = argparse.ArgumentParser(description="Measure the cost of a snapshot.")
    parser.add_argument("techniques", nargs="*", choices=[*TECHNIQUES, []])
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=100, help="bytes of a task's data")
    parser.add_argument("--idle", action="store_true", help="without load")
    parser.add_argument("--directory", type=Path, help="directory for temporary files")
    parser.add_argument("--watch", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.watch is not None:
        watch(arguments.watch)
        return
    techniques = arguments.techniques or list(TECHNIQUES)
    if len(techniques) > 1:
        for technique in techniques:
            same = [argument for argument in sys.argv[1:] if argument not in TECHNIQUES]
            subprocess.run([sys.executable, "-m", "bench.scenarios.snapshot", *same, technique], check=True)
        return
    with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
        path = Path(directory)
        work = measure(techniques[0], arguments.tasks, arguments.size, path, is_idle=arguments.idle)
        figures = uvloop.run(work)
    print(
        f"{techniques[0]:5}",
        *(f"{name} {value:.2f}" for name, value in figures.items()),
        sep="  ",
        flush=True,
    )


if __name__ == "__main__":
    main()
