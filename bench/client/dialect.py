"""What a queue's clients say, and what they are answered, as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from bench.client.requests import Requests


class Dialect(Protocol):
    """A protocol, with the four requests that all queues have.

    Attributes:
        greeting: how many bytes the server sends to a new client before it was asked anything.
    """

    @property
    def greeting(self) -> int: ...

    def pings(self, count: int) -> Requests:
        """The cheapest request there is, so many times."""

    def puts(self, payloads: Sequence[bytes], delay: int = 0) -> Requests:
        """Tasks to be put.

        Parameters:
            payloads: their data.
            delay: seconds until they may be taken.

        Raises:
            ValueError: This queue has no delays.
        """

    def takes(self, count: int, timeout: int = 0) -> Requests:
        """Tasks to be taken.

        Parameters:
            count: how many.
            timeout: seconds for which to wait for one.
        """

    def acks(self, tasks: Sequence[bytes]) -> Requests:
        """Tasks to be acknowledged, as `tasks_in` has found them."""

    def complete(self, data: bytes) -> tuple[int, int]:
        """Look for whole answers.

        Parameters:
            data: what has come.

        Returns:
            How many there are, and how many bytes need not be looked at again.
        """

    def tasks_in(self, answers: bytes) -> list[bytes]:
        """The tasks that were taken, in what way ever `acks` wants to have them."""

    def done_in(self, answers: bytes) -> int:
        """How many of the answers, not to takes, say that what was asked for was done."""
