"""A task that an asyncio process has taken."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

from iproto_server.client.dialects import Call, Dialect, Taken
from iproto_server.client.errors import ACCESS_DENIED, NotConnected, QueueError, Refused, TaskLost
from iproto_server.client.link import Link
from iproto_server.client.retries import FailurePolicy, identity_of
from iproto_server.client.tracing import close_span, task_span

logger = logging.getLogger("iproto_server.client")

_NOT_POSSIBLE: Final = frozenset({32, 33, ACCESS_DENIED})
"""The codes of refusals that another try does not change, as the task was not taken. Others may pass, such as
that of a full memory."""

in_work: ContextVar[Task | None] = ContextVar("in_work", default=None)
"""The task that is handled where this code runs, also in what the handler has started."""


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
    and the task released with the delay of the queue's `retry`, else with a growing one, or buried after
    `max_failures`. A cancellation of the block releases it at once and goes on; a `CancelledError` of
    something that the block has awaited is an exception like any other.

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
        self._identity: bytes | None = None
        self._outer: Task | None = None

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
        if self._care.policy.failures.knows(self.id):
            self._identity = identity_of(self.data)  # before the handler changes it
        self._outer = in_work.get()
        in_work.set(self)
        self._spans = task_span(self._dialect.title, self.id, self.data, linked=self._care.linked)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> bool:
        in_work.set(self._outer)
        close_span(self._spans, error)
        failed = isinstance(error, Exception) or _is_of_others(error)
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

    def is_of(self, care: Care) -> bool:
        """Whether it is in work, for a queue whose care that is."""
        return self._care.policy.failures is care.policy.failures and not self._is_finished

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
        policy, dialect = self._care.policy, self._dialect
        identity = self._identity or identity_of(self.data)
        attempt = policy.failed(self.id, identity, dialect, error)
        if attempt.delay is None:
            policy.buried(attempt)
            await self.bury()
            return
        waits = not dialect.delayed_release and attempt.delay > 0
        if waits:
            policy.waits(attempt)
            await first_of(self._care.sleep(attempt.delay), self._care.stopping.wait())
        try:
            values = await self._finish(dialect.fail(self.id, attempt.delay, policy.max_failures))
        except QueueError:
            if not waits:
                policy.not_released(attempt)
            raise
        policy.released(attempt, dialect.outcome(values), has_waited=waits)

    async def _touch_regularly(self, seconds: float) -> None:
        has_failed = False
        while True:
            await self._care.sleep(seconds)
            try:
                await self.touch(seconds)
                has_failed = False
            except QueueError as error:
                if not has_failed:
                    logger.warning("task %s may be taken away, as touching it failed: %s", self.id, error)
                has_failed = True
                if not isinstance(error, Refused) or error.code in _NOT_POSSIBLE:
                    return

    async def _finish(self, call: Call) -> list[Any]:
        try:
            values = await self._call(call)
        except (NotConnected, TaskLost):
            self.end()  # no longer ours
            raise
        self.end()
        return values

    async def _call(self, call: Call) -> list[Any]:
        if self.is_lost:
            raise TaskLost(f"the connection that took task {self.id} is lost")
        return await self._link.call(call)


def _is_of_others(error: BaseException | None) -> bool:
    """Whether an error is the cancellation of something awaited, and not of the running asyncio task."""
    running = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and running is not None and not running.cancelling()


async def first_of(*waits: Awaitable[object]) -> None:
    """Wait for the first of several; cancel the others."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
