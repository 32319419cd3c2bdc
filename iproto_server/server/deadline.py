"""The deadline of a server's stop."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any


class Deadline:
    """A deadline that all waits of a stop share; it can be made to expire at once.

    Attributes:
        has_passed: whether the deadline has expired.
    """

    def __init__(self) -> None:
        self._passed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, seconds: float) -> None:
        """Set the deadline `seconds` from now, on the running loop; later calls have no effect."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._passed.set)
            if seconds <= 0:
                self._passed.set()

    def expire(self) -> None:
        """Expire now."""
        self._passed.set()

    def cancel(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()

    @property
    def has_passed(self) -> bool:
        return self._passed.is_set()

    async def wait(self, futures: Collection[asyncio.Future[Any]], grace: float = 0.0) -> None:
        """Wait until all futures are done, or the deadline and the grace after it have passed.

        Parameters:
            futures: the futures; they are neither cancelled nor asked for their results.
            grace: seconds after the deadline.
        """
        if not futures:
            return
        # Finished futures are waited for as well, so that their callbacks have run afterwards.
        done = asyncio.ensure_future(asyncio.wait(futures))
        passed = asyncio.ensure_future(self._passed.wait())
        try:
            await asyncio.wait((done, passed), return_when=asyncio.FIRST_COMPLETED)
            if not done.done() and grace > 0:
                await asyncio.wait((done,), timeout=grace)
        finally:
            done.cancel()
            passed.cancel()
