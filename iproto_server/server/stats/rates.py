"""How many there were, and how many a second: the numbers of `box.stat`.

Source: Tarantool reference, "box.stat()": `rps` is the mean of the last five seconds.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

PERIOD: Final = 1.0
WINDOW: Final = 5


class Rates:
    """Looks at counters once a second.

    Parameters:
        totals: answers the counters by name; those that are not there yet count as 0.
    """

    def __init__(self, totals: Callable[[], Mapping[str, int]]) -> None:
        self._totals = totals
        self._before: Mapping[str, int] = {}
        self._samples: deque[Mapping[str, int]] = deque([{}], WINDOW + 1)
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Look from now on, on the running loop."""
        self._timer = asyncio.get_running_loop().call_later(PERIOD, self._tick)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        self.sample()
        self.start()

    def sample(self) -> None:
        """A second is over."""
        self._samples.append(dict(self._totals()))

    def reset(self) -> None:
        """Count anew from now on."""
        self._before = dict(self._totals())
        self._samples = deque([self._before], WINDOW + 1)

    def now(self) -> dict[str, dict[str, int]]:
        """By name, how many there were since the beginning (`total`), and per second (`rps`)."""
        oldest, newest = self._samples[0], self._samples[-1]
        return {
            name: {
                "total": count - self._before.get(name, 0),
                "rps": (newest.get(name, 0) - oldest.get(name, 0)) // WINDOW,
            }
            for name, count in self._totals().items()
        }
