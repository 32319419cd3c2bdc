"""A queue for plain scripts, in one thread, on tarantool-python.

queue = Queue("127.0.0.1:3301", "tutorial")
for task in queue.consume(timeout=5):
    with task:
        print(task.data)
"""

from __future__ import annotations

import logging
import time
from asyncio import CancelledError
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from iproto_server.client.alarm import Alarm, check_time_limit
from iproto_server.client.dialects import (
    Call,
    Taken,
)
from iproto_server.client.endpoint import Endpoint
from iproto_server.client.errors import ACCESS_DENIED, NotConnected, QueueError, Refused, TaskLost
from iproto_server.client.retries import Backoff, FailurePolicy, identity_of
from iproto_server.client.sync_link import SyncLink
from iproto_server.client.tracing import close_span, put_span, task_span, with_context

logger = logging.getLogger("iproto_server.client")


class Task:
    """A task that this script has taken.

    `with task:` acknowledges it when the block ends. When the block raises an exception, that is logged and
    the task released with the delay of the queue's `retry`, else with a growing one, or buried after
    `max_failures`. Nothing touches it meanwhile.

    Parameters:
        queue: the queue.
        link: the connection that took it.
        taken: its id and data.
        policy: what happens when it has failed.
        time_limit: seconds for the block; None: without a limit.
    """

    def __init__(
        self,
        queue: Queue,
        link: SyncLink,
        taken: Taken,
        policy: FailurePolicy,
        time_limit: float | None = None,
    ) -> None:
        self.id: Any = taken.id
        self.data: Any = taken.data
        self._queue = queue
        self._link = link
        self._policy = policy
        self._is_finished = False
        self._identity: bytes | None = None
        self._spans = ExitStack()
        self._time_limit = time_limit
        self._alarm: Alarm | None = None

    def __repr__(self) -> str:
        return f"<Task {self.id} of {self._link.dialect.title}>"

    def ack(self) -> None:
        """Remove the task from the queue.

        Raises:
            TaskLost: the connection that took it was lost before.
            NotConnected: it was lost during the request.
            Refused: the server refuses: its `ttr` is over, say.
        """
        self._finish(self._link.dialect.ack(self.id))
        self._policy.failures.forget(self.id)

    def release(self, delay: float = 0.0) -> None:
        """Give the task back.

        Parameters:
            delay: seconds until it can be taken again.

        Raises:
            Unsupported: there is a delay, and the queue has no delayed release.
            ValueError: the delay is negative.
            TaskLost, NotConnected, Refused: as `ack`.
        """
        self._finish(self._link.dialect.release(self.id, delay))

    def bury(self) -> None:
        """Set the task aside until somebody kicks it.

        Raises:
            Unsupported: the queue cannot bury.
            TaskLost, NotConnected, Refused: as `ack`.
        """
        self._finish(self._link.dialect.bury(self.id))
        self._policy.failures.forget(self.id)

    def touch(self, seconds: float) -> None:
        """Keep the task for longer.

        Parameters:
            seconds: what is added to its time.

        Raises:
            Unsupported: the queue has no `ttr`.
            ValueError: the number is not positive.
            TaskLost, NotConnected, Refused: as `ack`.
        """
        self._call(self._link.dialect.touch(self.id, seconds))

    def __enter__(self) -> Self:
        if self._policy.failures.knows(self.id):
            self._identity = identity_of(self.data)  # before the block changes it
        title = self._link.dialect.title
        self._spans = task_span(title, self.id, self.data, linked=self._queue._propagate)
        if self._time_limit is not None:
            self._alarm = Alarm(self._time_limit, Task.__enter__, Task.__exit__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> bool:
        if self._alarm is not None and self._alarm.end() and error is None:
            error = self._alarm.error
        close_span(self._spans, error)
        # Nobody can cancel this thread, so a CancelledError comes from what the block has run.
        failed = isinstance(error, Exception | CancelledError)
        if self._is_finished:
            if failed:
                logger.error("task %s failed after it was finished", self.id, exc_info=error)
            return failed
        try:
            if error is None:
                self.ack()
            elif failed:
                self._failed(error)
            else:
                self.release()
        except (NotConnected, TaskLost, Refused) as refusal:
            if isinstance(refusal, Refused) and refusal.code == ACCESS_DENIED:
                raise
            done = "was done" if error is None else "failed"
            logger.warning("task %s %s, but may be done again: %s", self.id, done, refusal)
        return failed

    def _failed(self, error: BaseException) -> None:
        policy, dialect = self._policy, self._link.dialect
        identity = self._identity or identity_of(self.data)
        attempt = policy.failed(self.id, identity, dialect, error)
        if attempt.delay is None:
            policy.buried(attempt)
            self.bury()
            return
        waits = not dialect.delayed_release and attempt.delay > 0
        if waits:
            policy.waits(attempt)
            self._queue._sleep(attempt.delay)
        try:
            values = self._finish(dialect.fail(self.id, attempt.delay, policy.max_failures))
        except QueueError:
            if not waits:
                policy.not_released(attempt)
            raise
        policy.released(attempt, dialect.outcome(values), has_waited=waits)

    def _finish(self, call: Call) -> list[Any]:
        values = self._call(call)
        self._is_finished = True
        return values

    def _call(self, call: Call) -> list[Any]:
        if not self._link.is_up:
            raise TaskLost(f"the connection that took task {self.id} is lost")
        return self._link.call(call)


class Queue:
    """A queue on a server. It connects when it is first used; `with` closes it.

    Parameters:
        address: `HOST:PORT`, `[IPV6]:PORT`, `PORT` of this machine, or `unix:PATH`.
        dialect: "tutorial" for the queue of Tarantool's tutorial.
        tube: instead, the name of a tube of the queue module.
        user, password: who logs in; without them the guest's rights count.
        propagate: puts carry the context of the current trace in their data, if that is a dict, and tasks
            are handled within it.
        backoff: the delays of failed tasks.
        reconnect: the delays between attempts of `consume` to connect again.
        connect_timeout: seconds for connecting.
        sleep: waits for a number of seconds.

    Raises:
        ValueError: the address is none, not exactly one of `dialect` and `tube` is given, or the timeout is
            not positive.
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
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._endpoint = Endpoint.of(address, dialect, tube, user, password)
        if not connect_timeout > 0:
            raise ValueError("connect_timeout is more than 0 seconds")
        self._propagate = propagate
        self._policy = FailurePolicy(backoff or Backoff())
        self._reconnect = reconnect or Backoff(first=0.1, longest=10.0)
        self._connect_timeout = connect_timeout
        self._sleep = sleep
        self._link: SyncLink | None = None
        self._is_closed = False

    def put(self, data: object, **options: object) -> Any:
        """Add a task. It is never sent twice: whether to try again after an error is the caller's decision.

        Parameters:
            data: what msgpack can carry.
            options: those of the queue: `delay`, `ttl`, `ttr`, `pri`, `utube`, `timeout`; times in seconds.

        Returns: the task's id.

        Raises:
            ValueError: the queue has no such option.
            NotConnected: `may_have_been_done` tells whether the task may have been added.
            Refused: the server answered with an error.
            QueueFull: a tube of limited capacity is full.
            QueueError: there is no such tube.
        """
        link = self._linked()
        with put_span(link.dialect.title):
            values = link.call(link.dialect.put(with_context(data) if self._propagate else data, options))
        return link.dialect.added(values)

    def take(self, timeout: float = 0.0) -> Task | None:
        """Take the next task.

        Parameters:
            timeout: seconds to wait for one.

        Returns: the task; None if none came in time.

        Raises:
            ValueError: the timeout is negative.
            NotConnected, Refused, QueueError: as `put`.
        """
        return self._take(timeout, self._policy)

    def consume(
        self,
        *,
        timeout: float | None = None,
        max_failures: int | None = None,
        time_limit: float | None = None,
    ) -> Iterator[Task]:
        """Return tasks as they come. The first connection must succeed; a lost one is replaced.

        Parameters:
            timeout: ends when no task comes for so many seconds; None: never.
            max_failures: after so many failures a task is buried; None: never.
            time_limit: seconds for the block of a task, which then gets a TimeoutError. The signal SIGALRM
                raises it, so in the main thread only, and not before a call of a C library has returned.
                None: without a limit.

        Raises:
            ValueError: a number is out of range, or there is a time limit in another thread, or on a system
                without SIGALRM.
        """
        if time_limit is not None:
            check_time_limit(time_limit)
        if timeout is not None and not timeout >= 0:
            raise ValueError(f"consume: the timeout is at least 0 seconds, not {timeout!r}")
        if max_failures is not None and max_failures < 1:
            raise ValueError("max_failures is at least 1")
        return self._tasks(timeout, replace(self._policy, max_failures=max_failures), time_limit)

    def close(self) -> None:
        """Close the connection; the server releases what was taken with it."""
        self._is_closed = True
        if self._link is not None:
            self._link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _tasks(
        self, timeout: float | None, policy: FailurePolicy, time_limit: float | None
    ) -> Iterator[Task]:
        for lack in self._linked().dialect.lacks(policy.max_failures):
            logger.info("%s", lack)
        attempts = 0
        while not self._is_closed:
            try:
                task = self._take(30.0 if timeout is None else timeout, policy, time_limit)
            except NotConnected as error:
                attempts += 1
                delay = self._reconnect.delay(attempts)
                logger.warning("%s; next attempt in %.3g s", error, delay)
                self._sleep(delay)
                continue
            attempts = 0
            if task is not None:
                yield task
            elif timeout is not None:
                return

    def _take(self, timeout: float, policy: FailurePolicy, time_limit: float | None = None) -> Task | None:
        if not timeout >= 0:
            raise ValueError(f"take: the timeout is at least 0 seconds, not {timeout!r}")
        link = self._linked()
        taken = link.dialect.taken(link.call(link.dialect.take(timeout)))
        return None if taken is None else Task(self, link, taken, policy, time_limit)

    def _linked(self) -> SyncLink:
        if self._is_closed:
            raise NotConnected("the queue was closed")
        if self._link is None or not self._link.is_up:
            self._link = SyncLink(self._endpoint, self._connect_timeout)
        return self._link
