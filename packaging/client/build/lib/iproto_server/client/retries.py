"""When to try again."""

from __future__ import annotations

import logging
import random
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from iproto_server.client.dialects import Dialect

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


class Failures:
    """How often each task has failed in this process."""

    def __init__(self) -> None:
        self._counts: OrderedDict[Hashable, int] = OrderedDict()

    def add(self, task_id: Hashable) -> int:
        """Count a failure.

        Returns: the failures of that task.
        """
        count = self._counts.pop(task_id, 0) + 1
        self._counts[task_id] = count
        if len(self._counts) > REMEMBERED:
            self._counts.popitem(last=False)
        return count

    def forget(self, task_id: Hashable) -> None:
        """Forget a task that is done."""
        self._counts.pop(task_id, None)


@dataclass(frozen=True, slots=True)
class FailurePolicy:
    """What happens to a task that has failed.

    Parameters:
        backoff: when it is tried again.
        max_failures: after so many failures it is buried; None: never.
        failures: how often tasks have failed.
    """

    backoff: Backoff
    max_failures: int | None = None
    failures: Failures = field(default_factory=Failures)

    def delay(self, task_id: Hashable, dialect: Dialect, error: BaseException | None) -> float | None:
        """Count a failure and log it.

        Parameters:
            task_id: the task's id.
            dialect: its queue.
            error: the failure.

        Returns: the seconds until the next try; None: it has to be buried.
        """
        count = self.failures.add(task_id)
        if self.max_failures is not None and count >= self.max_failures and dialect.can_bury:
            logger.error(
                "task %s failed for the last time (%d) and is buried", task_id, count, exc_info=error
            )
            return None
        delay = self.backoff.delay(count)
        logger.error("task %s failed (%d), next try in %.3g s", task_id, count, delay, exc_info=error)
        return delay
