"""A server on which everything goes wrong at once: its log, and the latency of a well-behaved client.

    python -m bench.scenarios.server.faults [--seconds N] [--clients N]

One of two servers is healthy. On the other, all memory is used up and more is requested, tasks are due whose
callback raises, a thousand hostile clients of the HTTP address never log in, and its disk is full for every
other minute. The same client puts, takes and acknowledges tasks on both in turns, and waits for each answer,
so that both have the same share of the machine's other load. Needs root, for a small disk.

Hostile clients get only processor time that is idle otherwise, as if they were on machines of their own.
"""

from __future__ import annotations

import argparse
import itertools
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import tarantool

from bench.client.hostile_clients import HostileClients
from bench.client.http_attacks import ATTACKS_OVER_HTTP
from bench.lib.process import LOOPBACK, Address, ServerProcess
from bench.lib.table import table
from bench.peers.contender import server_environment
from bench.scenarios.server.hostile_load import allow_sockets, print_progress
from bench.workloads.raising_callback import POISON

SECONDS: Final = 1800.0
CLIENTS: Final = 1000
DISK_SIZE: Final = "64m"
MEMORY: Final = 32 * 2**20
POISONED: Final = 200
"""Tasks whose callback raises when they are due."""
TURN: Final = 60.0
"""Seconds for which the disk is full, and then is not."""
INTERVAL: Final = 0.005
"""Seconds between two cycles."""
LINES_LIMIT: Final = 200
P99_LIMIT: Final = 2.0
_PAYLOAD: Final = "x" * 100
_FILLER: Final = "x" * 10_000
_TOO_LARGE: Final = "x" * 1_000_000


@dataclass(slots=True)
class Measured:
    """The answers of one server.

    Attributes:
        puts: seconds until the answers to puts.
        outcomes: how often a call succeeded, or failed and why.
    """

    puts: list[float] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)

    def milliseconds(self, share: float) -> float:
        """Return the time within which a share of the answers to puts came."""
        ordered = sorted(self.puts)
        return ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1000


class Client:
    """The well-behaved client of one server.

    Parameters:
        address: the server's.
    """

    def __init__(self, address: Address) -> None:
        self._connection = tarantool.Connection(*address, socket_timeout=60, reconnect_max_attempts=0)
        self.measured = Measured()

    def cycle(self) -> None:
        """Put a task, take one and acknowledge it, as far as the server allows."""
        begun = time.perf_counter()
        self.call("put", _PAYLOAD)
        self.measured.puts.append(time.perf_counter() - begun)
        task = self.call("take")
        if task:
            self.call("ack", task[0]["id"])

    def call(self, method: str, *arguments: object) -> Any:
        """Call the queue, and count the outcome. Returns: the values; None after an error."""
        try:
            answer = self._connection.call(f"queue.{method}", arguments).data
        except tarantool.DatabaseError as error:
            self.measured.outcomes[f"{method}: {error.args[-1]}"[:60]] += 1
            return None
        self.measured.outcomes[method] += 1
        return answer


class Disk:
    """A small disk that can be filled.

    Parameters:
        directory: where it is mounted.
    """

    def __init__(self, directory: Path) -> None:
        self._filler = directory / "filler"

    def fill(self) -> None:
        """Use up the disk."""
        with self._filler.open("ab", buffering=0) as file:
            for size in (2**20, 2**12, 1):
                try:
                    while file.write(bytes(size)) == size:
                        """Go on until nothing fits."""
                except OSError:
                    continue

    def free(self) -> None:
        """Make room again."""
        self._filler.unlink(missing_ok=True)


@contextmanager
def small_disk(directory: Path) -> Iterator[Disk]:
    """Mount a small disk."""
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_SIZE}", "tmpfs", str(directory)], check=True)
    try:
        yield Disk(directory)
    finally:
        subprocess.run(["umount", str(directory)], check=True)


@contextmanager
def served(directory: Path, work_dir: Path, *options: str) -> Iterator[tuple[ServerProcess, Address]]:
    """Run a server of the tutorial's queue with the raising callback, whose output is beside a directory."""
    directory.mkdir()
    applications = ["queue_lua_compat.tutorial:app", "bench.workloads.raising_callback:app"]
    command = [sys.executable, "-m", "iproto_server", "serve", *applications, "--listen", f"{LOOPBACK}:0"]
    process = ServerProcess(
        [*command, "--work-dir", str(work_dir), *options], directory, server_environment()
    )
    try:
        host, port = process.wait_for(r"listening on (127\.0\.0\.1):(\d+)").groups()
        process.wait_for(r"ready to accept requests")
        yield process, (host, int(port))
    finally:
        process.stop()


def free_port() -> int:
    """Return a port of the loopback address that is free now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def use_up_memory(client: Client) -> int:
    """Put tasks until one is refused, and return their number. Their delay keeps them from being taken."""
    for count in itertools.count():
        if client.call("put", _FILLER, {"delay": 86_400}) is None:
            return count
    raise AssertionError


def measure(clients: list[Client], faulty: Client, disk: Disk, seconds: float) -> None:
    """Run the clients in turns, while the disk is full for every other minute."""
    begun = time.monotonic()
    is_full = False
    for number in itertools.count():
        passed = time.monotonic() - begun
        if passed > seconds:
            return
        if is_full != (int(passed / TURN) % 2 == 1):
            is_full = not is_full
            (disk.fill if is_full else disk.free)()
            print_progress(f"{passed:.0f} s, the disk {'is full' if is_full else 'has room'}")
        if number % 20 == 0:
            faulty.call("put", _TOO_LARGE)
        for client in clients if number % 2 else clients[::-1]:
            client.cycle()
        time.sleep(INTERVAL)


def report(healthy: Measured, afflicted: Measured, lines: int, cpu: float) -> str:
    """Format the results."""
    rows = [
        [name, f"{len(one.puts):,}", *(f"{one.milliseconds(share):.2f}" for share in (0.5, 0.99, 0.999, 1))]
        for name, one in (("healthy", healthy), ("with all faults", afflicted))
    ]
    header = ["server", "puts", "median\nms", "99 %\nms", "99.9 %\nms", "longest\nms"]
    ratio = afflicted.milliseconds(0.99) / healthy.milliseconds(0.99)
    outcomes = [[what, f"{count:,}"] for what, count in sorted(afflicted.outcomes.items())]
    limits = f"99 % of the answers: {ratio:.2f} times as long; log: {lines} lines; processor: {cpu:.2f}"
    calls = table("Calls on the server with all faults", ["", "times"], outcomes)
    return "\n".join([table("Answers to puts", header, rows), limits, calls])


def main() -> int:
    """Measure, and print the tables.

    Returns: 0 if the log and the latency kept their limits, otherwise 1.
    """
    parser = argparse.ArgumentParser(description="Measure a server on which everything goes wrong at once.")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="[%(default)s]")
    parser.add_argument(
        "--clients", type=int, default=CLIENTS, help="hostile clients over HTTP [%(default)s]"
    )
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        parser.error("a small disk has to be mounted, which needs root")
    allow_sockets(arguments.clients)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        directory = Path(name)
        disk = stack.enter_context(small_disk(directory / "disk"))
        http = (LOOPBACK, free_port())
        options = ("--memtx-memory", str(MEMORY), "--http", f"{http[0]}:{http[1]}")
        _, healthy_address = stack.enter_context(served(directory / "healthy", directory / "healthy"))
        process, address = stack.enter_context(served(directory / "faulty", directory / "disk", *options))
        admin = tarantool.Connection(*address)
        admin.call("box.session.su", ["admin"])
        admin.call("box.schema.user.create", ["operator", {"password": "a password of the benchmark"}])
        healthy, afflicted, faulty = Client(healthy_address), Client(address), Client(address)
        for client in (healthy, afflicted):
            for _ in range(500):
                client.cycle()
            client.measured = Measured()
        for _ in range(POISONED):
            faulty.call("put", POISON, {"delay": 1})
        print_progress(f"memory is used up by {use_up_memory(faulty)} tasks")
        lines = process.lines_written
        with HostileClients(http, arguments.clients, attacks=ATTACKS_OVER_HTTP) as hostile:
            cpu, begun = process.cpu_seconds(), time.perf_counter()
            measure([healthy, afflicted], faulty, disk, arguments.seconds)
            cpu = (process.cpu_seconds() - cpu) / (time.perf_counter() - begun)
            done = hostile.done()
        lines = process.lines_written - lines
        print(report(healthy.measured, afflicted.measured, lines, cpu))
        counts = [[what, f"{count:,}"] for what, count in sorted(done.items())]
        print(table("Hostile clients", ["", "times"], counts))
        print("\n".join(process.output.splitlines()[-50:]))
    ratio = afflicted.measured.milliseconds(0.99) / healthy.measured.milliseconds(0.99)
    return int(lines >= LINES_LIMIT or ratio > P99_LIMIT)


if __name__ == "__main__":
    sys.exit(main())
