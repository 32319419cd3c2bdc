"""A server's process: its output, CPU time and memory."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Final, Self

Address = tuple[str, int]
"""Host and port."""

LOOPBACK: Final = "127.0.0.1"
LOOK_EVERY: Final = 0.001
SAMPLE_EVERY: Final = 0.02
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_STOP_WITHIN: Final = 30.0
_PRIVATE: Final = ("Private_Clean", "Private_Dirty")


class ServerProcess:
    """A running server, whose output goes to a file: reading a pipe would take CPU time of this process.

    Parameters:
        command: the program and its arguments.
        directory: its working directory.
        environment: its environment; None for this process's own.
        port: the port that it was given; None if it reports one.
    """

    def __init__(
        self,
        command: Sequence[str],
        directory: Path,
        environment: Mapping[str, str] | None = None,
        *,
        port: int | None = None,
    ) -> None:
        self._port = port
        self._output = directory.with_name(f"{directory.name}.output")
        self.begun = time.perf_counter()
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                cwd=directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def output(self) -> str:
        """Its output."""
        return self._output.read_text(errors="replace")

    @property
    def lines_written(self) -> int:
        """The number of lines in its output."""
        return self._output.read_bytes().count(b"\n")

    def wait_for(self, pattern: str, within: float = 300.0) -> re.Match[str]:
        """Wait until a line of the output matches a pattern.

        Raises:
            RuntimeError: The server ended before, or the time is over.
        """
        deadline = time.perf_counter() + within
        while True:
            has_ended = self._process.poll() is not None
            output = self._output.read_text(errors="replace")
            match = re.search(pattern, output)
            if match is not None:
                return match
            if has_ended or time.perf_counter() > deadline:
                raise RuntimeError(f"{self._process.args!r} has not printed {pattern!r}, but:\n{output}")
            time.sleep(LOOK_EVERY)

    def wait_to_accept(self, within: float = 30.0) -> Address:
        """Wait until the port that it was given accepts connections.

        Returns:
            The address.

        Raises:
            RuntimeError: The server ended, or the time is over.
        """
        assert self._port is not None, "the server was not given a port"
        address = (LOOPBACK, self._port)
        deadline = time.perf_counter() + within
        while True:
            has_ended = self._process.poll() is not None
            if not has_ended:
                with suppress(ConnectionRefusedError), socket.create_connection(address):
                    return address
            if has_ended or time.perf_counter() > deadline:
                output = self._output.read_text(errors="replace")
                raise RuntimeError(f"{self._process.args!r} accepts no connections:\n{output}")
            time.sleep(LOOK_EVERY)

    def cpu_seconds(self) -> float:
        """Return the CPU time of the process and its children, in seconds."""
        # The clock of all threads of a Linux process, see clock_getcpuclockid(3).
        return sum(time.clock_gettime((~pid << 3) | 2) for pid in self._family())

    def memory(self) -> int:
        """Return the memory of the process and its children in bytes, counting shared pages once."""
        resident = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * _PAGE
        # Only the private memory of a child. Reading the same of the server would stop it for milliseconds.
        for child in self._family()[1:]:
            with suppress(OSError):
                resident += sum(kilobytes(child, "smaps_rollup", name) for name in _PRIVATE) * 1024
        return resident

    def forget_peak(self) -> None:
        """Reset the kernel's records of peak memory."""
        for pid in self._family():
            Path(f"/proc/{pid}/clear_refs").write_text("5")

    def peak(self) -> int:
        """Return the sum of the peaks of the process and its children, in bytes, according to the kernel."""
        return sum(kilobytes(pid, "status", "VmHWM") for pid in self._family()) * 1024

    def make_real_time(self) -> None:
        """Give the server real-time priority.

        Raises:
            PermissionError: The system does not allow it.
        """
        for thread in Path(f"/proc/{self.pid}/task").iterdir():
            os.sched_setscheduler(int(thread.name), os.SCHED_FIFO, os.sched_param(1))

    def stop(self) -> None:
        """Stop the server with SIGTERM.

        Raises:
            RuntimeError: It did not end, and was killed.
        """
        self._process.terminate()
        try:
            self._process.wait(_STOP_WITHIN)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError(f"{self._process.args!r} did not end on SIGTERM") from None

    def kill(self) -> None:
        """Kill the server."""
        self._process.kill()
        self._process.wait()

    def _family(self) -> list[int]:
        # A child is in the list of the thread that forked it, which may not be the first.
        family = [self.pid]
        for thread in Path(f"/proc/{self.pid}/task").iterdir():
            with suppress(OSError):
                family += map(int, (thread / "children").read_text().split())
        return family


class MemoryWatch:
    """Records the peak memory of a server, as a context manager.

    Parameters:
        process: the server.
    """

    def __init__(self, process: ServerProcess) -> None:
        self.before = self.most = process.memory()
        self._process = process
        self._is_over = Event()
        self._thread = Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._process.forget_peak()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(SAMPLE_EVERY):
            self.most = max(self.most, self._process.memory())


def kilobytes(pid: int, file: str, name: str) -> int:
    """Read a size from a table of the kernel about a process; 0 if it is not there."""
    for line in Path(f"/proc/{pid}/{file}").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    return 0


def free_port() -> int:
    """Find a port on which nothing listens."""
    with socket.create_server((LOOPBACK, 0)) as server:
        port = server.getsockname()[1]
        assert isinstance(port, int)
        return port
