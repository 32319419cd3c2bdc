"""When to try again, and what is logged about a failure."""

from __future__ import annotations

import hashlib
import logging
import random
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace

from iproto_server.client.dialects import Dialect, Outcome

logger = logging.getLogger("iproto_server.client")

REMEMBERED = 10_000
"""Tasks whose failures are remembered: others may finish a task that failed here, which nobody tells."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays that grow with each failure, up to a limit, less a random share.

    Parameters:
        first: seconds after the first failure.
        factor: by which each further delay is longer.
        longest: the limit in seconds.
        jitter: the share of a delay, from 0 to 1, that chance may take away.
        chance: returns a random number from 0 to 1.

    Raises:
        ValueError: a number is out of range.
    """

    first: float = 1.0
    factor: float = 2.0
    longest: float = 300.0
    jitter: float = 0.5
    chance: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        if not (self.first >= 0 and self.longest >= 0):
            raise ValueError("the delays of a backoff are at least 0 seconds")
        if not self.factor >= 1:
            raise ValueError("the factor of a backoff is at least 1")
        if not 0 <= self.jitter <= 1:
            raise ValueError("the jitter of a backoff is from 0 to 1")

    def delay(self, failures: int) -> float:
        """Return the seconds to wait.

        Parameters:
            failures: how often it has failed, at least 1.
        """
        # The exponent is limited: a float has no 2.0 ** 1100.
        grown = self.first * self.factor ** min(failures - 1, 64)
        return min(grown, self.longest) * (1 - self.jitter * self.chance())


def identity_of(data: object) -> bytes:
    """Return a digest of a task's data: a queue may give a finished task's id to a new task."""
    return hashlib.blake2b(repr(data).encode("utf-8", "replace"), digest_size=16).digest()


class Failures:
    """How often each put has failed in this process. A put is known by its id and the digest of its data.

    Attributes:
        are_counted_by_server: whether the server counts failures as well; then its numbers count.
    """

    def __init__(self) -> None:
        self._counts: OrderedDict[Hashable, tuple[bytes, int]] = OrderedDict()
        self.are_counted_by_server = False

    def add(self, task_id: Hashable, identity: bytes) -> int:
        """Count a failure.

        Parameters:
            task_id: the task's id.
            identity: the digest of its data; with another one than before it is another task.

        Returns: the failures of that task.
        """
        before, count = self._counts.pop(task_id, (identity, 0))
        count = count + 1 if before == identity else 1
        self.set(task_id, identity, count)
        return count

    def set(self, task_id: Hashable, identity: bytes, count: int) -> None:
        """Store the number of failures that the server has counted."""
        self._counts[task_id] = (identity, count)
        self._counts.move_to_end(task_id)
        if len(self._counts) > REMEMBERED:
            self._counts.popitem(last=False)

    def knows(self, task_id: Hashable) -> bool:
        """Whether a task with that id has failed."""
        return task_id in self._counts

    def forget(self, task_id: Hashable) -> None:
        """Forget a task that is done."""
        self._counts.pop(task_id, None)


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """A failure, as this process has counted it.

    Attributes:
        task_id: the task's id.
        identity: the digest of its data.
        count: the failures of the task.
        delay: the seconds until the next attempt; None: it is the last one, and the task has to be buried.
        error: the exception.
    """

    task_id: Hashable
    identity: bytes
    count: int
    delay: float | None
    error: BaseException | None


@dataclass(frozen=True, slots=True)
class FailurePolicy:
    """The consequence for a task that has failed.

    Parameters:
        backoff: when it is tried again, unless the queue has a `retry`.
        max_failures: after so many failures it is buried; None: never.
        failures: how often tasks have failed.
    """

    backoff: Backoff
    max_failures: int | None = None
    failures: Failures = field(default_factory=Failures)

    def failed(
        self, task_id: Hashable, identity: bytes, dialect: Dialect, error: BaseException | None
    ) -> FailedAttempt:
        """Count a failure.

        Parameters:
            task_id: the task's id.
            identity: the digest of its data.
            dialect: its queue.
            error: the failure.
        """
        count = self.failures.add(task_id, identity)
        delay: float | None = self.backoff.delay(count)
        if self.max_failures is not None and dialect.can_bury and count >= self.max_failures:
            # The server buries it if its own count says so as well.
            delay = 0.0 if self.failures.are_counted_by_server else None
        return FailedAttempt(task_id, identity, count, delay, error)

    def buried(self, attempt: FailedAttempt) -> None:
        """Log that a task was buried by this process after its last attempt."""
        self._log(attempt, attempt.count, "for the last time (%d) and is buried")

    def waits(self, attempt: FailedAttempt) -> None:
        """Log that a task is released after a delay, which this process waits for."""
        self._log(attempt, attempt.count, "(%d), is released in %.3g s", attempt.delay)

    def not_released(self, attempt: FailedAttempt) -> None:
        """Log a failure of which the server could not be told."""
        self._log(attempt, attempt.count, "(%d)")

    def released(self, attempt: FailedAttempt, outcome: Outcome | None, *, has_waited: bool) -> None:
        """Log what the server has done with a failed task.

        Parameters:
            attempt: the failure.
            outcome: the server's answer; None: it does not tell, so the task was released as asked for.
            has_waited: the failure is in the log, as of `waits`.
        """
        self.failures.are_counted_by_server = outcome is not None
        count, delay = attempt.count, attempt.delay
        if outcome is not None:
            delay = outcome.delay
            if outcome.attempts is not None:
                count = outcome.attempts
                self.failures.set(attempt.task_id, attempt.identity, count)
            if outcome.ended is not None:
                self.failures.forget(attempt.task_id)
                told = replace(attempt, error=None) if has_waited else attempt
                self._log(told, count, f"for the last time (%d) and {outcome.ended}")
                return
        if not has_waited:
            self._log(attempt, count, "(%d), next try in %.3g s", delay)

    def _log(self, attempt: FailedAttempt, count: int, text: str, *values: object) -> None:
        logger.error(f"task %s failed {text}", attempt.task_id, count, *values, exc_info=attempt.error)
