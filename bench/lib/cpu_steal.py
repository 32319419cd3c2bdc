"""Processor time that the hypervisor of a virtual machine takes away during a measurement."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

STAT: Final = Path("/proc/stat")
_STEAL: Final = 8
"""The column of steal time in the line of all processors, counted from its name; see proc(5)."""


def steal_seconds(stat: Path = STAT) -> float:
    """Return the seconds that runnable processors were not given since the machine was started.

    Parameters:
        stat: the file with the figure; without such a file the result is 0.
    """
    if not stat.exists():
        return 0.0
    columns = stat.read_text().splitlines()[0].split()
    return int(columns[_STEAL]) / os.sysconf("SC_CLK_TCK")


class Steal:
    """Measures stolen time from its creation on."""

    def __init__(
        self,
        stolen: Callable[[], float] = steal_seconds,
        clock: Callable[[], float] = time.monotonic,
        processors: int = os.cpu_count() or 1,
    ) -> None:
        """Start measuring.

        Parameters:
            stolen: returns the stolen time so far, in seconds.
            clock: returns the time, in seconds.
            processors: the number of processors.
        """
        self._stolen, self._clock, self._processors = stolen, clock, processors
        self._before, self._begin = stolen(), clock()

    def share(self) -> float:
        """The share of all processors' time that was stolen so far, from 0 to 1."""
        elapsed = self._clock() - self._begin
        return (self._stolen() - self._before) / (elapsed * self._processors) if elapsed else 0.0
