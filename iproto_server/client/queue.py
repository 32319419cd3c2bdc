"""A queue for asyncio."""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Self

from iproto_server.client.consumer import Consumer
from iproto_server.client.endpoint import Endpoint
from iproto_server.client.errors import NotConnected, QueueError
from iproto_server.client.handlers import Handler, Handlers
from iproto_server.client.link import Link
from iproto_server.client.retries import Backoff, FailurePolicy
from iproto_server.client.task import Care, Task, in_work
from iproto_server.client.tracing import put_span, with_context

logger = logging.getLogger("iproto_server.client")


class Queue:
    """A queue on a server. It connects when it is first used; `async with` closes it.

    Parameters:
        address: `HOST:PORT`, `[IPV6]:PORT`, `PORT` of this machine, or `unix:PATH`.
        dialect: "tutorial" for the queue of Tarantool's tutorial.
        tube: instead, the name of a tube of the queue module.
        user, password: who logs in; without them the guest's rights count.
        propagate: puts carry the context of the current trace in their data, if that is a dict, and tasks
            are handled within it.
        backoff: the delays of failed tasks.
        reconnect: the delays between attempts of a consumer to connect again.
        connect_timeout: seconds for connecting.
        request_timeout: seconds for a response, beside the time that the request may wait.
        sleep: waits for a number of seconds.

    Raises:
        ValueError: the address is none, not exactly one of `dialect` and `tube` is given, or a timeout is not
            positive.
    """

    def __init__(
        self,
        address: str,
        dialect: str | None = None,
        *,
        tube: str | None = None,
        user: str | None = None,
        password: str | None = None,
        propagate: bool = False,
        backoff: Backoff | None = None,
        reconnect: Backoff | None = None,
        connect_timeout: float = 3.0,
        request_timeout: float = 30.0,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._endpoint = Endpoint.of(address, dialect, tube, user, password)
        if not (connect_timeout > 0 and request_timeout > 0):
            raise ValueError("connect_timeout and request_timeout are more than 0 seconds")
        self._propagate = propagate
        self._reconnect = reconnect or Backoff(first=0.1, longest=10.0)
        self._connect_timeout = connect_timeout
        self._request_timeout = request_timeout
        self._sleep = sleep
        self._care = Care(FailurePolicy(backoff or Backoff()), sleep, propagate)
        self._link: Link | None = None
        self._connecting = asyncio.Lock()
        self._consumers: set[Consumer] = set()
        self._workers: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._stop: asyncio.Task[None] | None = None
        self._stop_by = math.inf
        self._is_hurried = asyncio.Event()

    async def connect(self) -> None:
        """Connect now, unless there is a connection.

        Raises:
            NotConnected: there is no server, or the queue was closed.
            Refused: the server refuses the login.
            QueueError: there is no such tube.
        """
        await self._linked()

    async def put(self, data: object, **options: object) -> Any:
        """Add a task. It is never sent twice: whether to try again after an error is the caller's decision.

        Parameters:
            data: what msgpack can carry.
            options: those of the queue: `delay`, `ttl`, `ttr`, `pri`, `utube`, `timeout`; times in seconds.
                Those of this server's policies (`unique_key`, `release_limit`, …) are ignored by Tarantool.

        Returns: the task's id.

        Raises:
            ValueError: the queue has no such option.
            NotConnected: `may_have_been_done` tells whether the task may have been added.
            Refused: the server answered with an error.
            QueueFull: a tube of limited capacity is full.
        """
        link = await self._linked()
        with put_span(link.dialect.title):
            call = link.dialect.put(with_context(data) if self._propagate else data, options)
            waits = options.get("timeout", 0)
            values = await link.call(call, waits=float(waits) if isinstance(waits, int | float) else 0.0)
        return link.dialect.added(values)

    async def take(self, timeout: float = 0.0) -> Task | None:  # noqa: ASYNC109 - the server waits
        """Take the next task.

        Parameters:
            timeout: seconds to wait for one.

        Returns: the task; None if none came in time.

        Raises:
            ValueError: the timeout is negative.
            NotConnected, Refused: as `put`. A task that was taken by a lost connection returns to the queue.
        """
        if not timeout >= 0:
            raise ValueError(f"take: the timeout is at least 0 seconds, not {timeout!r}")
        link = await self._linked()
        taken = link.dialect.taken(await link.call(link.dialect.take(timeout), waits=timeout))
        return None if taken is None else Task(link, taken, self._care, link.dialect.ttr)

    def consume(
        self,
        *,
        concurrency: int = 1,
        prefetch: int = 0,
        max_failures: int | None = None,
        ttr: float | None = None,
        poll: float = 30.0,
    ) -> Consumer:
        """Return tasks as they come: `async for task in queue.consume(): async with task: …`.

        The first connection must succeed; a lost one is replaced as often as necessary.

        Parameters:
            concurrency: how many coroutines iterate over it.
            prefetch: how many tasks are taken before somebody asks for one.
            max_failures: after so many failures in this process a task is buried; None: never.
            ttr: seconds after which a task is taken away, if the puts say otherwise than the tube.
            poll: seconds for which one take waits on the server.

        Raises:
            ValueError: a number is out of range.
        """
        if concurrency < 1 or prefetch < 0:
            raise ValueError("concurrency is at least 1, and prefetch at least 0")
        if max_failures is not None and max_failures < 1:
            raise ValueError("max_failures is at least 1")
        if not poll > 0 or (ttr is not None and not ttr > 0):
            raise ValueError("poll and ttr are more than 0 seconds")
        care = Care(replace(self._care.policy, max_failures=max_failures), self._sleep, self._propagate)
        consumer = Consumer(
            _Source(self, max_failures),
            care,
            concurrency=concurrency,
            prefetch=prefetch,
            poll=poll,
            ttr=ttr,
            closed=self._consumers.discard,
        )
        self._consumers.add(consumer)
        return consumer

    async def work(
        self,
        handler: Handler,
        *,
        concurrency: int = 1,
        prefetch: int = 0,
        max_failures: int | None = None,
        ttr: float | None = None,
        time_limit: float | None = None,
        poll: float = 30.0,
        stop_signals: Sequence[int] = (),
        stop_timeout: float = 30.0,
    ) -> None:
        """Handle tasks until `stop` is called or a signal comes; then the queue is closed.

        It returns after a stop only, and raises what ends it otherwise.

        Parameters:
            handler: a coroutine function; an exception, also a `CancelledError` of something that it awaits,
                releases the task with a delay.
            concurrency: how many tasks are handled at a time.
            time_limit: seconds that a handler has for a task. Then it is cancelled, and the task has failed.
                Code that does not await, and threads, cannot be cancelled. None: without a limit.
            prefetch, max_failures, ttr, poll: as of `consume`.
            stop_signals: signals that stop it: `(signal.SIGTERM, signal.SIGINT)`.
            stop_timeout: seconds for which handlers may go on after a signal; then they are cancelled.

        Raises:
            TypeError: the handler is no coroutine function.
            ValueError: a number is out of range.
            NotConnected: the first connection fails.
            Refused: the server refuses to give tasks, or the login.
            HandlerStuck: a handler goes on after several cancellations.
            QueueError: other code has cancelled a part of the worker.
        """
        if time_limit is not None and not time_limit > 0:
            raise ValueError(f"time_limit is more than 0 seconds, or None for no limit, not {time_limit!r}")
        called = getattr(handler, "__call__", None)  # noqa: B004
        if not (inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(called)):
            raise TypeError("work: the handler is a coroutine function (async def)")
        consumer = self.consume(
            concurrency=concurrency, prefetch=prefetch, max_failures=max_failures, ttr=ttr, poll=poll
        )
        loop = asyncio.get_running_loop()
        stops: set[asyncio.Task[None]] = set()

        def stop() -> None:
            if not stops:
                logger.info("stopping; handlers have %.3g s to finish", stop_timeout)
                stops.add(loop.create_task(self.stop(stop_timeout)))

        handlers = Handlers(consumer, handler, time_limit, self._sleep)
        workers = {loop.create_task(handlers.run()) for _ in range(concurrency)}
        self._workers |= workers
        for number in stop_signals:
            loop.add_signal_handler(number, stop)
        try:
            await _end_of(workers, consumer)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            self._workers -= workers
            await self.close()
            if self._stop is not None:
                stops.add(self._stop)
            await asyncio.gather(*stops)
            for number in stop_signals:
                loop.remove_signal_handler(number)

    async def stop(self, stop_timeout: float = 30.0) -> None:
        """Take no more tasks, let those in work be finished, release the others, and close.

        Within a handler, or in what it has started, this returns at once, and the rest follows: it would wait
        for itself. A further call can only shorten the time.

        Parameters:
            stop_timeout: seconds for tasks in work; then the handlers of `work` are cancelled.

        Raises:
            ValueError: the time is negative.
        """
        if not stop_timeout >= 0:
            raise ValueError(f"stop: the time is at least 0 seconds, not {stop_timeout!r}")
        loop = asyncio.get_running_loop()
        self._stop_by = min(self._stop_by, loop.time() + stop_timeout)
        self._is_hurried.set()
        if self._stop is None:
            for consumer in self._consumers:
                consumer.begin_stop()
            self._stop = loop.create_task(self._stop_all(stop_timeout))
        task = in_work.get()
        if task is None or not task.is_of(self._care):
            await asyncio.shield(self._stop)

    async def _stop_all(self, stop_timeout: float) -> None:
        consumers = list(self._consumers)
        for consumer in consumers:
            await consumer.stop()
        idle = asyncio.gather(*(consumer.idle() for consumer in consumers))
        if not await self._ends_in_time(idle):
            idle.cancel()
            await asyncio.gather(idle, return_exceptions=True)
            logger.warning("tasks were still in work after %.3g s", stop_timeout)
            for worker in self._workers:
                worker.cancel()
            await asyncio.gather(*self._workers, return_exceptions=True)
        await self.close()

    async def _ends_in_time(self, idle: asyncio.Future[Any]) -> bool:
        """Wait for the end of all work, or of the time, which may be shortened meanwhile."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(0)  # work that is finished counts even without any time
        while not idle.done():
            left = self._stop_by - loop.time()
            if left <= 0:
                return False
            self._is_hurried.clear()
            hurried = loop.create_task(self._is_hurried.wait())
            timeout = None if left == math.inf else left
            await asyncio.wait({idle, hurried}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            hurried.cancel()
        return True

    async def close(self) -> None:
        """Close the connection; the server releases what was taken with it."""
        self._is_closed = True
        for consumer in list(self._consumers):
            await consumer.stop()
        if self._link is not None:
            self._link.close()
        for consumer in list(self._consumers):
            await consumer.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def _linked(self) -> Link:
        """Return the connection; connect if there is none, once."""
        async with self._connecting:
            return await self._connected()

    async def _connected(self) -> Link:
        if self._is_closed:
            raise NotConnected("the queue was closed")
        if self._link is None or not self._link.is_up:
            self._link = await Link.open(self._endpoint, self._connect_timeout, self._request_timeout)
        return self._link

    async def _link_again(self) -> Link:
        """Return the connection; connect again as often as necessary once there was one."""
        async with self._connecting:
            attempts = 0
            while True:
                try:
                    return await self._connected()
                except NotConnected as error:
                    if self._link is None or self._is_closed:
                        raise
                    attempts += 1
                    delay = self._reconnect.delay(attempts)
                    logger.warning("%s; next attempt in %.3g s", error, delay)
                await self._sleep(delay)


class _Source:
    """The queue for one consumer: it says once what the queue lacks.

    Parameters:
        queue: the queue.
        max_failures: as of `consume`.
    """

    def __init__(self, queue: Queue, max_failures: int | None) -> None:
        self._queue = queue
        self._max_failures = max_failures
        self._has_told = False

    async def link_again(self) -> Link:
        """As of `Source`."""
        link = await self._queue._link_again()
        if not self._has_told:
            self._has_told = True
            for lack in link.dialect.lacks(self._max_failures):
                logger.info("%s: %s", link.dialect.title, lack)
        return link


async def _end_of(workers: set[asyncio.Task[None]], consumer: Consumer) -> None:
    """Wait until all workers have ended, which they do when the consumer is stopped.

    Raises:
        QueueError: other code has cancelled one; else what has ended the first of them.
    """
    left = workers
    while left:
        ended, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
        for worker in ended:
            if not worker.cancelled():
                worker.result()
            elif not consumer.is_stopping:
                raise QueueError("a task of the worker was cancelled by other code")
