"""The interface of a queue's protocol: requests and answers as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from bench.client.requests import Requests
from bench.native.load import Framing


class Dialect(Protocol):
    """A protocol with the four requests that all queues have.

    Attributes:
        greeting: the number of bytes that the server sends to a new client.
        framing: how the end of an answer is found.
    """

    @property
    def greeting(self) -> int: ...
    @property
    def framing(self) -> Framing: ...

    def pings(self, count: int) -> Requests:
        """The cheapest request, repeated."""

    def puts(self, payloads: Sequence[bytes], delay: int = 0) -> Requests:
        """Requests to put tasks.

        Parameters:
            payloads: their data.
            delay: seconds until they may be taken.

        Raises:
            ValueError: This queue has no delays.
        """

    def takes(self, count: int, timeout: int = 0) -> Requests:
        """Requests to take tasks.

        Parameters:
            count: the number of requests.
            timeout: seconds to wait for a task.
        """

    def acks(self, tasks: Sequence[bytes]) -> Requests:
        """Requests to acknowledge tasks, identified as by `tasks_in`."""

    def tasks_in(self, answers: bytes) -> list[bytes]:
        """Return identifiers of the taken tasks, in the form that `acks` needs."""

    def done_in(self, answers: bytes) -> int:
        """Count the answers, except those to takes, that report success."""
