"""Tasks as a worker gets them, and the loop that takes them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self

from iproto_server.client.dialects import Call, Dialect, Taken
from iproto_server.client.errors import ACCESS_DENIED, NotConnected, QueueError, Refused, TaskLost
from iproto_server.client.link import Link
from iproto_server.client.retries import FailurePolicy
from iproto_server.client.tracing import task_span

logger = logging.getLogger("iproto_server.client")


@dataclass(slots=True)
class Care:
    """How tasks are handled, and what their handling shares.

    Parameters:
        policy: what happens to a failed task.
        sleep: waits for a number of seconds.
        linked: tasks may carry the context of a trace.
    """

    policy: FailurePolicy
    sleep: Callable[[float], Awaitable[object]]
    linked: bool = False
    stopping: asyncio.Event = field(default_factory=asyncio.Event)


class Task:
    """A task that this process has taken.

    `async with task:` acknowledges it when the block ends. When the block raises an exception, that is logged
    and the task released with a growing delay, or buried after `max_failures`; a cancellation releases it at
    once and goes on.

    Parameters:
        link: the connection that took it.
        taken: its id and data.
        care: how it is handled.
        ttr: seconds until it is taken away, which the block extends; None: never.
        finished: told when it is acknowledged, released or buried, or when that is in vain.
    """

    def __init__(
        self,
        link: Link,
        taken: Taken,
        care: Care,
        ttr: float | None,
        finished: Callable[[Task], None] = lambda task: None,
    ) -> None:
        self.id: Any = taken.id
        """The queue's number for it."""
        self.data: Any = taken.data
        """What the producer has put."""
        self._link = link
        self._care = care
        self._ttr = ttr
        self._on_finish = finished
        self._is_finished = False
        self._toucher: asyncio.Task[None] | None = None
        self._spans = ExitStack()

    def __repr__(self) -> str:
        return f"<Task {self.id} of {self._dialect.title}>"

    @property
    def is_lost(self) -> bool:
        """Whether the connection that took it is lost, so that the server has released it."""
        return not self._link.is_up

    async def ack(self) -> None:
        """Remove the task from the queue.

        Raises:
            TaskLost: the connection that took it was lost before.
            NotConnected: it was lost during the request.
            Refused: the server refuses: its `ttr` is over, say.
        """
        await self._finish(self._dialect.ack(self.id))
        self._care.policy.failures.forget(self.id)

    async def release(self, delay: float = 0.0) -> None:
        """Give the task back.

        Parameters:
            delay: seconds until it can be taken again.

        Raises:
            Unsupported: there is a delay, and the queue has no delayed release.
            ValueError: the delay is negative.
            TaskLost, NotConnected, Refused: as `ack`.
        """
        await self._finish(self._dialect.release(self.id, delay))

    async def bury(self) -> None:
        """Set the task aside until somebody kicks it.

        Raises:
            Unsupported: the queue cannot bury.
            TaskLost, NotConnected, Refused: as `ack`.
        """
        await self._finish(self._dialect.bury(self.id))
        self._care.policy.failures.forget(self.id)

    async def touch(self, seconds: float) -> None:
        """Keep the task for longer.

        Parameters:
            seconds: what is added to its time.

        Raises:
            Unsupported: the queue has no `ttr`.
            ValueError: the number is not positive.
            TaskLost, NotConnected, Refused: as `ack`.
        """
        await self._call(self._dialect.touch(self.id, seconds))

    async def __aenter__(self) -> Self:
        self.keep()
        span = task_span(self._dialect.title, self.id, self.data, linked=self._care.linked)
        self._spans.enter_context(span)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> bool:
        self._spans.__exit__(kind, error, where)
        failed = isinstance(error, Exception)
        if self._is_finished:
            if failed:
                logger.error("task %s failed after it was finished", self.id, exc_info=error)
            return failed
        try:
            if error is None:
                await self.ack()
            elif failed:
                await self._failed(error)
            else:
                await self.release()
        except (NotConnected, TaskLost, Refused) as refusal:
            self.end()
            if isinstance(refusal, Refused) and refusal.code == ACCESS_DENIED:
                raise
            done = "was done" if error is None else "failed"
            logger.warning("task %s %s, but may be done again: %s", self.id, done, refusal)
        finally:
            self.end()
        return failed

    def keep(self) -> None:
        """Begin to extend the task's time, if it has one."""
        if self._ttr is not None and self._toucher is None and not self._is_finished:
            self._toucher = asyncio.create_task(self._touch_regularly(self._ttr / 3))

    def end(self) -> None:
        """Stop extending its time, and tell that it is finished."""
        if self._toucher is not None:
            self._toucher.cancel()
            self._toucher = None
        if not self._is_finished:
            self._is_finished = True
            self._on_finish(self)

    @property
    def _dialect(self) -> Dialect:
        return self._link.dialect

    async def _failed(self, error: BaseException | None) -> None:
        """Release the task after a failure, or bury it."""
        delay = self._care.policy.delay(self.id, self._dialect, error)
        if delay is None:
            await self.bury()
        elif self._dialect.delayed_release:
            await self.release(delay)
        else:
            await _first_of(self._care.sleep(delay), self._care.stopping.wait())
            await self.release()

    async def _touch_regularly(self, seconds: float) -> None:
        while True:
            await self._care.sleep(seconds)
            try:
                await self.touch(seconds)
            except QueueError as error:
                logger.warning("task %s may be taken away, as touching it failed: %s", self.id, error)
                return

    async def _finish(self, call: Call) -> None:
        try:
            await self._call(call)
        except (NotConnected, TaskLost):
            self.end()  # no longer ours
            raise
        self.end()

    async def _call(self, call: Call) -> None:
        if self.is_lost:
            raise TaskLost(f"the connection that took task {self.id} is lost")
        await self._link.call(call)


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

    async def stop(self) -> None:
        """Take no more tasks, and release those that nobody has asked for. Those in work are left alone."""
        if not self._care.stopping.is_set():
            self._care.stopping.set()
            for taker in self._takers - self._at_server:
                taker.cancel()
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
        if not self._takers and self._care.stopping.is_set():
            self._closed(self)

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
        except QueueError as error:
            if not self._care.stopping.is_set():
                self._ready.put_nowait(error)

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


async def _first_of(*waits: Awaitable[object]) -> None:
    """Wait for the first of several; cancel the others."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
