"""Async procedures: a coroutine whose stretches between awaits are transactions."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any

from iproto_server.box.box import Box
from iproto_server.box.session import Session
from iproto_server.box.waiting import Waiter


class _Done:
    """A coroutine's result, as a value: leaving the box by an exception would undo the last stretch."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


@types.coroutine
def in_transactions(
    box: Box, session: Session, coroutine: Coroutine[Any, Any, object]
) -> Generator[Any, Any, object]:
    """Await a coroutine, each stretch between two awaits as the session and as one transaction."""
    resume: Callable[[Any], Any] = coroutine.send
    value: object = None
    while True:
        step = box.run(session, _step, resume, value)
        if isinstance(step, _Done):
            return step.value
        try:
            value = yield step
            resume = coroutine.send
        except BaseException as error:  # noqa: BLE001  # cancellation too is the coroutine's to handle
            value = error
            resume = coroutine.throw


def _step(resume: Callable[[Any], Any], value: object) -> object:
    try:
        return resume(value)
    except StopIteration as stop:
        return _Done(stop.value)


class CoroutineRunner:
    """Runs async procedures as tasks of the event loop, and knows which are running.

    Parameters:
        box: the box.
    """

    def __init__(self, box: Box) -> None:
        self._box = box
        self.tasks: set[asyncio.Task[object]] = set()

    def start(self, session: Session, coroutine: Coroutine[Any, Any, object]) -> Waiter:
        """Start a coroutine; the waiter is done when it is."""
        waiter = Waiter(session, lambda: None)

        async def run() -> object:
            return await in_transactions(self._box, session, coroutine)

        task = asyncio.get_running_loop().create_task(run())
        self.tasks.add(task)

        def finished(done: asyncio.Task[object]) -> None:
            self.tasks.discard(done)
            if done.cancelled():
                waiter.finish(error=TimeoutError("the server is stopping"))
                return
            error = done.exception()
            if error is None:
                waiter.finish(done.result())
            elif isinstance(error, Exception):
                waiter.finish(error=error)

        task.add_done_callback(finished)
        return waiter
