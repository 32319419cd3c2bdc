"""Processor time and peak memory of a process and all its descendants, each for itself."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Final, Self

from bench.lib.process import kilobytes

SAMPLE_EVERY: Final = 1.0
"""The interval in seconds: the kernel keeps the peaks itself, so samples matter for processes that end."""

_PARENT: Final = 1
"""The column of the parent's id, counted from the state; see proc(5)."""


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """The usage of a process during a measurement.

    Attributes:
        command: its command line.
        cpu_seconds: its processor time.
        peak: its peak memory in bytes, including pages that it shares with others.
    """

    command: Sequence[str]
    cpu_seconds: float
    peak: int


class ProcessTreeWatch:
    """Measures the processes of a tree, as a context manager.

    A process that begins and ends between two samples is missed.

    Parameters:
        root: the id of the process whose descendants are measured, and itself.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._before: dict[int, float] = {}
        self._found: dict[int, ProcessUsage] = {}
        self._is_over = Event()
        self._thread = Thread(target=self._watch)

    def __enter__(self) -> Self:
        for pid in descendants(self._root):
            with suppress(OSError):
                Path(f"/proc/{pid}/clear_refs").write_text("5")  # The peak is the present memory.
                self._before[pid] = _cpu_seconds(pid)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()
        self._sample()

    @property
    def usages(self) -> Sequence[ProcessUsage]:
        """The usage of each process, after the measurement."""
        return list(self._found.values())

    def _watch(self) -> None:
        while not self._is_over.wait(SAMPLE_EVERY):
            self._sample()

    def _sample(self) -> None:
        for pid in descendants(self._root):
            with suppress(OSError):
                command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
                seconds = _cpu_seconds(pid) - self._before.get(pid, 0.0)
                peak = kilobytes(pid, "status", "VmHWM") * 1024
                if peak:  # Otherwise it has ended.
                    self._found[pid] = ProcessUsage(command.rstrip("\0").split("\0"), seconds, peak)


def descendants(root: int) -> list[int]:
    """Return the ids of a process and of all its descendants.

    Parameters:
        root: the id of the process.
    """
    children: dict[int, list[int]] = {}
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit():
            with suppress(OSError):
                columns = (directory / "stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(columns[_PARENT]), []).append(int(directory.name))
    found = [root]
    for pid in found:
        found += children.get(pid, ())
    return found


def _cpu_seconds(pid: int) -> float:
    # The clock of all threads of a Linux process, see clock_getcpuclockid(3).
    return time.clock_gettime((~pid << 3) | 2)
