"""The applications' background tasks, from the start to the stop or the next reload."""

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
"""Seconds after which cancelled tasks that still run are logged."""


class BackgroundTasks:
    """Runs the background tasks of one code generation at a time.

    Parameters:
        box: the box, which the tasks get.
        coroutines: runs the tasks.
        end_within: see `END_WITHIN`.

    Attributes:
        tasks: the running tasks, with the names of their applications.
    """

    def __init__(self, box: Box, coroutines: CoroutineRunner, end_within: float = END_WITHIN) -> None:
        self.tasks: dict[asyncio.Task[object], str] = {}
        self._box = box
        self._coroutines = coroutines
        self._end_within = end_within
        self._successors: asyncio.Task[None] | None = None

    def start(self, applications: Iterable[Application]) -> None:
        """Start the tasks of applications."""
        for application in applications:
            for function in application.backgrounds:
                task = self._coroutines.task(self._box.session.background, function(self._box))
                self.tasks[task] = application.name
                task.add_done_callback(self._ended)

    async def replace(self, applications: Iterable[Application]) -> None:
        """Cancel all tasks, and start those of new applications when all have ended.

        Tasks that do not end in time are logged; the new ones start when they have ended.
        """
        self.cancel()
        pending = await self._wait()
        if not pending:
            self.start(applications)
            return
        for name in dict.fromkeys(self.tasks[task] for task in pending):
            logger.error(
                "a background task of %s does not end; those of the new code start when it has", name
            )
        self._successors = asyncio.Task(self._start_late(applications), loop=asyncio.get_running_loop())

    def cancel(self) -> None:
        """Cancel all tasks, and those that wait to start."""
        if self._successors is not None:
            self._successors.cancel()
            self._successors = None
        self._coroutines.cancel(self.tasks)

    async def _wait(self) -> set[asyncio.Task[object]]:
        """Wait until all tasks have ended, but at most `end_within`; return those that still run."""
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
