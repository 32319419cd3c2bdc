"""Effect of a snapshot on the clients of a server with many tasks: time, pauses, memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from statistics import median
from threading import Event
from types import TracebackType
from typing import Final, Self

from bench.lib.process import MemoryWatch
from bench.lib.table import table
from bench.peers.contender import Server, alternating
from bench.workloads.pinger import Pinger

WARM_UP: Final = 0.5
COMPARED: Final = 2.0
"""Seconds before the snapshot in which pauses are measured as well: load and machine also cause some."""

_CONNECTIONS: Final = 10
_AT_A_TIME: Final = 100
_KINDS: Final = {False: "quiet", True: "under load"}


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one snapshot.

    Attributes:
        contender: the contender's name.
        is_loaded: whether clients put, took and acknowledged tasks meanwhile.
        seconds: the duration of the snapshot.
        pause_before: the longest wait of a pinger for an answer before it, in seconds.
        pause: the same during it.
        memory: the peak memory of all processes during it, relative to the memory before.
        peak: the same for the server process alone, according to the kernel.
        cycles_before: cycles of put, take and ack per second before it.
        cycles: the same during it.
    """

    contender: str
    is_loaded: bool
    seconds: float
    pause_before: float
    pause: float
    memory: float
    peak: float
    cycles_before: float
    cycles: float


class Cycles:
    """Clients that put, take and acknowledge tasks in a context, each with one request in flight.

    Parameters:
        server: the server.
        is_wanted: False for no clients.

    Attributes:
        done: the number of acknowledged tasks.
    """

    def __init__(self, server: Server, is_wanted: bool) -> None:
        self.done = 0
        self._is_over = Event()
        self._executor = ThreadPoolExecutor(1)
        self._work: Future[None] | None = None
        if is_wanted:
            self._work = self._executor.submit(self._cycle, server)

    def _cycle(self, server: Server) -> None:
        with server.load(_CONNECTIONS, 1) as load:
            while not self._is_over.is_set():
                load.put(_AT_A_TIME)
                load.take(_AT_A_TIME)
                load.ack()
                self.done += _AT_A_TIME

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._executor.shutdown()
        if self._work is not None and error is None:
            self._work.result()


def take(server: Server, *, is_loaded: bool) -> Cost:
    """Let a server take a snapshot.

    Parameters:
        server: a server with the queue.
        is_loaded: whether clients put, take and acknowledge tasks meanwhile.
    """
    # Without a change since the last snapshot no new one is written.
    with server.load(1, 1) as load:
        load.put(1)
    with Cycles(server, is_loaded) as cycles, Pinger(server) as pinger:
        time.sleep(WARM_UP)
        pinger.longest()
        done_first, begun_first = cycles.done, time.perf_counter()
        time.sleep(COMPARED)
        pause_before = pinger.longest()
        with MemoryWatch(server.process) as watch:
            done, begun = cycles.done, time.perf_counter()
            server.contender.snapshot(server.address)
            ended, done_last = time.perf_counter(), cycles.done
            pause = pinger.longest()
            peak = server.process.peak()
    return Cost(
        contender=server.name,
        is_loaded=is_loaded,
        seconds=ended - begun,
        pause_before=pause_before,
        pause=pause,
        memory=watch.most / watch.before,
        peak=peak / watch.before,
        cycles_before=(done - done_first) / (begun - begun_first),
        cycles=(done_last - done) / (ended - begun),
    )


def measure(servers: Sequence[Server], rounds: int, say: Callable[[str], None]) -> list[Cost]:
    """Let all servers take snapshots, one after the other in each round.

    Parameters:
        servers: servers with equal tasks.
        rounds: the number of rounds.
        say: called with progress messages.
    """
    costs: list[Cost] = []
    for round_number in range(rounds):
        say(f"snapshots, round {round_number + 1} of {rounds}")
        for is_loaded in _KINDS:
            costs += [take(server, is_loaded=is_loaded) for server in alternating(servers, round_number)]
    return costs


def tables(costs: Sequence[Cost], names: Sequence[str], tasks: int) -> Iterator[str]:
    """Format a table of medians; for pauses and memory also the maximum."""
    rows: list[list[str]] = []
    for is_loaded, kind in _KINDS.items():
        for name in names:
            found = [cost for cost in costs if (cost.contender, cost.is_loaded) == (name, is_loaded)]
            rows.append(
                [
                    kind,
                    name,
                    f"{median(cost.seconds for cost in found):.2f}",
                    f"{median(cost.pause_before for cost in found) * 1000:.1f}",
                    f"{median(cost.pause for cost in found) * 1000:.1f}",
                    f"{max(cost.pause for cost in found) * 1000:.1f}",
                    f"{max(cost.memory for cost in found):.2f}",
                    f"{max(cost.peak for cost in found):.2f}",
                    *(
                        [
                            f"{median(cost.cycles_before for cost in found):,.0f}",
                            f"{median(cost.cycles for cost in found):,.0f}",
                        ]
                        if is_loaded
                        else ["", ""]
                    ),
                ]
            )
    header = [
        "snapshot",
        "",
        "seconds",
        "pause ms\nbefore",
        "pause ms\nduring",
        "pause ms\nworst",
        "memory\npeak ×",
        "VmHWM\n×",
        "cycles/s\nbefore",
        "cycles/s\nduring",
    ]
    yield table(f"A snapshot of {tasks:,} tasks", header, rows, texts=2)
