"""The loop that takes tasks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol, Self

from iproto_server.client.errors import NotConnected, QueueError
from iproto_server.client.link import Link
from iproto_server.client.task import Care, Task

logger = logging.getLogger("iproto_server.client")


class Source(Protocol):
    """What a consumer needs of its queue."""

    async def link_again(self) -> Link:
        """Return the connection; connect, as often as necessary, if it is lost."""


class Consumer:
    """Takes tasks for one or more coroutines that iterate over it with `async for`.

    Parameters:
        source: the queue.
        care: how tasks are handled.
        concurrency: how many takes may be under way: as many as coroutines iterate.
        prefetch: how many tasks are taken before somebody asks for one.
        poll: seconds for which one take waits on the server.
        ttr: seconds after which the queue takes a task away; None: as the tube says.
        closed: told when it ends.
    """

    def __init__(
        self,
        source: Source,
        care: Care,
        *,
        concurrency: int,
        prefetch: int,
        poll: float,
        ttr: float | None,
        closed: Callable[[Consumer], None],
    ) -> None:
        self._source = source
        self._care = care
        self._concurrency = concurrency
        self._prefetch = prefetch
        self._poll = poll
        self._ttr = ttr
        self._closed = closed
        self._wanted = asyncio.Semaphore(prefetch)
        self._unmet = 0  # tasks that are wanted for callers who have given up
        self._ready: asyncio.Queue[Task | BaseException | None] = asyncio.Queue()
        self._held: set[Task] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._is_started = False
        self._takers: set[asyncio.Task[None]] = set()
        self._at_server: set[asyncio.Task[None] | None] = set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Task:
        """Return the next task.

        Raises:
            StopAsyncIteration: the consumer was stopped.
            Refused: the server refuses to give tasks.
            QueueError: other code has cancelled what waits for tasks.
        """
        self._start()
        while True:
            if self._unmet:
                self._unmet -= 1
            else:
                self._wanted.release()
            try:
                found = await self._ready.get()
            except BaseException:
                self._unmet += 1
                raise
            if isinstance(found, Task):
                if found.is_lost:
                    found.end()
                    continue
                self._held.add(found)
                self._idle.clear()
                return found
            self._ready.put_nowait(found)  # for the next who asks
            if found is None:
                raise StopAsyncIteration
            raise found

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    @property
    def is_stopping(self) -> bool:
        """Whether it takes no more tasks."""
        return self._care.stopping.is_set()

    def begin_stop(self) -> None:
        """Take no more tasks; `stop` does the rest."""
        if not self._care.stopping.is_set():
            self._care.stopping.set()
            for taker in self._takers - self._at_server:
                taker.cancel()

    async def stop(self) -> None:
        """Take no more tasks, and release those that nobody has asked for. Those in work are left alone."""
        self.begin_stop()
        while not self._ready.empty():
            found = self._ready.get_nowait()
            if isinstance(found, Task):
                await self._give_back(found)
        self._ready.put_nowait(None)

    async def idle(self) -> None:
        """Wait until no task is in work."""
        await self._idle.wait()

    async def close(self) -> None:
        """Wait for the takes, which end when the connection is closed."""
        await self.stop()
        takers = list(self._takers)
        for taker in takers:
            taker.cancel()
        await asyncio.gather(*takers, return_exceptions=True)
        self._closed(self)

    def _start(self) -> None:
        if self._is_started or self._care.stopping.is_set():
            return
        self._is_started = True
        for _ in range(self._concurrency):
            taker = asyncio.create_task(self._take_tasks())
            self._takers.add(taker)
            taker.add_done_callback(self._taker_ended)

    def _taker_ended(self, taker: asyncio.Task[None]) -> None:
        self._takers.discard(taker)
        if self._care.stopping.is_set():
            self._close_if_over()
        elif taker.cancelled():
            self._ready.put_nowait(QueueError("the wait for tasks was cancelled by other code"))

    async def _take_tasks(self) -> None:
        try:
            while not self._care.stopping.is_set():
                await self._wanted.acquire()
                task = await self._take()
                if task is None:
                    return
                if self._care.stopping.is_set():
                    await self._give_back(task)
                else:
                    self._ready.put_nowait(task)
        except Exception as error:
            if not self._care.stopping.is_set():
                self._ready.put_nowait(error)  # for the callers, which would wait for ever otherwise
            elif not isinstance(error, QueueError):
                logger.exception("a take failed while the consumer was stopped")

    async def _take(self) -> Task | None:
        """Take a task; None when the consumer is being stopped."""
        while not self._care.stopping.is_set():
            link = await self._source.link_again()
            self._at_server.add(asyncio.current_task())
            try:
                values = await link.call(link.dialect.take(self._poll), waits=self._poll)
            except NotConnected as error:
                if not self._care.stopping.is_set():
                    logger.warning("take: %s", error)
                continue
            finally:
                self._at_server.discard(asyncio.current_task())
            taken = link.dialect.taken(values)
            if taken is not None:
                ttr = (self._ttr or link.dialect.ttr) if link.dialect.can_touch else None
                task = Task(link, taken, self._care, ttr, self._finished)
                task.keep()  # its time runs while it waits for a handler, too
                return task
        return None

    async def _give_back(self, task: Task) -> None:
        try:
            await task.release()
        except QueueError as error:
            logger.warning("task %s was not released: %s", task.id, error)
        finally:
            task.end()

    def _finished(self, task: Task) -> None:
        self._held.discard(task)
        if not self._held:
            self._idle.set()
            self._close_if_over()

    def _close_if_over(self) -> None:
        """Tell that it has ended, unless a stop of the queue has to wait for a take or a task."""
        if self.is_stopping and not self._takers and not self._held:
            self._closed(self)
