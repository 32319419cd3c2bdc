"""A campaign with kills: workers and the server are killed at random while tasks are put and handled.

    python -m tests.client.kills [--tasks 100000] [--workers 8] [--seed 1] [--subject tarantool]

Each task must be done at least once. It may be done again only if its acknowledgement was never confirmed: if
its worker, the server or their connection died between the work and the written acknowledgement. Puts are
repeated until the server confirms them: on this server with a unique key, so that each adds one task; on
Tarantool with the queue module those that may have been carried out count as well.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final, Protocol

from iproto_server.client import NotConnected, Queue, QueueError
from iproto_server.testing.logged_process import LoggedProcess
from tests.iproto_client import EVAL, EXPRESSION, TUPLE, IprotoClient
from tests.programs import REPOSITORY, require_program
from tests.queue_lua_compat.real_tubes import tubes_application
from tests.real_tarantool import SCRIPT

TUBE: Final = "jobs"
TTR: Final = 5
"""Seconds after which a task that was taken with a lost connection comes back at the latest."""

PRODUCERS: Final = 32
PAUSES: Final = (0.1, 0.6)
"""Seconds between two kills."""

SERVER_SHARE: Final = 0.2
"""The share of the kills that hit the server."""

TIMEOUT: Final = 120.0
"""Seconds without progress after which the campaign has failed."""


class Subject(Protocol):
    """A server program.

    Attributes:
        has_unique_keys: whether puts may have unique keys.
    """

    @property
    def has_unique_keys(self) -> bool: ...

    def start(self, directory: Path) -> LoggedProcess:
        """Start it on a directory, listening on the socket of `address`, and wait until it serves."""


def address(directory: Path) -> str:
    """Return the server's address, which does not change with a restart."""
    return f"unix:{directory}/server.sock"


class OurServer:
    """`iproto-server serve` with tubes."""

    has_unique_keys = True

    def start(self, directory: Path) -> LoggedProcess:
        """See `Subject`."""
        command = [sys.executable, "-m", "iproto_server", "serve", "queue_lua_compat.tubes:app"]
        command += ["--listen", address(directory), "--work-dir", str(directory), "--guest", "all"]
        process = LoggedProcess(command, cwd=directory, env=_environment())
        process.wait_for(r"ready to accept requests")
        return process


class Tarantool:
    """Tarantool with the queue module."""

    has_unique_keys = False

    def start(self, directory: Path) -> LoggedProcess:
        """See `Subject`."""
        program = require_program("tarantool", "tarantool")
        options = "memtx_memory = 512 * 1024 * 1024, wal_mode = 'write', checkpoint_interval = 0"
        script = directory / "kills.lua"
        text = SCRIPT.format(options=options, application=tubes_application())
        script.write_text(text.replace("127.0.0.1:0", address(directory).replace("unix:", "unix/:")))
        (directory / "server.sock").unlink(missing_ok=True)
        process = LoggedProcess([program, script], cwd=directory)
        process.wait_for(r"tests: ready on")
        return process


SUBJECTS: Final[dict[str, Callable[[], Subject]]] = {"iproto-server": OurServer, "tarantool": Tarantool}


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(REPOSITORY)}


@dataclass
class Report:
    """What has happened.

    Attributes:
        tasks: the number of tasks.
        puts: how often the put of each task may have been carried out.
        kills: how often workers and the server were killed.
        times: the times of the work and of confirmed acknowledgements, by the task's number.
    """

    tasks: int
    puts: Counter[int] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    times: dict[int, dict[str, list[int]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )

    @property
    def repeated(self) -> int:
        """The number of tasks that were done more than once."""
        return sum(len(times["done"]) > 1 for times in self.times.values())

    def read(self, files: list[Path]) -> None:
        """Read what the workers have noted. A line that a kill has cut short counts as never written."""
        for file in files:
            for line in file.read_bytes().split(b"\n")[:-1]:
                moment, what, number = line.decode().split()
                self.times[int(number)][what].append(int(moment))

    def findings(self) -> list[str]:
        """Return what is wrong, in words."""
        found: list[str] = []
        for number in range(self.tasks):
            times = self.times.get(number, {})
            done, acknowledged = sorted(times.get("done", [])), sorted(times.get("acknowledged", []))
            if not done:
                found.append(f"task {number} was never done")
            if len(acknowledged) > self.puts[number]:
                found.append(
                    f"task {number} was acknowledged {len(acknowledged)} times, put {self.puts[number]} times"
                )
            if self.puts[number] == 1 and acknowledged and done[-1] > acknowledged[0]:
                found.append(f"task {number} was done again after a confirmed acknowledgement")
        found += [f"task {number} comes from nowhere" for number in self.times if number >= self.tasks]
        return found

    def __str__(self) -> str:
        return (
            f"{self.tasks} tasks, {self.kills['worker']} workers and {self.kills['server']} servers killed,"
            f" {self.repeated} tasks done again, {len(self.findings())} findings"
        )


class Campaign:
    """One run.

    Parameters:
        subject: the server program.
        directory: an empty directory.
        tasks, workers: their numbers.
        seed: of the random choices.
    """

    def __init__(self, subject: Subject, directory: Path, tasks: int, workers: int, seed: int) -> None:
        self._subject = subject
        self._directory = directory
        self._address = address(directory)
        self._chance = Random(seed)
        self._files: list[Path] = []
        self._put = 0
        self.report = Report(tasks)
        self._server = subject.start(directory)
        self._workers = [self._new_worker() for _ in range(workers)]

    async def run(self) -> Report:
        """Put all tasks, kill meanwhile, and wait until all are handled."""
        await self._create_tube()
        killing = asyncio.create_task(self._kill())
        try:
            numbers = iter(range(self.report.tasks))
            await asyncio.gather(*(self._produce(numbers) for _ in range(PRODUCERS)))
            await self._handled()
        finally:
            killing.cancel()
            await asyncio.gather(killing, return_exceptions=True)
        await self._handled()  # a server that was killed last has given tasks back
        self.close()
        self.report.read(self._files)
        return self.report

    def close(self) -> None:
        """End all processes."""
        for worker in self._workers:
            worker.send_signal(signal.SIGTERM)
        for worker in self._workers:
            try:
                worker.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
        self._workers.clear()
        self._server.kill()

    async def _create_tube(self) -> None:
        with IprotoClient.at(self._address) as client:
            options = {"ttr": TTR, "if_not_exists": True}
            if self._subject.has_unique_keys:
                assert client.call("queue.create_tube", TUBE, "fifottl", options).ok
            else:
                lua = "queue.create_tube(...) return true"
                assert client.request(EVAL, {EXPRESSION: lua, TUPLE: [TUBE, "fifottl", options]}).ok

    async def _produce(self, numbers: Iterator[int]) -> None:
        queue = Queue(self._address, tube=TUBE)
        for number in numbers:  # shared by all producers
            options = {"unique_key": number, "unique_for": 3600} if self._subject.has_unique_keys else {}
            while True:
                try:
                    await queue.put(number, **options)
                except NotConnected as error:
                    if error.may_have_been_done and not self._subject.has_unique_keys:
                        self.report.puts[number] += 1
                    await queue.close()
                    await asyncio.sleep(0.05)
                    queue = Queue(self._address, tube=TUBE)
                else:
                    break
            self.report.puts[number] += 1
            self._put += 1
        await queue.close()

    async def _kill(self) -> None:
        while True:
            await asyncio.sleep(self._chance.uniform(*PAUSES))
            if self._chance.random() < SERVER_SHARE:
                self._server.kill()
                self.report.kills["server"] += 1
                self._server = await asyncio.to_thread(self._subject.start, self._directory)
            else:
                place = self._chance.randrange(len(self._workers))
                self._workers[place].kill()
                self._workers[place].wait()
                self.report.kills["worker"] += 1
                self._workers[place] = self._new_worker()

    def _new_worker(self) -> subprocess.Popen[bytes]:
        file = self._directory / f"worker-{len(self._files)}.txt"
        file.touch()
        self._files.append(file)
        command = [sys.executable, "-m", "tests.client.kill_worker", self._address, TUBE, str(file)]
        return subprocess.Popen(
            command, env=_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    async def _handled(self) -> None:
        """Wait until the tube is empty."""
        before, deadline = -1, time.monotonic() + TIMEOUT
        while True:
            left = await self._left()
            if left == 0:
                return
            if left is not None and left != before:
                before, deadline = left, time.monotonic() + TIMEOUT
            if time.monotonic() > deadline:
                raise TimeoutError(f"{left} tasks are left, and nobody handles them")
            await asyncio.sleep(0.2)

    async def _left(self) -> int | None:
        """Return the number of tasks in the tube; None while the server is down."""

        def ask() -> int:
            with IprotoClient.at(self._address) as client:
                tasks = client.call("queue.statistics", TUBE).data[0]["tasks"]
                return int(sum(tasks[state] for state in ("ready", "taken", "delayed", "buried")))

        try:
            return await asyncio.to_thread(ask)
        except (OSError, EOFError, QueueError):
            return None


def main() -> int:
    """Run the campaign of the command line.

    Returns:
        0: nothing is wrong; 1: something is.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.client.kills", description=__doc__)
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--subject", choices=SUBJECTS, default="iproto-server")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        campaign = Campaign(
            SUBJECTS[options.subject](), Path(directory), options.tasks, options.workers, options.seed
        )
        try:
            report = asyncio.run(campaign.run())
        finally:
            campaign.close()
    print(report)
    for finding in report.findings()[:20]:
        print("FOUND", finding)
    return 1 if report.findings() else 0


if __name__ == "__main__":
    sys.exit(main())
