"""Pipelined requests: a bounded number in flight, resent after a lost connection."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, NamedTuple, Self, TypeVar

from iproto_server.codec import msgpack as codec
from iproto_server.protocol import RequestType
from iproto_server.tools.client import ServerUri
from pyspark_tarantool.source.errors import SourceError, shortened
from pyspark_tarantool.source.remote.connection import Answer, Connection, LostConnectionError

logger = logging.getLogger("pyspark_tarantool.sink")

_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 10.0
"""Seconds before the first attempt to reconnect, and the maximum; each pause is twice the previous one."""

_SHOWN: Final = 200
"""The maximum length of a row in an error message, in characters."""


_BYTES_IN_FLIGHT: Final = 16 * 1024**2
"""The maximum size of all requests in flight, in bytes."""

_T = TypeVar("_T")


class _Request(NamedTuple):
    """A request without an answer yet."""

    type: RequestType
    body: bytes


class PipelinedClient:
    """Sends requests, one per row, in order, at least once: after a lost connection, unanswered requests are
    sent again, although the server may have executed them.

    Parameters:
        uri: The server.
        in_flight: The maximum number of unanswered requests.
        timeout: Seconds without data from the server while requests are unanswered.
        retries: The number of consecutive failed connections without an answer.
        sleep: Waits between attempts.

    Raises:
        SourceError: If connecting or authentication fails.
    """

    def __init__(
        self,
        uri: ServerUri,
        *,
        in_flight: int,
        timeout: float,
        retries: int,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._uri = uri
        self._in_flight = in_flight
        self._timeout = timeout
        self._retries = retries
        self._sleep = sleep
        self._failures = 0
        self._sent = 0
        self._waiting: dict[int, _Request] = {}
        self._bytes = 0
        self._connection: Connection | None = None
        try:
            self._connection = Connection(uri, timeout)
        except LostConnectionError as error:
            self._reconnect(error)

    @property
    def connection(self) -> Connection:
        """The current connection."""
        assert self._connection is not None
        return self._connection

    def ask(self, question: Callable[[Connection], _T]) -> _T:
        """Query the server before the first request is sent.

        Parameters:
            question: The query; repeated on a new connection if one is lost.

        Raises:
            SourceError: If the server is unreachable.
        """
        while True:
            try:
                return question(self.connection)
            except LostConnectionError as error:
                self._reconnect(error)

    def send(self, request_type: RequestType, body: bytes) -> None:
        """Send a request, once fewer than the limit are in flight.

        Parameters:
            request_type: Its type.
            body: A packed map, whose last value is the row.

        Raises:
            SourceError: If the server refused a request, or is unreachable.
        """
        while len(self._waiting) >= self._in_flight or self._bytes >= _BYTES_IN_FLIGHT:
            self._exchange()
        self._bytes += len(body)
        self._sent += 1
        self._waiting[self._sent] = _Request(request_type, body)
        self.connection.send(self._sent, request_type, body)

    def finish(self) -> None:
        """Wait until all requests are answered.

        Raises:
            SourceError: If the server refused a request, or is unreachable.
        """
        while self._waiting:
            self._exchange()

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _exchange(self) -> None:
        try:
            answers = self.connection.exchange(wait=True)
        except LostConnectionError as error:
            self._reconnect(error)
            return
        for answer in answers:
            request = self._waiting.pop(answer.sync, None)
            if answer.code or request is None:
                raise self._refused(answer, request)
            self._bytes -= len(request.body)
        self._failures = 0

    def _refused(self, answer: Answer, request: _Request | None) -> SourceError:
        if request is None:
            text = answer.error if answer.code else "an answer to an unknown request"
            return SourceError(f"{self._uri.address}: {text}")
        *_, row = codec.unpack(request.body).values()
        view = shortened(row, _SHOWN)
        return SourceError(
            f"{self._uri.address} refused row {answer.sync - 1}: {answer.error}; the row is {view}"
        )

    def _reconnect(self, error: LostConnectionError) -> None:
        """Reconnect, and resend unanswered requests."""
        if self._connection is not None:
            self._connection.close()
        while True:
            if self._failures >= self._retries:
                unanswered = f"; {len(self._waiting)} rows are unanswered" if self._waiting else ""
                raise SourceError(
                    f"{self._uri.address}: {error}; given up after {self._failures} more attempts{unanswered}"
                ) from None
            pause = min(_FIRST_PAUSE * 2**self._failures, _LONGEST_PAUSE)
            logger.warning("%s: %s; reconnecting in %g seconds", self._uri.address, error, pause)
            self._sleep(pause)
            self._failures += 1
            try:
                self._connection = Connection(self._uri, self._timeout)
            except LostConnectionError as again:
                error = again
                continue
            for sync, request in self._waiting.items():
                self.connection.send(sync, request.type, request.body)
            return
