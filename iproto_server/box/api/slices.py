"""Long work in slices: other requests run in between, so that none waits for all of it.

Work is a generator that yields after each step, such as the change of one row, and returns the result of the
whole. Snapshots, which read without changing anything, have slices of their own (`server.snapshot_task`).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final, TypeVar

from iproto_server.box.api.core import BoxCore
from iproto_server.box.api.waiter import Waiter
from iproto_server.errors import BoxError, ErrorCode

Result = TypeVar("Result")

Steps = Generator[None, None, Result]
"""Work that yields after each step, and returns its result."""

SLICE: Final = 100
"""The maximum number of steps in a slice, some 10 to 30 µs each."""
WHOLE: Final = 1000
"""The maximum number of steps within an interactive transaction, where nothing else can run in between."""


def in_slices(
    box: BoxCore, steps: Steps[Result], *, size: int = SLICE, for_answer_only: bool = False
) -> Result | Waiter:
    """Carry out the steps of a call: the first slice now, the others in later iterations of the event loop.

    The first slice is a part of the running transaction; each later one is a transaction of its own, of the
    same session and with the same rights. What a slice has changed stays if a later one fails.

    Parameters:
        box: the box.
        steps: the work. Between two slices others may change anything.
        size: the maximum number of steps in a slice.
        for_answer_only: whether the work ends with the caller's session, because it changes nothing.

    Returns: the result, if one slice is enough; else a waiter, which the procedure must return.

    Raises:
        BoxError: UNSUPPORTED (5) in an interactive transaction if there are more than `WHOLE` steps; what the
            steps raise.
    """
    if box.transactions.interactive is not None:
        return _in_one_piece(steps)
    work = _Work(box, steps, size, for_answer_only)
    if work.advance():
        result: Result = work.waiter.result  # type: ignore[assignment]
        return result
    return work.begin()


def in_one_slice(steps: Steps[Result]) -> Result:
    """Carry out all steps at once, for code that is a part of a larger transaction."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result


def _in_one_piece(steps: Steps[Result]) -> Result:
    for _ in range(WHOLE + 1):
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result
    steps.close()
    raise BoxError(ErrorCode.UNSUPPORTED, "An interactive transaction", f"calls of more than {WHOLE} steps")


class _Work:
    """Work with slices left to do.

    Parameters:
        box: the box.
        steps: the work.
        size: the maximum number of steps in a slice.
        for_answer_only: whether it ends with the session.
    """

    def __init__(self, box: BoxCore, steps: Steps[Any], size: int, for_answer_only: bool) -> None:
        self._box = box
        self._steps = steps
        self._size = size
        self._for_answer_only = for_answer_only
        self._is_undone = False
        self.waiter = Waiter(box.session.current, None)

    def begin(self) -> Waiter:
        """Do the rest later."""
        self._box.clock.call_later(0.0, self._go_on)
        return self.waiter

    def advance(self) -> bool:
        """Carry out a slice, as a part of the running transaction. Returns: whether the work is done."""
        self._box.on_rollback(self._undone)
        # One more tells that the last step was the last one of all.
        for _ in range(self._size + 1):
            try:
                next(self._steps)
            except StopIteration as end:
                self.waiter.result = end.value
                return True
        return False

    def _go_on(self) -> None:
        box, waiter = self._box, self.waiter
        session = waiter.session
        if self._is_undone or (self._for_answer_only and session.is_ended):
            self._steps.close()
            self._answer()
            return
        credentials, sync = session.credentials, session.sync
        session.credentials, session.sync = waiter.user or session.user, waiter.sync
        try:
            is_done = box.run(session, self.advance)
        except BaseException as error:  # noqa: BLE001  # any error is the answer to the caller
            box.transactions.has_logged = False
            waiter.finish(error=error)
            return
        finally:
            session.credentials, session.sync = credentials, sync
        if is_done:
            # Earlier slices may still be on their way to the log.
            box.when_written(self._answer)
        else:
            box.clock.call_later(0.0, self._go_on)

    def _answer(self) -> None:
        self._box.transactions.has_logged = False
        if self._is_undone:
            self.waiter.finish(error=BoxError(ErrorCode.WAL_IO))
        else:
            self.waiter.finish(self.waiter.result)

    def _undone(self) -> None:
        """The log has refused a slice: those that rest on it were undone, too."""
        self._is_undone = True
