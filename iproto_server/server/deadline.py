"""The one deadline of a stop."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any


class Deadline:
    """A moment that all waits of a stop have in common; it can be brought forward to now.

    Attributes:
        has_passed: whether the moment has come.
    """

    def __init__(self) -> None:
        self._passed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, seconds: float) -> None:
        """Let it pass so many seconds from now, on the running loop. It does not move once it was set."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._passed.set)
            if seconds <= 0:
                self._passed.set()

    def expire(self) -> None:
        """Let it pass now."""
        self._passed.set()

    def cancel(self) -> None:
        """Nobody waits for it any more."""
        if self._timer is not None:
            self._timer.cancel()

    @property
    def has_passed(self) -> bool:
        return self._passed.is_set()

    async def wait(self, futures: Collection[asyncio.Future[Any]], grace: float = 0.0) -> None:
        """Wait until all futures are done, or until the deadline has passed and the grace behind it.

        Parameters:
            futures: what is waited for. They are neither cancelled nor asked for their results.
            grace: seconds that they have beyond the deadline.
        """
        if not futures:
            return
        # Those that are done already are waited for, too: what was to be called when they are done has been
        # called then.
        done = asyncio.ensure_future(asyncio.wait(futures))
        passed = asyncio.ensure_future(self._passed.wait())
        try:
            await asyncio.wait((done, passed), return_when=asyncio.FIRST_COMPLETED)
            if not done.done() and grace > 0:
                await asyncio.wait((done,), timeout=grace)
        finally:
            done.cancel()
            passed.cancel()
