"""CALL: a request becomes a call of a procedure, and what that returns the DATA of a response."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from iproto_server.app import Procedure, Procedures
from iproto_server.box import Waiter
from iproto_server.box.access.access_control import Privilege
from iproto_server.box.access.session import ActingAs, Session
from iproto_server.box.api.box import Box
from iproto_server.box.lua_calls.calls import RemoteCalls
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native import twin
from iproto_server.protocol.constants import Key, RequestType
from iproto_server.protocol.request import Request
from iproto_server.protocol.response import encode_tuples
from iproto_server.server.application_errors import procedure_error
from iproto_server.server.client_connection import ClientConnection
from iproto_server.server.requests.answer import Answer, Handler, Pending

RunCoroutine = Callable[[Session, Coroutine[Any, Any, object]], Waiter]
"""Starts an async procedure's coroutine as a session and answers a waiter for its result."""

OwnFunction = Callable[[list[Any]], object]
"""A function that the server itself has for clients, of the arguments of the call."""

# A plain integer: the operators of an IntFlag cost more than the rest of the check.
_EXECUTE_USAGE = int(Privilege.EXECUTE | Privilege.USAGE)
_FUNCTION_NAME, _TUPLE = int(Key.FUNCTION_NAME), int(Key.TUPLE)


class Calls:
    """Carries out calls.

    Parameters:
        box: the database.
        procedures: the applications' procedures.
        run_coroutine: starts those that are async.

    Attributes:
        handlers: what carries out CALL and CALL_16, by the type of the request.
        own: the server's own functions by name, those under `box.` apart.
    """

    def __init__(self, box: Box, procedures: Procedures, run_coroutine: RunCoroutine) -> None:
        self._box = box
        self._transactions = box.transactions
        self._catalog = box.catalog
        self._setuid = box.catalog.users.setuid
        self.own: dict[str, OwnFunction] = {}
        self.serve(procedures)
        self._run_coroutine = run_coroutine
        self._remote_calls = RemoteCalls(box)
        self.handlers: dict[int, Handler] = {
            RequestType.CALL: self._call,
            RequestType.CALL_16: self._call_16,
        }

    def serve(self, procedures: Procedures) -> None:
        """Let clients call these procedures from now on, and no others. Calls that are running go on."""
        self._procedures = procedures
        self._by_name = procedures.by_name

    def _call(self, connection: ClientConnection, request: Request) -> Answer:
        body = request.body
        result = self.invoke(connection.session, body[_FUNCTION_NAME], body[_TUPLE])
        if isinstance(result, Waiter):
            return self.pending(request.sync, result)
        return encode_result(request.sync, self._catalog.schema_version, result)

    def pending(self, sync: int, waiter: Waiter) -> Pending:
        """The answer to a CALL that waits.

        Parameters:
            sync: the request's own number.
            waiter: what its procedure has returned.
        """
        return Pending(waiter, lambda waiter: self._waited(sync, waiter, encode_values))

    def _call_16(self, connection: ClientConnection, request: Request) -> Answer:
        body = request.body
        result = self.invoke(connection.session, body[_FUNCTION_NAME], body[_TUPLE])
        if isinstance(result, Waiter):
            return Pending(result, lambda waiter: self._waited(request.sync, waiter, encode_values_16))
        return encode_tuples(request.sync, self._catalog.schema_version, encode_values_16(result))

    def invoke(self, session: Session, name: Any, arguments: Any) -> object:
        """Carry out a CALL as a session.

        Parameters:
            session: the caller.
            name: the name of what is called.
            arguments: a list, or a packed array, which is unpacked only when the session may make the call.

        Returns: what the procedure returned; a Waiter for what it will return.

        Raises:
            BoxError: it may not be called, or what it raised.
        """
        procedure = self._by_name.get(name)
        user = session.credentials
        if user.universe & _EXECUTE_USAGE != _EXECUTE_USAGE:
            function = self._catalog.users.functions.get(name)
            self._box.access.check_call(user, name, function)
        if isinstance(arguments, bytes):
            arguments = unpack_arguments(arguments)
        owner = self._setuid.get(name) if self._setuid else None
        if owner is None:
            return self._perform(session, name, procedure, arguments)
        with ActingAs(session, self._box.access.by_id(owner)):
            return self._perform(session, name, procedure, arguments)

    def check(self, session: Session, name: Any) -> None:
        """Raise BoxError ACCESS_DENIED unless the session's user may call a function of that name."""
        self._box.access.check_call(session.credentials, name, self._catalog.users.functions.get(name))

    def _perform(
        self, session: Session, name: str, procedure: Procedure | None, arguments: list[Any]
    ) -> object:
        """Call a procedure, or a function of the server's, with the rights that the session has now."""
        if procedure is None:
            if name.startswith("box."):
                return self._run(session, name, self._remote_calls.find(name), arguments)
            own = self.own.get(name)
            if own is not None:
                return self._run(session, name, own, arguments)
            procedure = self._procedures.find(name)
            if procedure is None:
                raise BoxError(ErrorCode.NO_SUCH_PROC, name)
        try:
            if self._transactions.interactive is not None:
                if procedure.is_async:
                    raise BoxError(ErrorCode.UNSUPPORTED, "An interactive transaction", "async procedures")
                return self._box.run_inside(session, procedure.function, self._box, *arguments)
            if procedure.is_async:
                return self._run_coroutine(session, procedure.function(self._box, *arguments))
            return self._box.run(session, procedure.function, self._box, *arguments)
        except BoxError:
            raise
        except BaseException as error:
            raise call_error(name, procedure, arguments, error) from error

    def _run(self, session: Session, name: str, function: OwnFunction, arguments: list[Any]) -> object:
        run = self._box.run if self._transactions.interactive is None else self._box.run_inside
        try:
            return run(session, function, arguments)
        except BoxError:
            raise
        except BaseException as error:
            # The functions refuse wrong arguments themselves: this is a trigger's, or a fault of ours.
            raise procedure_error(name, error) from error

    def _waited(self, sync: int, waiter: Waiter, encode: Callable[[object], Sequence[bytes]]) -> bytes:
        """The response for a call that has waited; raises what it ends in."""
        if waiter.error is not None:
            raise waiter.error
        return encode_tuples(sync, self._catalog.schema_version, encode(waiter.result))


def unpack_arguments(packed: bytes) -> list[Any]:
    """The arguments of a call.

    Parameters:
        packed: a well-formed array.

    Raises:
        BoxError: INVALID_MSGPACK, they are nested deeper than values may be.
    """
    try:
        arguments: list[Any] = codec.unpack(packed)
    except BoxError:
        raise BoxError(ErrorCode.INVALID_MSGPACK, "packet body") from None
    return arguments


def call_error(name: str, procedure: Procedure, arguments: list[Any], error: BaseException) -> BoxError:
    """What a client is told when a procedure has raised something.

    Parameters:
        name: what the client has called.
        procedure: what was called.
        arguments: what it was called with.
        error: what it has raised.
    """
    if isinstance(error, BoxError):
        return error
    misfit = procedure.misfit(arguments) if isinstance(error, TypeError) else None
    return procedure_error(name, error) if misfit is None else BoxError.procedure(f"{name}: {misfit}")


@twin
def encode_result(sync: int, schema_version: int, result: object) -> bytes:
    """The response to a CALL.

    Parameters:
        sync: the request's own number.
        schema_version: the current one.
        result: what the procedure returned.
    """
    return encode_tuples(sync, schema_version, encode_values(result))


def encode_values(result: object) -> Sequence[bytes]:
    """The DATA of a CALL: what the procedure returned, value by value."""
    if result is None:
        return ()
    if isinstance(result, tuple):
        return [codec.pack(value) for value in result]
    return (codec.pack(result),)


def encode_values_16(result: object) -> Sequence[bytes]:
    """The DATA of a CALL_16: what was returned as tuples.

    Source: Tarantool, "IPROTO_CALL_16": an array of arrays is taken as the tuples, any other value becomes a
    tuple of one field.
    """
    values = [] if result is None else list(result) if isinstance(result, tuple) else [result]
    if len(values) == 1 and isinstance(values[0], list) and values[0]:
        inner = [codec.pack(value) for value in values[0]]
        if all(is_array(raw) for raw in inner):
            return inner
    packed = [codec.pack(value) for value in values]
    return [raw if is_array(raw) else b"\x91" + raw for raw in packed]


def is_array(raw: bytes) -> bool:
    """Whether a packed value is an array."""
    return raw[0] & 0xF0 == 0x90 or raw[0] in (0xDC, 0xDD)
