"""What follows a failed attempt, and what a consumer reports of it and is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from iproto_server import BoxError
from queue_lua_compat.policies.options import ReleaseLimitPolicy


@dataclass(frozen=True, slots=True)
class Failure:
    """What follows a failed attempt.

    Attributes:
        is_final: whether the task is not tried again.
        policy: what happens to it then.
        delay: the seconds until the next attempt; None for at once.
        attempts: how many attempts have failed.
    """

    is_final: bool
    policy: ReleaseLimitPolicy
    delay: float | None
    attempts: int


REPORT_OPTIONS: Final = ("failed", "max_failures")
"""The options of a release that make a `ReportedFailure`."""


@dataclass(frozen=True, slots=True)
class ReportedFailure:
    """The options of a release by which a consumer tells that the task has failed.

    The delay of the release then counts only if the queue has no `retry`, and the answer says what follows.

    Attributes:
        max_failures: the task is buried after so many failed attempts, which are counted for it; None: never.
    """

    max_failures: int | None

    @classmethod
    def of(cls, given: Mapping[Any, Any]) -> Self | None:
        """Check the options of a release; None if it reports no failure.

        Raises:
            BoxError: a value is wrong.
        """
        failed, most = given.get("failed"), given.get("max_failures")
        if failed is None or failed is False:
            return None
        if failed is not True:
            raise BoxError.procedure(f"failed must be true or false, not {failed!r}")
        if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
            raise BoxError.procedure(f"max_failures must be a whole number of at least 1, not {most!r}")
        return cls(most)

    def is_over(self, failure: Failure | None) -> bool:
        """Whether the task has failed so often that it has to be buried."""
        return self.max_failures is not None and failure is not None and failure.attempts >= self.max_failures

    def answer(self, failure: Failure | None, delay: float, ended: str | None) -> dict[str, object]:
        """Return what the consumer is told.

        Parameters:
            failure: what the policy says.
            delay: the seconds until the task is ready.
            ended: "DELETE", "DLQ" or "bury" if it is not tried again, else None.
        """
        return {"attempts": None if failure is None else failure.attempts, "delay": delay, "ended": ended}
