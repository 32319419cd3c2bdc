"""Requests on their way to a server: a bounded number at a time, sent again when the connection was lost."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, NamedTuple, Self, TypeVar

from iproto_server.codec import msgpack as codec
from iproto_server.protocol import RequestType
from iproto_server.tools.play import ServerUri
from spark.sink.connection import Answer, Connection, LostConnectionError
from spark.sink.values import shortened
from spark.source.errors import SourceError

logger = logging.getLogger("spark.sink")

_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 10.0
"""Seconds before the first of several attempts to connect again, and before the last ones; each pause is
twice the one before."""

_SHOWN: Final = 200
"""So many characters of a row are in the message about it."""


_BYTES_IN_FLIGHT: Final = 16 * 1024**2
"""However many requests may be under way: when they have so many bytes, answers are waited for."""

_T = TypeVar("_T")


class _Request(NamedTuple):
    """A request, as long as it is not answered."""

    type: RequestType
    body: bytes


class PipelinedClient:
    """Sends requests, one for each row, in order. Each is answered at least once: what had no answer when the
    connection was lost is sent again on the next one, though the server may have carried it out.

    Parameters:
        uri: The server.
        in_flight: How many requests may wait for their answers.
        timeout: Seconds that the server may say nothing while it has something to answer.
        retries: How many times in a row a connection may be lost, or not come about, without one answer.
        sleep: How to pass the time between attempts.

    Raises:
        SourceError: If there is no connection, or the server does not let us in.
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
        """The connection, while it lasts."""
        assert self._connection is not None
        return self._connection

    def ask(self, question: Callable[[Connection], _T]) -> _T:
        """Ask the server something before the first request is sent.

        Parameters:
            question: It is asked again on another connection if one is lost.

        Raises:
            SourceError: If the server is gone.
        """
        while True:
            try:
                return question(self.connection)
            except LostConnectionError as error:
                self._reconnect(error)

    def send(self, request_type: RequestType, body: bytes) -> None:
        """Send a request, when fewer than the limit are under way.

        Parameters:
            request_type: What it asks for.
            body: A packed map, of which the last value is the row.

        Raises:
            SourceError: If the server refused a request, or is gone.
        """
        while len(self._waiting) >= self._in_flight or self._bytes >= _BYTES_IN_FLIGHT:
            self._exchange()
        self._bytes += len(body)
        self._sent += 1
        self._waiting[self._sent] = _Request(request_type, body)
        self.connection.send(self._sent, request_type, body)

    def finish(self) -> None:
        """Wait until everything is answered.

        Raises:
            SourceError: If the server refused a request, or is gone.
        """
        while self._waiting:
            self._exchange()

    def close(self) -> None:
        """End the connection."""
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
            said = answer.error if answer.code else "an answer to a request that there is not"
            return SourceError(f"{self._uri.address}: {said}")
        *_, row = codec.unpack(request.body).values()
        view = shortened(row, _SHOWN)
        return SourceError(
            f"{self._uri.address} refused row {answer.sync - 1}: {answer.error}; the row is {view}"
        )

    def _reconnect(self, error: LostConnectionError) -> None:
        """Connect again and send again what was not answered."""
        if self._connection is not None:
            self._connection.close()
        while True:
            if self._failures >= self._retries:
                unanswered = f"; {len(self._waiting)} rows are not answered" if self._waiting else ""
                raise SourceError(
                    f"{self._uri.address}: {error}; given up after {self._failures} more attempts{unanswered}"
                ) from None
            pause = min(_FIRST_PAUSE * 2**self._failures, _LONGEST_PAUSE)
            logger.warning("%s: %s; connecting again in %g seconds", self._uri.address, error, pause)
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
