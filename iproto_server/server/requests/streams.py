"""Streams: requests of a connection that run one after another, and their transactions.

Source: Tarantool reference, "Streams" in the binary protocol; manual, "Streams and interactive transactions".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, TypeVar

from iproto_server.box.api.lua_arguments import lua_value
from iproto_server.box.lua_calls.transactions import BeginOptions
from iproto_server.box.txn.interactive import InteractiveTransactions
from iproto_server.box.txn.interactive_transaction import InteractiveTransaction
from iproto_server.box.txn.transaction import TransactionManager
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.protocol.constants import Key, RequestType
from iproto_server.protocol.request import Request
from iproto_server.protocol.response import encode_ok
from iproto_server.server.requests.answer import Answer, Handler

Result = TypeVar("Result")

_BEGIN, _COMMIT, _ROLLBACK = int(RequestType.BEGIN), int(RequestType.COMMIT), int(RequestType.ROLLBACK)
ONLY_IN_STREAMS: Final = (RequestType.BEGIN, RequestType.COMMIT, RequestType.ROLLBACK)
_NEVER_IN_STREAMS: Final = frozenset((RequestType.AUTH, *(kind for kind in RequestType if kind > 19))) - {
    RequestType.PING
}
_STATEMENTS: Final = frozenset(
    (
        RequestType.SELECT,
        RequestType.INSERT,
        RequestType.REPLACE,
        RequestType.UPDATE,
        RequestType.DELETE,
        RequestType.UPSERT,
        RequestType.CALL,
        RequestType.CALL_16,
    )
)
"""Request types that belong to the stream's transaction."""
_CALLS: Final = (RequestType.CALL, RequestType.CALL_16)
_FUNCTION_NAME, _TUPLE = int(Key.FUNCTION_NAME), int(Key.TUPLE)
_ENDS: Final = {"box.commit": _COMMIT, "box.rollback": _ROLLBACK}


class Stream:
    """The state of one stream.

    Attributes:
        transaction: its open transaction, if any.
        is_busy: whether a call of it is waiting.
        pending: the postponed requests after that call.
    """

    __slots__ = ("is_busy", "pending", "transaction")

    def __init__(self) -> None:
        self.transaction: InteractiveTransaction | None = None
        self.is_busy = False
        self.pending: deque[Request] = deque()

    @property
    def is_idle(self) -> bool:
        """Whether the stream has no state."""
        return self.transaction is None and not self.is_busy and not self.pending


class Streams:
    """The streams of one connection.

    Parameters:
        transactions: the transaction manager.
        interactive: the open interactive transactions.
    """

    __slots__ = ("_interactive", "_streams", "_transactions")

    def __init__(self, transactions: TransactionManager, interactive: InteractiveTransactions) -> None:
        self._transactions = transactions
        self._interactive = interactive
        self._streams: dict[int, Stream] = {}

    @property
    def waiting(self) -> int:
        """The number of postponed requests."""
        return sum(len(stream.pending) for stream in self._streams.values())

    def postpone(self, request: Request) -> bool:
        """Queue a request behind a waiting call of its stream; return False if there is none."""
        stream = self._streams.get(request.stream_id)
        if stream is None or not stream.is_busy:
            return False
        stream.pending.append(request)
        return True

    def carry_out(
        self, request: Request, schema_version: int, handle: Callable[[], Result]
    ) -> Result | bytes:
        """Answer a request of a stream.

        Parameters:
            request: the request.
            schema_version: the schema version, for the answer.
            handle: handles requests other than BEGIN, COMMIT and ROLLBACK.

        Raises:
            BoxError: UNABLE_TO_PROCESS_IN_STREAM (229), or the error of the request.
        """
        kind = request.type
        if kind in _NEVER_IN_STREAMS:
            raise BoxError(ErrorCode.UNABLE_TO_PROCESS_IN_STREAM, RequestType(kind).name)
        stream = self._streams.get(request.stream_id)
        if stream is None:
            stream = Stream()
        try:
            if kind == _BEGIN:
                self._begin(stream, request)
            elif kind == _COMMIT:
                self._commit(stream)
            elif kind == _ROLLBACK:
                self._roll_back(stream)
            elif stream.transaction is not None and kind in _STATEMENTS:
                return self._in_transaction(stream, stream.transaction, handle)
            else:
                if self._transactions.take_out is not None:
                    self._transactions.take_out()
                return handle()
        finally:
            self._keep(request.stream_id, stream)
        return encode_ok(request.sync, schema_version)

    def _keep(self, stream_id: int, stream: Stream) -> None:
        if stream.is_idle:
            self._streams.pop(stream_id, None)
        else:
            self._streams[stream_id] = stream

    def _begin(self, stream: Stream, request: Request) -> None:
        if stream.transaction is not None:
            raise BoxError(ErrorCode.ACTIVE_TRANSACTION)
        timeout = request.body.get(Key.TIMEOUT, 0.0)
        isolation = request.body.get(Key.TXN_ISOLATION, 0)
        assert isinstance(timeout, float)
        assert isinstance(isolation, int)
        stream.transaction = self._interactive.begin(timeout, isolation)

    def _commit(self, stream: Stream) -> None:
        transaction, stream.transaction = stream.transaction, None
        if transaction is not None:
            self._interactive.commit(transaction)
            self._await_dependencies(transaction)

    def _roll_back(self, stream: Stream) -> None:
        transaction, stream.transaction = stream.transaction, None
        if transaction is not None:
            self._interactive.roll_back(transaction)

    def _in_transaction(
        self, stream: Stream, transaction: InteractiveTransaction, handle: Callable[[], Result]
    ) -> Result:
        self._interactive.resume(transaction)
        try:
            answer = handle()
        finally:
            stream.transaction = self._interactive.suspend()
        self._await_dependencies(transaction)
        return answer

    def _await_dependencies(self, transaction: InteractiveTransaction) -> None:
        """Hold the answer until its possible dependencies are in the log, if the isolation level says so."""
        transactions = self._transactions
        if transaction.is_confirmed and (transactions.unwritten or transactions.is_writing):
            transactions.has_logged = True

    def begin_to_wait(self, stream_id: int) -> None:
        """Postpone the stream's next requests, because its call waits."""
        stream = self._streams.setdefault(stream_id, Stream())
        stream.is_busy = True

    def end_wait(self, stream_id: int) -> None:
        """Let the stream's requests run again, because its call has been answered."""
        stream = self._streams.get(stream_id)
        if stream is not None:
            stream.is_busy = False

    def next_request(self, stream_id: int) -> Request | None:
        """Return the postponed request that is due, if any."""
        stream = self._streams.get(stream_id)
        if stream is None or stream.is_busy:
            return None
        if stream.pending:
            return stream.pending.popleft()
        self._keep(stream_id, stream)
        return None

    def close(self) -> int:
        """Roll back all transactions of a closed connection.

        Returns: the number of postponed requests.
        """
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            self._roll_back(stream)
        return sum(len(stream.pending) for stream in streams.values())


def called_transaction_request(request: Request) -> Request | None:
    """Return the BEGIN, COMMIT or ROLLBACK that a call in a stream stands for; None for other requests.

    Raises:
        BoxError: ILLEGAL_PARAMS, the options of `box.begin` are wrong.
    """
    if request.type not in _CALLS:
        return None
    name = request.body[_FUNCTION_NAME]
    body: dict[int, object] = {}
    if name == "box.begin":
        kind = _BEGIN
        packed = request.body[_TUPLE]
        assert isinstance(packed, bytes)
        timeout, isolation = BeginOptions.of(lua_value(codec.unpack(packed)))
        body = {int(Key.TIMEOUT): timeout, int(Key.TXN_ISOLATION): int(isolation)}
    else:
        ending = _ENDS.get(name) if isinstance(name, str) else None
        if ending is None:
            return None
        kind = ending
    return Request(kind, request.sync, request.schema_version, request.stream_id, body)


def out_of_stream(kind: RequestType) -> Handler:
    """Return a handler that refuses a request type outside streams."""

    def refuse(connection: object, request: Request) -> Answer:
        raise BoxError(ErrorCode.UNABLE_TO_PROCESS_OUT_OF_STREAM, kind.name)

    return refuse
