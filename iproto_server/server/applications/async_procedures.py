"""Async procedures: each stretch of a coroutine between two awaits is a transaction."""

from __future__ import annotations

import asyncio
import inspect
import types
from collections.abc import Callable, Coroutine, Generator, Iterable
from typing import Any
from weakref import WeakSet

from iproto_server.box.access.access_control import Credentials
from iproto_server.box.access.session import Session
from iproto_server.box.api.box import Box
from iproto_server.box.api.waiter import Waiter
from iproto_server.text.exception_text import text_of


class _Done:
    """A coroutine's result as a value, because an exception would roll back the last stretch."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


@types.coroutine
def in_transactions(
    box: Box,
    session: Session,
    user: Credentials,
    sync: int,
    coroutine: Coroutine[Any, Any, object],
    written: Callable[[], asyncio.Future[None]],
) -> Generator[Any, Any, object]:
    """Await a coroutine; run each stretch between two awaits as the session and as one transaction.

    After a stretch with changes, the next one starts when the changes are in the log (`written`). If they
    cannot be written, they are rolled back, and the await raises the error in the coroutine. The coroutine
    keeps its user and the number of its request (`sync`): logins of the session do not affect it, and `with
    box.session.su(…)` in it does not affect the session's other requests.
    """
    resume: Callable[[Any], Any] = coroutine.send
    value: object = None
    while True:
        sync_of_others, session.sync = session.sync, sync
        session.credentials = user
        box.transactions.has_logged = False
        try:
            step = box.run(session, _step, resume, value)
        except BaseException as error:
            if inspect.getcoroutinestate(coroutine) != inspect.CORO_SUSPENDED:
                raise
            # The commit of the stretch failed, not the coroutine, which gets the error.
            resume, value = coroutine.throw, error
            continue
        finally:
            user, session.credentials = session.credentials, session.user
            session.sync = sync_of_others
        is_logged, box.transactions.has_logged = box.transactions.has_logged, False
        if isinstance(step, _Done):
            if is_logged:
                yield from written().__await__()
            return step.value
        try:
            if is_logged:
                yield from written().__await__()
            if isinstance(step, Waiter):
                yield from _done(step, box, written).__await__()
                value = None
            else:
                value = yield step
            resume = coroutine.send
        except BaseException as error:  # noqa: BLE001  # cancellation too is the coroutine's to handle
            value = error
            resume = coroutine.throw


def _done(waiter: Waiter, box: Box, written: Callable[[], asyncio.Future[None]]) -> asyncio.Future[None]:
    """Return a future that is done when the waiter is done and the rows that it depends on are in the log.

    The future fails if these rows cannot be written, because they are rolled back.
    """
    future = asyncio.get_running_loop().create_future()

    def finished(safe: asyncio.Future[None]) -> None:
        failure = safe.exception()
        if future.done():
            return
        if failure is None:
            future.set_result(None)
        else:
            future.set_exception(failure)

    def done(_: Waiter) -> None:
        if box.transactions.has_logged:
            written().add_done_callback(finished)
        elif not future.done():
            future.set_result(None)

    waiter.on_done(done)
    return future


def _step(resume: Callable[[Any], Any], value: object) -> object:
    try:
        return resume(value)
    except StopIteration as stop:
        return _Done(stop.value)


class CoroutineExit(Exception):
    """An application's coroutine has raised an exception that would end the process.

    Parameters:
        error: the exception.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"{type(error).__name__}: {text_of(error)}")
        self.error = error


class CoroutineRunner:
    """Runs applications' coroutines as tasks of the event loop.

    Parameters:
        box: the box.
        written: returns a future that is done when all committed rows are in the log.

    Attributes:
        tasks: the running async procedures.
    """

    def __init__(self, box: Box, written: Callable[[], asyncio.Future[None]]) -> None:
        self._box = box
        self._written = written
        self.tasks: set[asyncio.Task[object]] = set()
        self._cancelled: WeakSet[asyncio.Task[object]] = WeakSet()

    def task(
        self, session: Session, coroutine: Coroutine[Any, Any, object], **options: Any
    ) -> asyncio.Task[object]:
        """Create a task that runs a coroutine in transactions."""

        async def run(user: Credentials, sync: int) -> object:
            try:
                return await in_transactions(self._box, session, user, sync, coroutine, self._written)
            except (SystemExit, KeyboardInterrupt) as error:
                # A task that ends with one of these also ends the event loop.
                raise CoroutineExit(error) from error

        task = asyncio.Task(
            run(session.credentials, session.sync), loop=asyncio.get_running_loop(), **options
        )
        # Python warns of a coroutine that is never awaited, as after a cancellation before its start.
        task.add_done_callback(lambda _: coroutine.close())
        return task

    def start(self, session: Session, coroutine: Coroutine[Any, Any, object]) -> Waiter:
        """Start a coroutine; return a waiter for its result."""
        waiter = Waiter(session, lambda: None)
        task = self.task(session, coroutine)
        self.tasks.add(task)

        def finished(done: asyncio.Task[object]) -> None:
            self.tasks.discard(done)
            # Its changes are in the log already.
            self._box.transactions.has_logged = False
            if done.cancelled() and done in self._cancelled:
                waiter.finish(error=TimeoutError("the server is stopping"))
                return
            error = self.failure(done)
            if error is not None:
                waiter.finish(error=error)
            else:
                result = done.result()
                if isinstance(result, Waiter):
                    result.on_done(lambda inner: waiter.finish(inner.result, inner.error))
                else:
                    waiter.finish(result)

        task.add_done_callback(finished)
        return waiter

    def cancel(self, tasks: Iterable[asyncio.Task[object]]) -> None:
        """Cancel tasks of this runner; `failure` does not report their cancellation."""
        for task in tasks:
            if task.cancel():
                self._cancelled.add(task)

    def failure(self, task: asyncio.Task[object]) -> BaseException | None:
        """Return the exception of a finished task; None if it returned, or was ended by `cancel`.

        A CancelledError that the task raised by itself is a failure like any other exception.
        """
        try:
            error = task.exception()
        except asyncio.CancelledError as cancellation:
            return None if task in self._cancelled else cancellation
        return error.error if isinstance(error, CoroutineExit) else error

    def task_factory(
        self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any
    ) -> asyncio.Task[Any]:
        """Create a task, as the event loop's task factory.

        Tasks that an application's code starts (`asyncio.gather`, `asyncio.wait_for`, a task group) run in
        transactions of the same session.
        """
        if self._box.is_in_txn() and inspect.iscoroutine(coroutine):
            return self.task(self._box.session.current, coroutine, **options)
        return asyncio.Task(coroutine, loop=loop, **options)
