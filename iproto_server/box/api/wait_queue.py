"""Queues of calls that wait."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Final

from iproto_server.box.api.core import BoxCore
from iproto_server.box.api.waiter import STILL_WAITING, Waiter
from iproto_server.errors import BoxError, ErrorCode

WAKES: Final = 50
"""The maximum number of waiters that are resumed in one go."""


class WaitQueue:
    """Waiters in order of arrival: first come, first served.

    Parameters:
        box: the box; its clock times waiters out.
        resume: the function for waiters that were parked without one; see `resume_with`.

    Attributes:
        waiters: the waiters, in order; do not change them directly. `if queue.waiters` costs less than
            `if queue`.
    """

    def __init__(self, box: BoxCore, resume: Callable[..., object] | None = None) -> None:
        self._box = box
        self._resume = resume
        self.waiters: OrderedDict[Waiter, None] = OrderedDict()
        self._is_waking = False
        self._pending_wakes = 0

    def __len__(self) -> int:
        return len(self.waiters)

    def resume_with(self, resume: Callable[..., object]) -> None:
        """Replace the common resume function, for example by that of reloaded code.

        Parameters:
            resume: as for `park`, for all waiters parked without one, before or later. If the running
                transaction is undone, the old function is restored.
        """
        before, self._resume = self._resume, resume

        def put_back() -> None:
            self._resume = before

        self._box.on_rollback(put_back)

    def park(
        self,
        timeout: float,
        resume: Callable[..., object] | None = None,
        arguments: tuple[object, ...] = (),
    ) -> Waiter:
        """Append a waiter for the current session.

        Parameters:
            timeout: seconds until the call is answered without a value.
            resume: the function to call when woken, as the waiting session and in a transaction of its own.
                Its result or error is the answer, unless it returns `STILL_WAITING`. None: the queue's own
                function at that time, possibly one of reloaded code.
            arguments: the arguments of `resume`.

        Returns: the waiter, which the procedure must return. If it raises instead, the waiter is removed.

        Raises:
            BoxError: ILLEGAL_PARAMS if the timeout is not a number.
            TypeError: neither this call nor the queue has a function to resume with.
        """
        if resume is None and self._resume is None:
            raise TypeError("no function to resume with: pass one to park() or to the WaitQueue")
        given: object = timeout  # often a client's argument
        if not isinstance(given, int | float) or given != given:
            raise BoxError(ErrorCode.ILLEGAL_PARAMS, "timeout must be a number of seconds")
        box = self._box
        session = box.session.current
        waiter = Waiter(session, resume, arguments)
        if session.is_ended:
            # The client has disconnected meanwhile.
            waiter.finish()
            return waiter
        waiter.timer = box.clock.call_later(timeout, partial(self._time_out, waiter))
        session.on_close[waiter] = waiter.finish
        waiter.queue = self.waiters
        self.waiters[waiter] = None
        box.on_rollback(waiter.finish)
        return waiter

    def _time_out(self, waiter: Waiter) -> None:
        # The answer does not depend on changes that others have just made.
        self._box.transactions.has_logged = False
        waiter.finish()

    def wake(self, count: int = 1) -> int:
        """Resume up to `count` waiters, first come, first served, until one finds nothing.

        If `resume` raises, the error is that waiter's answer, and the next waiter is tried in its place.

        In a transaction this happens after the commit. After `WAKES` waiters the others are resumed in the
        next iteration of the event loop.

        Returns: the number of waiters served at once.
        """
        if self._box.is_in_txn():
            self._box.on_commit(lambda: self.wake(count))
            return 0
        self._pending_wakes += count
        if self._is_waking:
            # A resumed waiter wakes others: they are served after it.
            return 0
        self._is_waking = True
        served = 0
        transactions = self._box.transactions
        has_logged = transactions.has_logged
        try:
            for resumed in itertools.count():
                if not self.waiters or self._pending_wakes <= 0:
                    break
                if resumed == WAKES:
                    left = self._pending_wakes
                    self._box.clock.call_later(0.0, partial(self._wake_later, left))
                    break
                waiter = next(iter(self.waiters))
                # Its answer depends on its own transaction and the waking one, not on those of other waiters.
                transactions.has_logged = has_logged
                result, error = self._try(waiter)
                if error is not None:
                    waiter.finish(error=error)
                elif result is STILL_WAITING:
                    break
                else:
                    self._pending_wakes -= 1
                    served += 1
                    waiter.finish(result)
        finally:
            self._is_waking = False
            self._pending_wakes = 0
            transactions.has_logged = has_logged
        return served

    def _wake_later(self, count: int) -> None:
        self.wake(count)

    def _try(self, waiter: Waiter) -> tuple[object, BaseException | None]:
        session = waiter.session
        # The waking code may run in the same session, acting as another user.
        acting, sync = session.credentials, session.sync
        session.credentials, session.sync = waiter.user or session.user, waiter.sync
        try:
            resume = waiter.resume or self._resume
            assert resume is not None
            return self._box.run(session, resume, *waiter.arguments), None
        except BaseException as error:  # noqa: BLE001  # any error is the answer to the caller
            return None, error
        finally:
            session.credentials, session.sync = acting, sync
