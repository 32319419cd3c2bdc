"""Totals and rates per second, for `box.stat`.

Source: Tarantool reference, "box.stat()": `rps` is the mean of the last five seconds.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

PERIOD: Final = 1.0
"""Seconds between two samples."""
WINDOW: Final = 5
"""Samples over which rates are averaged."""


class Rates:
    """Samples counters once a second.

    Parameters:
        totals: returns the counters by name; missing ones count as 0.
    """

    def __init__(self, totals: Callable[[], Mapping[str, int]]) -> None:
        self._totals = totals
        self._before: Mapping[str, int] = {}
        self._samples: deque[Mapping[str, int]] = deque([{}], WINDOW + 1)
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start sampling, on the running loop."""
        self._timer = asyncio.get_running_loop().call_later(PERIOD, self._tick)

    def stop(self) -> None:
        """Stop sampling."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        self.sample()
        self.start()

    def sample(self) -> None:
        """Take a sample."""
        self._samples.append(dict(self._totals()))

    def reset(self) -> None:
        """Restart all counters from 0."""
        self._before = dict(self._totals())
        self._samples = deque([self._before], WINDOW + 1)

    def now(self) -> dict[str, dict[str, int]]:
        """Return the total since the start (`total`) and the rate per second (`rps`), by name."""
        oldest, newest = self._samples[0], self._samples[-1]
        return {
            name: {
                "total": count - self._before.get(name, 0),
                "rps": (newest.get(name, 0) - oldest.get(name, 0)) // WINDOW,
            }
            for name, count in self._totals().items()
        }
