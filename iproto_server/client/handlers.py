"""Runs the handlers of a worker: each in an asyncio task of its own, with a time limit."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from iproto_server.client.consumer import Consumer
from iproto_server.client.errors import HandlerStuck
from iproto_server.client.task import Task, first_of

logger = logging.getLogger("iproto_server.client")

Handler = Callable[[Task], Coroutine[Any, Any, object]]
"""A coroutine function that does the work of a task."""

CANCELLATIONS: Final = (1.0, 2.0, 4.0, 8.0)
"""Seconds that a handler has to end after each of its cancellations."""


class Handlers:
    """Handles the tasks of a consumer.

    Parameters:
        consumer: the consumer.
        handler: does the work of a task.
        time_limit: seconds for each task; None: without a limit.
        sleep: waits for a number of seconds.
    """

    def __init__(
        self,
        consumer: Consumer,
        handler: Handler,
        time_limit: float | None,
        sleep: Callable[[float], Awaitable[object]],
    ) -> None:
        self._consumer = consumer
        self._handler = handler
        self._time_limit = time_limit
        self._sleep = sleep

    async def run(self) -> None:
        """Handle one task after the other until the consumer is stopped.

        Raises:
            HandlerStuck: a handler ignores its cancellation.
            Refused, QueueError: as `Consumer.__anext__`.
        """
        async for task in self._consumer:
            running: asyncio.Task[object] | None = None
            async with task:
                running = asyncio.create_task(self._handler(task))
                await self._finish(task, running)
            if running is not None and not running.done():
                raise HandlerStuck(f"the handler of {task} goes on after {len(CANCELLATIONS)} cancellations")

    async def _finish(self, task: Task, running: asyncio.Task[object]) -> None:
        """Wait for a handler. A cancellation, or the end of its time, cancels it."""
        try:
            if self._time_limit is None:
                await asyncio.wait({running})
            else:
                await first_of(asyncio.wait({running}), self._sleep(self._time_limit))
        except asyncio.CancelledError:
            await self._end(task, running)
            raise
        if not running.done():
            await self._end(task, running)
            late = TimeoutError(f"the handler took longer than its time limit of {self._time_limit:g} s")
            raise late from _error_of(running)
        running.result()

    async def _end(self, task: Task, running: asyncio.Task[object]) -> None:
        """Cancel a handler, several times if it goes on; at last it is left alone."""
        for number, seconds in enumerate(CANCELLATIONS):
            if number:
                logger.warning("the handler of %s goes on after its cancellation, cancelling it again", task)
            running.cancel()
            await first_of(asyncio.wait({running}), self._sleep(seconds))
            if running.done():
                _error_of(running)
                return
        logger.error("the handler of %s goes on after %d cancellations", task, len(CANCELLATIONS))


def _error_of(running: asyncio.Task[object]) -> BaseException | None:
    """Return the exception of an ended handler, if there is one."""
    return running.exception() if running.done() and not running.cancelled() else None
