"""CALL: calls a procedure, and encodes its result as the DATA of a response."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Sequence
from types import CodeType, FrameType
from typing import Any, Final

from iproto_server.app import Procedure, Procedures
from iproto_server.box import Waiter
from iproto_server.box.access.access_control import Privilege
from iproto_server.box.access.session import ActingAs, Session
from iproto_server.box.api.box import Box
from iproto_server.box.lua_calls.calls import RemoteCalls
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native._native import ProcedureTable
from iproto_server.protocol.constants import Key, RequestType
from iproto_server.protocol.request import Request
from iproto_server.protocol.response import encode_result, encode_tuples
from iproto_server.server.application_errors import procedure_error
from iproto_server.server.client_connection import ClientConnection
from iproto_server.server.requests.answer import Answer, Handler, Pending

RunCoroutine = Callable[[Session, Coroutine[Any, Any, object]], Waiter]
"""Starts an async procedure's coroutine as a session, and returns a waiter for its result."""

_LUA_NAMES_MAX: Final = 10_000
"""The maximum number of functions of Lua that are known by name."""

OwnFunction = Callable[[list[Any]], object]
"""A function of the server that clients can call; it gets the arguments of the call."""

# A plain integer: the operators of an IntFlag cost more than the rest of the check.
_EXECUTE_USAGE = int(Privilege.EXECUTE | Privilege.USAGE)
_FUNCTION_NAME, _TUPLE, _EXPR = int(Key.FUNCTION_NAME), int(Key.TUPLE), int(Key.EXPR)


class Calls(ProcedureTable):
    """Handles calls.

    Parameters:
        box: the database.
        procedures: the applications' procedures.
        run_coroutine: starts async procedures.

    Attributes:
        handlers: the handlers of CALL and CALL_16, by request type.
        own: the server's own functions by name, except those under `box.`.
        lua_procedure: finds functions of Lua by name.
        evaluate: evaluates a text of Lua with arguments; None: there is no Lua.
    """

    __slots__ = (
        "_box",
        "_catalog",
        "_lua_names",
        "_procedures",
        "_remote_calls",
        "_run_coroutine",
        "_setuid",
        "_transactions",
        "evaluate",
        "handlers",
        "lua_procedure",
        "own",
    )

    def __init__(self, box: Box, procedures: Procedures, run_coroutine: RunCoroutine) -> None:
        self._box = box
        self._transactions = box.transactions
        self._catalog = box.catalog
        self._setuid = box.catalog.users.setuid
        self.own: dict[str, OwnFunction] = {}
        self.serve(procedures)
        self.evaluate: Callable[..., object] | None = None
        self.lua_procedure: Callable[[str], Procedure | None] = lambda name: None
        self._run_coroutine = run_coroutine
        self._remote_calls = RemoteCalls(box)
        self.handlers: dict[int, Handler] = {
            RequestType.CALL: self._call,
            RequestType.CALL_16: self._call_16,
            RequestType.EVAL: self._eval,
        }

    def serve(self, procedures: Procedures) -> None:
        """Let clients call these procedures only; running calls continue."""
        self._procedures = procedures
        self._by_name = procedures.by_name
        self._lua_names: set[str] = set()

    def _call(self, connection: ClientConnection, request: Request) -> Answer:
        body = request.body
        result = self.invoke(connection.session, body[_FUNCTION_NAME], body[_TUPLE])
        if isinstance(result, Waiter):
            return self.pending(request.sync, result)
        return encode_result(request.sync, self._catalog.schema_version, result)

    def _eval(self, connection: ClientConnection, request: Request) -> Answer:
        """Evaluate a text of Lua. Raises BoxError UNSUPPORTED without Lua."""
        body = request.body
        session = connection.session
        if self.evaluate is None:
            raise BoxError(ErrorCode.UNSUPPORTED, "This server", "EVAL requests")
        self._box.access.check_eval(session.credentials)
        arguments = body[_TUPLE]
        if isinstance(arguments, bytes):
            arguments = unpack_arguments(arguments)
        run = self._box.run_as if self._transactions.interactive is None else self._box.run_inside
        result = run(session, self.evaluate, self._box, body[_EXPR], *arguments)
        if isinstance(result, Waiter):
            return self.pending(request.sync, result)
        return encode_result(request.sync, self._catalog.schema_version, result)

    def pending(self, sync: int, waiter: Waiter) -> Pending:
        """Return the deferred answer to a CALL.

        Parameters:
            sync: the request's `sync`.
            waiter: the waiter that its procedure has returned.
        """
        return Pending(waiter, lambda waiter: self._waited(sync, waiter, encode_result))

    def _call_16(self, connection: ClientConnection, request: Request) -> Answer:
        body = request.body
        result = self.invoke(connection.session, body[_FUNCTION_NAME], body[_TUPLE])
        if isinstance(result, Waiter):
            return Pending(result, lambda waiter: self._waited(request.sync, waiter, encode_result_16))
        return encode_result_16(request.sync, self._catalog.schema_version, result)

    def running_procedure(self, frame: FrameType | None) -> str | None:
        """Return the name of the procedure that runs; None if it is not known, or one of several.

        Parameters:
            frame: the innermost frame.
        """
        names: dict[CodeType, set[str]] = {}
        for name, procedure in list(self._by_name.items()):
            code = getattr(inspect.unwrap(procedure.function), "__code__", None)
            if code is not None:
                names.setdefault(code, set()).add(name)
        while frame is not None:
            found = names.get(frame.f_code, set())
            if len(found) == 1:
                return found.pop()
            frame = frame.f_back
        return None

    def invoke(self, session: Session, name: Any, arguments: Any) -> object:
        """Run a CALL as a session.

        Parameters:
            session: the caller's session.
            name: name of the procedure.
            arguments: a list, or a packed array, which is unpacked only if the session may make the call.

        Returns: the procedure's result, or a Waiter for it.

        Raises:
            BoxError: the call is not allowed, or the procedure failed.
        """
        procedure = self._by_name.get(name)
        user = session.credentials
        if user.universe & _EXECUTE_USAGE != _EXECUTE_USAGE:
            function = self._catalog.users.functions.get(name)
            self._box.access.check_call(user, name, function)
        if procedure is None and not name.startswith("box.") and name not in self.own:
            procedure = self._procedures.find(name) or self._find_in_lua(name)
        if isinstance(arguments, bytes):
            arguments = unpack_arguments(arguments, 0 if procedure is None else procedure.packed)
        owner = self._setuid.get(name) if self._setuid else None
        if owner is None:
            return self._perform(session, name, procedure, arguments)
        with ActingAs(session, self._box.access.by_id(owner)):
            return self._perform(session, name, procedure, arguments)

    def _find_in_lua(self, name: str) -> Procedure | None:
        """Find a function of Lua, and let compiled code find it next time."""
        procedure = self.lua_procedure(name)
        if procedure is not None:
            if len(self._lua_names) >= _LUA_NAMES_MAX:
                for other in self._lua_names:
                    self._by_name.pop(other, None)
                self._lua_names.clear()
            self._by_name[name] = procedure
            self._lua_names.add(name)
        return procedure

    def check(self, session: Session, name: Any) -> None:
        """Raise BoxError ACCESS_DENIED unless the session's user may call a function of that name."""
        self._box.access.check_call(session.credentials, name, self._catalog.users.functions.get(name))

    def _perform(
        self, session: Session, name: str, procedure: Procedure | None, arguments: list[Any]
    ) -> object:
        """Call a procedure or a function of the server with the session's current rights."""
        if procedure is None and name.startswith("box."):
            try:
                return self._run(session, name, self._remote_calls.find(name), arguments)
            except BoxError as error:
                if error.code != ErrorCode.NO_SUCH_PROC:
                    raise
                procedure = self._find_in_lua(name)
                if procedure is None:
                    raise
        if procedure is None:
            own = self.own.get(name)
            if own is None:
                raise BoxError(ErrorCode.NO_SUCH_PROC, name)
            return self._run(session, name, own, arguments)
        try:
            if self._transactions.interactive is not None:
                if procedure.is_async:
                    raise BoxError(ErrorCode.UNSUPPORTED, "An interactive transaction", "async procedures")
                return self._box.run_inside(session, procedure.function, self._box, *arguments)
            if procedure.is_autonomous:
                return self._box.run_as(session, procedure.function, self._box, *arguments)
            if procedure.is_async:
                waiter = self._run_coroutine(session, procedure.function(self._box, *arguments))
                waiter.procedure = name
                return waiter
            return self._box.run(session, procedure.function, self._box, *arguments)
        except BoxError:
            raise
        except BaseException as error:
            raise call_error(name, procedure, arguments, error, session) from error

    def _run(self, session: Session, name: str, function: OwnFunction, arguments: list[Any]) -> object:
        run = self._box.run if self._transactions.interactive is None else self._box.run_inside
        try:
            return run(session, function, arguments)
        except BoxError:
            raise
        except BaseException as error:
            # The functions check their arguments: the error is a trigger's, or a fault of the server.
            raise procedure_error(name, error, session) from error

    def _waited(self, sync: int, waiter: Waiter, encode: Callable[[int, int, object], bytes]) -> bytes:
        """Encode the response of a waiting call, or raise its error."""
        if waiter.error is not None:
            raise waiter.error
        return encode(sync, self._catalog.schema_version, waiter.result)


def unpack_arguments(packed: bytes, kept: int = 0) -> list[Any]:
    """Unpack the arguments of a call.

    Parameters:
        packed: a well-formed array.
        kept: bits of the arguments that stay packed.

    Returns:
        The arguments; those that stay packed are `Raw`.

    Raises:
        BoxError: INVALID_MSGPACK, they are nested deeper than values may be.
    """
    try:
        if kept:
            return [
                codec.Raw(raw) if kept >> number & 1 else codec.unpack(raw)
                for number, raw in enumerate(codec.split_array(packed))
            ]
        arguments: list[Any] = codec.unpack(packed)
    except BoxError:
        raise BoxError(ErrorCode.INVALID_MSGPACK, "packet body") from None
    return arguments


def call_error(
    name: str, procedure: Procedure, arguments: list[Any], error: BaseException, session: Session
) -> BoxError:
    """Return the error for a client whose procedure has raised an exception.

    Parameters:
        name: the name in the call.
        procedure: the procedure.
        arguments: its arguments.
        error: the exception.
        session: the caller's session.
    """
    if isinstance(error, BoxError):
        return error
    misfit = procedure.misfit(arguments) if isinstance(error, TypeError) else None
    if misfit is not None:
        return BoxError.procedure(f"{name}: {misfit}")
    return procedure_error(name, error, session)


def encode_result_16(sync: int, schema_version: int, result: object) -> bytes:
    """Encode the response to a CALL_16, whose values are all tuples.

    Source: Tarantool, "IPROTO_CALL_16": an array of arrays is a list of tuples, any other value becomes a
    tuple of one field.

    Parameters:
        sync: The request's `sync`.
        schema_version: The current schema version.
        result: What the procedure has returned.
    """
    return encode_tuples(sync, schema_version, _pack_tuples(result))


def _pack_tuples(result: object) -> Sequence[bytes]:
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
