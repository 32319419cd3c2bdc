"""Async procedures: a coroutine whose stretches between awaits are transactions."""

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
from iproto_server.server.application_errors import text_of


class _Done:
    """A coroutine's result, as a value: leaving the box by an exception would undo the last stretch."""

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
    """Await a coroutine, each stretch between two awaits as the session and as one transaction.

    A stretch that has changed something is followed by the next one only when it is in the log (`written`);
    where it cannot be written, it is undone and the coroutine has the error for the result of its await.
    It goes on as the user it started as, whatever the session becomes in the meantime. As whom it acts
    for a while (`with box.session.su(…)`) is its own affair: the session's other requests keep their user.
    So it is with the number of its request, `sync`.
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
            # Not the coroutine has raised: its stretch could not be committed, which it has to know.
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
    """What is done when the waiter is, whose result a coroutine awaits, and what that rests on is in the log.

    It fails where that cannot be written: a result that was undone must not be gone on with.
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
    """An application's coroutine has raised what would end the process.

    Parameters:
        error: what it has raised.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"{type(error).__name__}: {text_of(error)}")
        self.error = error


class CoroutineRunner:
    """Runs applications' coroutines as tasks of the event loop.

    Parameters:
        box: the box.
        written: answers what is done when everything committed so far is in the log.

    Attributes:
        tasks: the async procedures that are running.
    """

    def __init__(self, box: Box, written: Callable[[], asyncio.Future[None]]) -> None:
        self._box = box
        self._written = written
        self.tasks: set[asyncio.Task[object]] = set()
        self._cancelled: WeakSet[asyncio.Task[object]] = WeakSet()

    def task(
        self, session: Session, coroutine: Coroutine[Any, Any, object], **options: Any
    ) -> asyncio.Task[object]:
        """Make a task that runs a coroutine in transactions."""

        async def run(user: Credentials, sync: int) -> object:
            try:
                return await in_transactions(self._box, session, user, sync, coroutine, self._written)
            except (SystemExit, KeyboardInterrupt) as error:
                # A task that ends in one of these ends the event loop, too.
                raise CoroutineExit(error) from error

        task = asyncio.Task(
            run(session.credentials, session.sync), loop=asyncio.get_running_loop(), **options
        )
        # One that is cancelled before it has begun is never awaited, which Python would complain about.
        task.add_done_callback(lambda _: coroutine.close())
        return task

    def start(self, session: Session, coroutine: Coroutine[Any, Any, object]) -> Waiter:
        """Start a coroutine; the waiter is done when it is."""
        waiter = Waiter(session, lambda: None)
        task = self.task(session, coroutine)
        self.tasks.add(task)

        def finished(done: asyncio.Task[object]) -> None:
            self.tasks.discard(done)
            # What it answers now was written before.
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
        """Cancel tasks that this has made: that they end is not their failure."""
        for task in tasks:
            if task.cancel():
                self._cancelled.add(task)

    def failure(self, task: asyncio.Task[object]) -> BaseException | None:
        """What a task that is done has raised; None where it has returned, or `cancel` has ended it.

        One that raises CancelledError by itself, or cancels itself, has failed as with any other exception.
        """
        try:
            error = task.exception()
        except asyncio.CancelledError as cancellation:
            return None if task in self._cancelled else cancellation
        return error.error if isinstance(error, CoroutineExit) else error

    def task_factory(
        self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any
    ) -> asyncio.Task[Any]:
        """Make a task, as the event loop's task factory.

        What code of an application starts beside itself (`asyncio.gather`, `asyncio.wait_for`, a task group)
        runs as the application's own stretches do: as the same session, not as the server, and in
        transactions.
        """
        if self._box.is_in_txn() and inspect.iscoroutine(coroutine):
            return self.task(self._box.session.current, coroutine, **options)
        return asyncio.Task(coroutine, loop=loop, **options)
