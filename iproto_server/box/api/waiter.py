"""Calls that wait: park a waiter now, answer it later.

A procedure without a result yet returns a `Waiter`; the connection continues with its other requests. When
the waiter is done, the server sends the response. Waiters do not depend on coroutines, so an application in
another language can wait in the same way.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Generator
from typing import Final

from iproto_server.box.access.session import Session
from iproto_server.box.clock import Timer
from iproto_server.native._native import PendingResult

logger = logging.getLogger("iproto_server.waiting")


class _StillWaiting:
    """The type of `STILL_WAITING`."""

    __slots__ = ()


STILL_WAITING: Final = _StillWaiting()
"""Result of a waiter's `resume` if there is nothing for it after all: it keeps its place."""


class Waiter(PendingResult):
    """A call that is answered later. An async procedure may await it.

    Attributes:
        session: the caller.
        user: the user whose rights it resumes with; None: the session's user.
        resume: the function to try when it is woken; None: that of its queue.
        arguments: the arguments of `resume`.
        sync: the number of the waiting request.
        procedure: the name of an async procedure that it waits for, for the log.
        is_done: whether it was answered, timed out or was cancelled.
        on_finish: called once when it is done.
        result: the procedure's result, once done.
        error: the procedure's error, once done.
    """

    __slots__ = (
        "_on_done",
        "arguments",
        "error",
        "is_done",
        "on_finish",
        "procedure",
        "queue",
        "result",
        "resume",
        "session",
        "sync",
        "timer",
        "user",
    )

    def __init__(
        self,
        session: Session,
        resume: Callable[..., object] | None,
        arguments: tuple[object, ...] = (),
    ) -> None:
        self.session = session
        self.sync = session.sync
        self.procedure = "a procedure"
        self.user = None if session.credentials is session.user else session.credentials
        self.resume = resume
        self.arguments = arguments
        self.timer: Timer | None = None
        self.queue: OrderedDict[Waiter, None] | None = None
        self.is_done = False
        self.on_finish: Callable[[], object] | None = None
        self.result: object = None
        self.error: BaseException | None = None
        self._on_done: Callable[[Waiter], None] | None = None

    def on_done(self, callback: Callable[[Waiter], None]) -> None:
        """Call `callback` once when the waiter is done; at once if it is done already."""
        if self.is_done:
            callback(self)
        else:
            self._on_done = callback

    def finish(self, result: object = None, error: BaseException | None = None) -> None:
        """Answer the call; does nothing if it was answered before."""
        if self.is_done:
            return
        self.is_done = True
        self.result = result
        self.error = error
        self.session.on_close.pop(self, None)
        if self.queue is not None:
            self.queue.pop(self, None)
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if self.on_finish is not None:
            try:
                self.on_finish()
            except BaseException:
                # The call is answered even if the application's callback fails.
                logger.exception("on_finish callback of a waiting call failed")
        on_done, self._on_done = self._on_done, None  # the callback may refer to the waiter
        if on_done is not None:
            on_done(self)

    def __await__(self) -> Generator[Waiter, None, object]:
        """Wait until it is done. The coroutine's runner receives the waiter and resumes then."""
        if not self.is_done:
            yield self
        if self.error is not None:
            raise self.error
        return self.result
