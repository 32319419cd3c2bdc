"""What others have of this machine's processors while something is measured, where it is a virtual one."""

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
    """For how long processors had work, and the hypervisor ran something else, since the machine was started.

    Parameters:
        stat: what tells it; 0 is returned where there is no such file.
    """
    if not stat.exists():
        return 0.0
    columns = stat.read_text().splitlines()[0].split()
    return int(columns[_STEAL]) / os.sysconf("SC_CLK_TCK")


class Steal:
    """How much is stolen from now on."""

    def __init__(
        self,
        stolen: Callable[[], float] = steal_seconds,
        clock: Callable[[], float] = time.monotonic,
        processors: int = os.cpu_count() or 1,
    ) -> None:
        """Begin now.

        Parameters:
            stolen: tells for how long, in seconds.
            clock: tells the time, in seconds.
            processors: how many there are.
        """
        self._stolen, self._clock, self._processors = stolen, clock, processors
        self._before, self._begin = stolen(), clock()

    def share(self) -> float:
        """The part of all processors' time that was stolen since: from 0 to 1."""
        elapsed = self._clock() - self._begin
        return (self._stolen() - self._before) / (elapsed * self._processors) if elapsed else 0.0
