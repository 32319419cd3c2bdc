"""Queues of calls that wait."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial

from iproto_server.box.api.core import BoxCore
from iproto_server.box.api.waiter import STILL_WAITING, Waiter
from iproto_server.errors import BoxError, ErrorCode


class WaitQueue:
    """Waiters in a line: the first to come is the first to be served.

    Parameters:
        box: the box whose clock times them out and as whose sessions they resume.
        resume: what those try that were parked without anything of their own; see `resume_with`.
    """

    def __init__(self, box: BoxCore, resume: Callable[..., object] | None = None) -> None:
        self._box = box
        self._resume = resume
        self._waiters: OrderedDict[Waiter, None] = OrderedDict()
        self._is_waking = False
        self._pending_wakes = 0

    def __len__(self) -> int:
        return len(self._waiters)

    def resume_with(self, resume: Callable[..., object]) -> None:
        """Let those who wait try something else: what the newly loaded code has for them.

        Parameters:
            resume: as for `park`, for all who were or will be parked without anything of their own. Where the
                running transaction is undone, it is what it was before.
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
        """Put the current session at the end of the line.

        Parameters:
            timeout: seconds after which the call is answered without a value.
            resume: what to try when woken, run as the waiting session and in a transaction of its own; its
                result (or what it raises) is the answer, unless it is `STILL_WAITING`. None: what the line
                has for all when it comes to that, after a reload of the code included.
            arguments: what that is called with.

        Returns: what the procedure has to return. When it raises instead, its place in the line is lost.

        Raises:
            BoxError: ILLEGAL_PARAMS when the timeout is no number.
            TypeError: there is nothing to resume with.
        """
        if resume is None and self._resume is None:
            raise TypeError(
                "the line has nothing to resume with: give park a function, or the line one for all"
            )
        given: object = timeout  # by a client, as often as not
        if not isinstance(given, int | float) or given != given:
            raise BoxError(ErrorCode.ILLEGAL_PARAMS, "timeout must be a number of seconds")
        box = self._box
        session = box.session.current
        waiter = Waiter(session, resume, arguments)
        if session.is_ended:
            # A procedure that went on after its client had gone: there is nobody to wait for.
            waiter.finish()
            return waiter
        waiter.timer = box.clock.call_later(timeout, partial(self._time_out, waiter))
        session.on_close[waiter] = waiter.finish
        waiter.queue = self._waiters
        self._waiters[waiter] = None
        box.on_rollback(waiter.finish)
        return waiter

    def _time_out(self, waiter: Waiter) -> None:
        # That rests on nothing that others have changed just now.
        self._box.transactions.has_logged = False
        waiter.finish()

    def wake(self, count: int = 1) -> int:
        """Let up to `count` waiters try, first come first served, until one finds nothing.

        A waiter whose `resume` raises has that for its answer, and the next one may try in its place.

        Inside of a transaction this waits for the commit.

        Returns: how many got what they waited for, as far as that happened at once.
        """
        if self._box.is_in_txn():
            self._box.on_commit(lambda: self.wake(count))
            return 0
        self._pending_wakes += count
        if self._is_waking:
            # What a waiter does when it resumes may wake others: they get their turn when it is through.
            return 0
        self._is_waking = True
        served = 0
        transactions = self._box.transactions
        has_logged = transactions.has_logged
        try:
            while self._waiters and self._pending_wakes > 0:
                waiter = next(iter(self._waiters))
                # Its answer rests on its own transaction and on that which wakes it, not on other waiters'.
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

    def _try(self, waiter: Waiter) -> tuple[object, BaseException | None]:
        session = waiter.session
        # Whoever wakes it may be the same session, and act as somebody else.
        acting, sync = session.credentials, session.sync
        session.credentials, session.sync = waiter.user or session.user, waiter.sync
        try:
            resume = waiter.resume or self._resume
            assert resume is not None
            return self._box.run(session, resume, *waiter.arguments), None
        except BaseException as error:  # noqa: BLE001  # whatever the procedure raised is the answer to its caller
            return None, error
        finally:
            session.credentials, session.sync = acting, sync
