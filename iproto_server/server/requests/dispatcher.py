"""Dispatches requests to their handlers, the only code that turns requests into calls on the box."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from iproto_server.app import Procedure, Procedures
from iproto_server.box import Waiter
from iproto_server.box.api.box import Box
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native._native import FastPath
from iproto_server.protocol.constants import Key, RequestType
from iproto_server.protocol.request import Request, RequestError, decode_request
from iproto_server.protocol.response import encode_error, encode_id, encode_ok, encode_tuples
from iproto_server.server.application_errors import procedure_error, waited_error
from iproto_server.server.limits.unsent_limit import NoRoomError
from iproto_server.server.requests.answer import Handler
from iproto_server.server.requests.authentication import Authentication
from iproto_server.server.requests.call import Calls, RunCoroutine, call_error
from iproto_server.server.requests.dml import RowRequests
from iproto_server.server.requests.streams import (
    ONLY_IN_STREAMS,
    Streams,
    called_transaction_request,
    out_of_stream,
)
from iproto_server.server.requests.watch import WatchRequests

if TYPE_CHECKING:
    from iproto_server.server.client_connection import ClientConnection, RequestStreams
    from iproto_server.server.limits.rate_limited_log import RateLimitedLog

_FUNCTION_NAME = int(Key.FUNCTION_NAME)


class Dispatcher:
    """Handles requests.

    Parameters:
        box: the database.
        procedures: the applications' procedures.
        features: the protocol features announced in the answer to ID.
        protocol_version: the protocol version announced there.
        run_coroutine: starts async procedures.
        log: logs events that clients can cause in any number.

    Attributes:
        authentication: the handler of AUTH.
        calls: the handlers of calls.
        handle: answers one request now or, if a call waits, later: (connection, frame). The answer goes to
            the connection's `reply`; the frame is the request's header and body.
        errors: number of error responses.
        postponed: number of requests that waited in the queues of streams.
    """

    def __init__(
        self,
        box: Box,
        procedures: Procedures,
        features: tuple[int, ...],
        protocol_version: int,
        run_coroutine: RunCoroutine,
        log: RateLimitedLog,
    ) -> None:
        self._box = box
        self._transactions = box.transactions
        self._catalog = box.catalog
        self._features = features
        self._protocol_version = protocol_version
        self.calls = Calls(box, procedures, run_coroutine)
        self._requests: Counter[int] = Counter()
        self.errors = 0
        self.postponed = 0
        self.authentication = Authentication(box, self.failed, log)
        self._handlers: dict[int, Handler] = {
            **RowRequests(box).handlers,
            **self.calls.handlers,
            RequestType.AUTH: self.authentication.handle,
            RequestType.PING: self._nothing,
            RequestType.NOP: self._nothing,
            RequestType.ID: self._id,
            **WatchRequests(box.events, box.catalog).handlers,
            **{kind: out_of_stream(kind) for kind in ONLY_IN_STREAMS},
        }
        setuid = box.catalog.users.setuid
        self._fast_path = FastPath(
            self._answer, self, self.calls, setuid, box, box.transactions, box.session, box.catalog
        )
        self.handle: Callable[[ClientConnection, bytes], None] = self._fast_path

    @property
    def requests(self) -> Counter[int]:
        """Number of requests by type."""
        self._requests.update(self._fast_path.take_counts())
        return self._requests

    def _answer(self, connection: ClientConnection, frame: bytes) -> None:
        """Answer one request; the implementation of `handle`."""
        sync = 0
        facade = self._box.session
        transactions = self._transactions
        transactions.has_logged = False
        try:
            request = decode_request(frame)
            sync = request.sync
            kind = request.type
            self._requests[kind] += 1
            handler = self._handlers.get(kind)
            if handler is None:
                raise refusal(kind)
            version = request.schema_version
            if version and version != self._catalog.schema_version:
                # Tarantool writes the request's as a signed number.
                signed = version - (version >> 31 << 32)
                raise BoxError(ErrorCode.WRONG_SCHEMA_VERSION, signed, self._catalog.schema_version)
            session = connection.session
            session.sync = sync
            facade.current = session
            if request.stream_id:
                self._in_stream(connection, request, handler)
                return
            if transactions.take_out is not None:
                transactions.take_out()
            answer = handler(connection, request)
        except RequestError as error:
            answer = self._failed(error.sync, error)
        except NoRoomError:
            self._requests[kind] -= 1
            connection.put_back(frame)
            return
        except BaseException as error:  # noqa: BLE001  # every request gets an answer
            answer = self.failed(sync, error)
        finally:
            facade.current = facade.background
        if isinstance(answer, bytes):
            connection.reply(answer)
        elif answer is not None:
            connection.wait_for(answer.waiter, self._responder(sync, answer.respond))

    # -- called by compiled code --

    def failed(self, sync: int, error: BaseException, who: str = "a request") -> bytes:
        """Encode the response to a failed request.

        Parameters:
            sync: the request's `sync`.
            error: the exception.
            who: the code that raised it, for the log.
        """
        if not isinstance(error, BoxError):
            error = procedure_error(who, error, self._box.session.current)
        return self._failed(sync, error)

    def raised(self, sync: int, procedure: Procedure, arguments: list[Any], error: BaseException) -> bytes:
        """Encode the response to a call whose procedure has raised an exception."""
        session = self._box.session.current
        return self._failed(sync, call_error(procedure.name, procedure, arguments, error, session))

    def wait(self, connection: ClientConnection, sync: int, waiter: Waiter) -> None:
        """Answer a call when its waiter is done."""
        connection.wait_for(waiter, self._responder(sync, self.calls.pending(sync, waiter).respond))

    def _in_stream(self, connection: ClientConnection, request: Request, handler: Handler) -> None:
        """Answer a request of a stream now, or after a waiting call of the stream."""
        streams = connection.streams
        if streams is None:
            streams = connection.streams = Streams(self._transactions, self._box.interactive)
        if streams.postpone(request):
            self.postponed += 1
            connection.postponed()
            return
        version = self._catalog.schema_version
        called = called_transaction_request(request)
        if called is not None:
            self.calls.check(connection.session, request.body[_FUNCTION_NAME])
            streams.carry_out(called, version, lambda: None)
            connection.reply(encode_tuples(request.sync, self._catalog.schema_version, ()))
            return
        answer = streams.carry_out(request, version, lambda: handler(connection, request))
        if isinstance(answer, bytes):
            connection.reply(answer)
        elif answer is not None:
            streams.begin_to_wait(request.stream_id)
            connection.wait_for(
                answer.waiter,
                self._responder(request.sync, answer.respond),
                lambda: self._go_on(connection, streams, request.stream_id),
            )

    def _go_on(self, connection: ClientConnection, streams: RequestStreams, stream_id: int) -> None:
        """Handle the postponed requests of a stream, because its call has been answered."""
        facade = self._box.session
        session = connection.session
        streams.end_wait(stream_id)
        while (request := streams.next_request(stream_id)) is not None:
            connection.taken_up()
            self._transactions.has_logged = False
            facade.current = session
            session.sync = request.sync
            try:
                try:
                    self._in_stream(connection, request, self._handlers[request.type])
                except NoRoomError:
                    # The frame is not kept, and later requests may have run, so it cannot wait.
                    connection.take_room()
                    self._in_stream(connection, request, self._handlers[request.type])
            except BoxError as error:
                connection.reply(self._failed(request.sync, error))
            except BaseException as error:  # noqa: BLE001  # the same as in `handle`
                connection.reply(self._failed(request.sync, procedure_error("a request", error, session)))
            finally:
                facade.current = facade.background

    def _responder(self, sync: int, respond: Callable[[Waiter], bytes]) -> Callable[[Waiter], bytes]:
        """Return a function that encodes the response of a waiting call, or its error."""

        def respond_or_fail(waiter: Waiter) -> bytes:
            try:
                return respond(waiter)
            except BoxError as error:
                return self._failed(sync, error)
            except BaseException as error:  # noqa: BLE001  # the same as in `handle`
                return self._failed(sync, waited_error(waiter, error))

        return respond_or_fail

    def _failed(self, sync: int, error: BoxError) -> bytes:
        self.errors += 1
        return encode_error(sync, self._catalog.schema_version, error)

    # -- other handlers --

    def _nothing(self, connection: ClientConnection, request: Request) -> bytes:
        return encode_ok(request.sync, self._catalog.schema_version)

    def _id(self, connection: ClientConnection, request: Request) -> bytes:
        return encode_id(
            request.sync,
            self._catalog.schema_version,
            self._protocol_version,
            self._features,
            self._box.access.auth_type,
        )


def refusal(kind: int) -> BoxError:
    """Return the error for an unsupported or unknown request type."""
    try:
        name = RequestType(kind).name
    except ValueError:
        return BoxError(ErrorCode.UNKNOWN_REQUEST_TYPE, kind)
    return BoxError(ErrorCode.UNSUPPORTED, "This server", f"{name} requests")
