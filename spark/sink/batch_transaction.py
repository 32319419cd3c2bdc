"""Writes a batch of a stream in one transaction, together with its number, so that it takes effect once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from iproto_server.codec import msgpack as codec
from iproto_server.iterator_type import IteratorType
from iproto_server.protocol import Key, RequestType
from iproto_server.tools.client import ServerUri
from pyspark_tarantool.source.errors import SourceError, shortened
from pyspark_tarantool.source.remote.connection import Connection, LostConnectionError
from pyspark_tarantool.source.remote.remote_space import find_space
from pyspark_tarantool.source.schema.definitions import SpaceDefinition

_STREAM: Final = 1
_SHOWN: Final = 200

Request = tuple[RequestType, bytes]
"""A request, and its body, whose last value is the row."""


class BatchTransaction:
    """A transaction that writes a batch, unless the server has it already; use as a context manager.

    Nothing is sent again: if the connection is lost, the outcome is unknown, and the next attempt finds out.

    Parameters:
        connection: A connection without requests in flight.
        uri: The server, for errors.
        space: The name of the space of batch numbers.
        query: The name of the query.
        batch: The number of the batch.
        in_flight: The maximum number of unanswered requests.

    Attributes:
        is_needed: Whether the server does not have the batch yet.

    Raises:
        SourceError: If the server has no interactive transactions, the space does not exist or has another
            form, or the server is unreachable.
    """

    def __init__(
        self, connection: Connection, uri: ServerUri, space: str, query: str, batch: int, in_flight: int
    ) -> None:
        self._connection = connection
        self._address = str(uri.address)
        self._query, self._batch = query, batch
        self._in_flight = in_flight
        self._waiting: dict[int, bytes] = {}
        self._sent = 0
        if not connection.has_transactions:
            version = ".".join(map(str, connection.version))
            raise SourceError(
                f"{self._address}: batches that take effect once require interactive transactions, which "
                f"this server (version {version}) does not have; operation=replace, upsert and delete may "
                "be repeated without harm"
            )
        self._space = _batches_space(connection, space)
        connection.ask(RequestType.BEGIN, {}, _STREAM)
        rows = connection.ask(
            RequestType.SELECT,
            {
                Key.SPACE_ID: self._space.id,
                Key.INDEX_ID: 0,
                Key.LIMIT: 1,
                Key.OFFSET: 0,
                Key.ITERATOR: IteratorType.EQ,
                Key.KEY: [query],
            },
            _STREAM,
        )
        self.is_needed = not rows or rows[0][1] < batch

    def run(self, requests: Iterable[Request]) -> int:
        """Send all requests and the batch's number, and commit.

        Parameters:
            requests: The requests, one per row.

        Returns:
            The number of rows.

        Raises:
            SourceError: If a request is refused, or the server becomes unreachable. Then the transaction has
                no effect; but if the connection was lost while it was committed, it may have taken effect.
        """
        for request_type, body in requests:
            while len(self._waiting) >= self._in_flight:
                self._exchange()
            self._sent += 1
            self._waiting[self._sent] = body
            self._connection.send(self._sent, request_type, body, _STREAM)
        while self._waiting:
            self._exchange()
        number = [self._query, self._batch]
        self._connection.ask(RequestType.REPLACE, {Key.SPACE_ID: self._space.id, Key.TUPLE: number}, _STREAM)
        self._connection.ask(RequestType.COMMIT, {}, _STREAM)
        return self._sent

    def _exchange(self) -> None:
        for answer in self._connection.exchange(wait=True):
            body = self._waiting.pop(answer.sync, b"")
            if answer.code:
                # The transaction ends with the connection.
                *_, row = codec.unpack(body).values() if body else (None,)
                raise SourceError(
                    f"{self._address} refused row {answer.sync - 1}: {answer.error}; the row is "
                    f"{shortened(row, _SHOWN)}; the batch has no effect"
                )


def connect(uri: ServerUri, timeout: float) -> Connection:
    """Connect without further attempts.

    Parameters:
        uri: The server.
        timeout: Seconds without data from the server while requests are unanswered.

    Raises:
        SourceError: If connecting or authentication fails.
    """
    try:
        return Connection(uri, timeout)
    except LostConnectionError as error:
        raise SourceError(f"{uri.address}: {error}") from None


def _batches_space(connection: Connection, name: str) -> SpaceDefinition:
    try:
        space = find_space(connection, name)
    except SourceError as error:
        raise SourceError(f"{error}; {_HOW_TO_CREATE}") from None
    parts = space.primary.parts
    if len(parts) != 1 or parts[0].field_no != 0 or parts[0].type.value != "string":
        raise SourceError(
            f"the primary key of space '{name}' is not its first field, a string; {_HOW_TO_CREATE}"
        )
    return space


_HOW_TO_CREATE: Final = (
    "the space of batch numbers has a string, the query, as primary key, and a number: "
    "create_space('spark_batches', {format = {{'query', 'string'}, {'batch', 'unsigned'}}}), "
    "create_index('primary')"
)
