"""The applications' background tasks: from the start to the stop, or until new code has taken over."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from iproto_server.app import Application
from iproto_server.box.api.box import Box
from iproto_server.server.applications.async_procedures import CoroutineRunner

logger = logging.getLogger("iproto_server.server")

END_WITHIN: Final = 3.0
"""Seconds after which it is said which cancelled tasks have not ended."""


class BackgroundTasks:
    """Runs background tasks, those of one generation of the code at a time.

    Parameters:
        box: what they are called with.
        coroutines: runs them.
        end_within: see `END_WITHIN`.

    Attributes:
        tasks: those that have not ended, with the names of their applications.
    """

    def __init__(self, box: Box, coroutines: CoroutineRunner, end_within: float = END_WITHIN) -> None:
        self.tasks: dict[asyncio.Task[object], str] = {}
        self._box = box
        self._coroutines = coroutines
        self._end_within = end_within
        self._successors: asyncio.Task[None] | None = None

    def start(self, applications: Iterable[Application]) -> None:
        """Begin the tasks of applications."""
        for application in applications:
            for function in application.backgrounds:
                task = self._coroutines.task(self._box.session.background, function(self._box))
                self.tasks[task] = application.name
                task.add_done_callback(self._ended)

    async def replace(self, applications: Iterable[Application]) -> None:
        """Cancel all tasks, and begin those of applications when all have ended.

        Should some not end, they are named in the log, and whenever they do, the others begin.
        """
        self.cancel()
        pending = await self._wait()
        if not pending:
            self.start(applications)
            return
        for name in dict.fromkeys(self.tasks[task] for task in pending):
            logger.error("a background task of %s does not end; the new code's wait for that", name)
        self._successors = asyncio.Task(self._start_late(applications), loop=asyncio.get_running_loop())

    def cancel(self) -> None:
        """Cancel all tasks, and begin no others."""
        if self._successors is not None:
            self._successors.cancel()
            self._successors = None
        self._coroutines.cancel(self.tasks)

    async def _wait(self) -> set[asyncio.Task[object]]:
        """Wait until all have ended, but not too long; the answer is those that have not."""
        if not self.tasks:
            return set()
        _, pending = await asyncio.wait(self.tasks, timeout=self._end_within)
        return pending

    async def _start_late(self, applications: Iterable[Application]) -> None:
        await asyncio.wait(self.tasks)
        self._successors = None
        self.start(applications)

    def _ended(self, task: asyncio.Task[object]) -> None:
        name = self.tasks.pop(task)
        error = self._coroutines.failure(task)
        if error is not None:
            logger.error("a background task of %s failed", name, exc_info=error)
