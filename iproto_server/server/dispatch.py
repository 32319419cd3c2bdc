"""The one place where a request becomes a call on the box, and its result a response."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from iproto_server import codec
from iproto_server.app import Procedure
from iproto_server.box import Tuple, Waiter
from iproto_server.box.access import GUEST, Privilege
from iproto_server.box.box import Box
from iproto_server.box.memtx import MemtxSpace
from iproto_server.box.remote_calls import RemoteCalls
from iproto_server.box.session import Session
from iproto_server.box.update import parse_update
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.protocol import auth
from iproto_server.protocol.constants import IteratorType, Key, RequestType
from iproto_server.protocol.request import Request, RequestError, decode_request
from iproto_server.protocol.response import encode_data, encode_error, encode_id, encode_ok, encode_tuples

if TYPE_CHECKING:
    from iproto_server.server.connection import Connection

logger = logging.getLogger("iproto_server.dispatch")

Body = dict[int, Any]
# Plain integers: the operators of an IntFlag cost more than the rest of the check.
_EXECUTE_USAGE = int(Privilege.EXECUTE | Privilege.USAGE)
_READ_USAGE = int(Privilege.READ | Privilege.USAGE)
_WRITE_USAGE = int(Privilege.WRITE | Privilege.USAGE)

_SPACE_ID, _INDEX_ID = int(Key.SPACE_ID), int(Key.INDEX_ID)
_LIMIT, _OFFSET, _ITERATOR, _INDEX_BASE = (
    int(Key.LIMIT),
    int(Key.OFFSET),
    int(Key.ITERATOR),
    int(Key.INDEX_BASE),
)
_KEY, _TUPLE, _OPS = int(Key.KEY), int(Key.TUPLE), int(Key.OPS)
_FUNCTION_NAME, _USER_NAME = int(Key.FUNCTION_NAME), int(Key.USER_NAME)
_SPACE_NAME, _INDEX_NAME = int(Key.SPACE_NAME), int(Key.INDEX_NAME)
_EMPTY = b"\x90"
_LAST_ITERATOR = int(max(IteratorType))


class Dispatcher:
    """Carries out requests.

    Parameters:
        box: the database.
        procedures: the applications' procedures by name.
        features: the protocol features announced in the answer to ID.
        protocol_version: the protocol version announced there.
        run_coroutine: starts an async procedure's coroutine as a session and answers a waiter for its result.
    """

    def __init__(
        self,
        box: Box,
        procedures: dict[str, Procedure],
        features: tuple[int, ...],
        protocol_version: int,
        run_coroutine: Callable[[Session, Coroutine[Any, Any, object]], Waiter],
    ) -> None:
        self._box = box
        self._transactions = box.transactions
        self._catalog = box.catalog
        self.procedures = procedures
        self._features = features
        self._protocol_version = protocol_version
        self._run_coroutine = run_coroutine
        self._remote_calls = RemoteCalls(box)
        self.requests: Counter[int] = Counter()
        self.errors = 0
        self._handlers: dict[int, Callable[[Connection, Request], bytes | None]] = {
            RequestType.SELECT: self._select,
            RequestType.INSERT: self._insert,
            RequestType.REPLACE: self._replace,
            RequestType.UPDATE: self._update,
            RequestType.DELETE: self._delete,
            RequestType.UPSERT: self._upsert,
            RequestType.CALL: self._call,
            RequestType.CALL_16: self._call_16,
            RequestType.AUTH: self._auth,
            RequestType.PING: self._nothing,
            RequestType.NOP: self._nothing,
            RequestType.ID: self._id,
        }

    def handle(self, connection: Connection, frame: bytes) -> None:
        """Answer one request, now or (a call that waits) later.

        Parameters:
            connection: whose it is; `connection.reply` takes the answer.
            frame: its header and body.
        """
        sync = 0
        facade = self._box.session
        self._transactions.has_logged = False
        try:
            request = decode_request(frame)
            sync = request.sync
            kind = request.type
            self.requests[kind] += 1
            handler = self._handlers.get(kind)
            if handler is None:
                raise refusal(kind)
            version = request.schema_version
            if version and version != self._catalog.schema_version:
                raise BoxError(ErrorCode.WRONG_SCHEMA_VERSION, version, self._catalog.schema_version)
            session = connection.session
            session.sync = sync
            facade.current = session
            response = handler(connection, request)
        except RequestError as error:
            response = self._failed(error.sync, error)
        except BoxError as error:
            response = self._failed(sync, error)
        except Exception as error:  # noqa: BLE001  # whatever went wrong, a request gets its answer
            response = self._failed(sync, procedure_error("a request", error))
        finally:
            facade.current = facade.background
        if response is not None:
            connection.reply(response)

    def _failed(self, sync: int, error: BoxError) -> bytes:
        self.errors += 1
        return encode_error(sync, self._catalog.schema_version, error)

    # -- data --

    def _space(self, connection: Connection, body: Body, needed: int, privilege: Privilege) -> MemtxSpace:
        """The space a request is about, for a user that may use it so."""
        name = body.get(_SPACE_NAME)
        space = self._catalog.space(body[_SPACE_ID]) if name is None else self._catalog.space_by_name(name)
        user = connection.session.credentials
        if user.universe & needed != needed:
            self._box.access.check_space(user, privilege, space)
        return space

    @staticmethod
    def _index_id(space: MemtxSpace, body: Body) -> int:
        name = body.get(_INDEX_NAME)
        index_id: int = body.get(_INDEX_ID, 0) if name is None else space.index_by_name(name).id
        return index_id

    def _select(self, connection: Connection, request: Request) -> bytes:
        body: Body = request.body
        iterator = body.get(_ITERATOR, 0)
        if iterator > _LAST_ITERATOR:  # told before what else is wrong, a missing space even
            raise BoxError(ErrorCode.ILLEGAL_PARAMS, "Invalid iterator type")
        space = self._space(connection, body, _READ_USAGE, Privilege.READ)
        rows = space.select(
            self._index_id(space, body),
            iterator,
            body.get(_OFFSET, 0),
            body[_LIMIT],
            codec.unpack(body[_KEY]),
        )
        return encode_tuples(request.sync, self._catalog.schema_version, rows)

    def _insert(self, connection: Connection, request: Request) -> bytes:
        body: Body = request.body
        space = self._space(connection, body, _WRITE_USAGE, Privilege.WRITE)
        return self._change(request, space.insert, Tuple(body[_TUPLE], space.format))

    def _replace(self, connection: Connection, request: Request) -> bytes:
        body: Body = request.body
        space = self._space(connection, body, _WRITE_USAGE, Privilege.WRITE)
        return self._change(request, space.replace, Tuple(body[_TUPLE], space.format))

    def _update(self, connection: Connection, request: Request) -> bytes:
        body: Body = request.body
        space = self._space(connection, body, _WRITE_USAGE, Privilege.WRITE)
        index_id = self._index_id(space, body)
        key = codec.unpack(body[_KEY])
        # Of a row that is not there Tarantool does not look at the operations.
        operations = parse_update(body[_TUPLE], space.format.names, body.get(_INDEX_BASE, 0), deferred=True)
        return self._change(request, space.update, index_id, key, operations)

    def _delete(self, connection: Connection, request: Request) -> bytes:
        body: Body = request.body
        space = self._space(connection, body, _WRITE_USAGE, Privilege.WRITE)
        return self._change(request, space.delete, self._index_id(space, body), codec.unpack(body[_KEY]))

    def _upsert(self, connection: Connection, request: Request) -> bytes:
        body: Body = request.body
        space = self._space(connection, body, _WRITE_USAGE, Privilege.WRITE)
        operations = parse_update(body[_OPS], space.format.names, body.get(_INDEX_BASE, 0))
        return self._change(request, space.upsert, Tuple(body[_TUPLE], space.format), operations)

    def _change(self, request: Request, change: Callable[..., Tuple | None], *args: object) -> bytes:
        """Change a row as one transaction; the answer is the row.

        What a trigger raises is an answer, too, not a fault of the server.
        """
        try:
            row = change(*args)
        except BoxError:
            raise
        except Exception as error:
            raise procedure_error("a trigger", error) from error
        return encode_tuples(request.sync, self._catalog.schema_version, () if row is None else (row.raw,))

    # -- calls --

    def _call(self, connection: Connection, request: Request) -> bytes | None:
        result = self._invoke(connection.session, request.body)
        if isinstance(result, Waiter):
            connection.wait_for(result, lambda waiter: self._waited(request.sync, waiter, encode_values))
            return None
        return encode_data(request.sync, self._catalog.schema_version, encode_values(result))

    def _call_16(self, connection: Connection, request: Request) -> bytes | None:
        result = self._invoke(connection.session, request.body)
        if isinstance(result, Waiter):
            connection.wait_for(result, lambda waiter: self._waited(request.sync, waiter, encode_values_16))
            return None
        return encode_data(request.sync, self._catalog.schema_version, encode_values_16(result))

    def _invoke(self, session: Session, body: Body) -> object:
        name: str = body[_FUNCTION_NAME]
        arguments: list[Any] = body.get(_TUPLE, [])
        procedure = self.procedures.get(name)
        user = session.credentials
        if user.universe & _EXECUTE_USAGE != _EXECUTE_USAGE:
            function = self._catalog.accounts.functions.get(name)
            self._box.access.check_call(user, name, function)
        if procedure is None:
            if not name.startswith("box."):
                raise BoxError(ErrorCode.NO_SUCH_PROC, name)
            return self._run(session, name, self._remote_calls.find(name), arguments)
        try:
            if procedure.is_async:
                return self._run_coroutine(session, procedure.function(self._box, *arguments))
            return self._box.run(session, procedure.function, self._box, *arguments)
        except BoxError:
            raise
        except Exception as error:
            misfit = procedure.misfit(arguments) if isinstance(error, TypeError) else None
            if misfit is not None:
                raise BoxError.procedure(f"{name}: {misfit}") from error
            raise procedure_error(name, error) from error

    def _run(
        self, session: Session, name: str, function: Callable[[list[Any]], object], arguments: list[Any]
    ) -> object:
        try:
            return self._box.run(session, function, arguments)
        except BoxError:
            raise
        except Exception as error:
            # The functions refuse wrong arguments themselves: this is a trigger's, or a fault of ours.
            raise procedure_error(name, error) from error

    def _waited(self, sync: int, waiter: Waiter, encode: Callable[[object], bytes]) -> bytes:
        """The response for a call that has waited."""
        error = waiter.error
        try:
            if error is not None:
                raise error
            return encode_data(sync, self._catalog.schema_version, encode(waiter.result))
        except BoxError as failure:
            return self._failed(sync, failure)
        except Exception as failure:  # noqa: BLE001  # the same as in `handle`
            return self._failed(sync, procedure_error("a procedure", failure))

    # -- the rest --

    def _nothing(self, connection: Connection, request: Request) -> bytes:
        return encode_ok(request.sync, self._catalog.schema_version)

    def _id(self, connection: Connection, request: Request) -> bytes:
        return encode_id(
            request.sync, self._catalog.schema_version, self._protocol_version, self._features, "chap-sha1"
        )

    def _auth(self, connection: Connection, request: Request) -> bytes:
        body: Body = request.body
        name: str = body[_USER_NAME]
        session = connection.session
        triggers = self._box.session.authentication_triggers
        try:
            user = self._box.access.by_name(name)
            proof: list[object] = body[_TUPLE]
            stored_hash = user.auth.get(auth.CHAP_SHA1)
            auth.authenticate(name, user.user_id == GUEST, stored_hash, proof, connection.salt)
        except BoxError:
            for trigger in triggers.functions:
                self._box.run(session, trigger, name, False)
            raise
        # As in Tarantool the session is not the user's before every trigger has agreed.
        for trigger in triggers.functions:
            self._box.run(session, trigger, name, True)
        session.credentials = user
        return encode_ok(request.sync, self._catalog.schema_version)


def refusal(kind: int) -> BoxError:
    """Why a request of this type is not served: not yet, or there is no such type."""
    try:
        name = RequestType(kind).name
    except ValueError:
        return BoxError(ErrorCode.UNKNOWN_REQUEST_TYPE, kind)
    return BoxError(ErrorCode.UNSUPPORTED, "This server", f"{name} requests")


def procedure_error(name: str, error: Exception) -> BoxError:
    """What a client is told of a Python exception that no procedure meant to send; the log has the rest."""
    logger.error("%s raised %s", name, type(error).__name__, exc_info=error)
    return BoxError.procedure(f"{type(error).__name__}: {error}")


def encode_values(result: object) -> bytes:
    """The DATA of a CALL: an array of what the procedure returned."""
    if result is None:
        return _EMPTY
    if isinstance(result, tuple):
        return codec.pack(list(result))
    return b"\x91" + codec.pack(result)


def encode_values_16(result: object) -> bytes:
    """The DATA of a CALL_16: what was returned as an array of tuples.

    Source: Tarantool, "IPROTO_CALL_16": an array of arrays is taken as the tuples, any other value becomes a
    tuple of one field.
    """
    values = [] if result is None else list(result) if isinstance(result, tuple) else [result]
    if len(values) == 1 and isinstance(values[0], list) and values[0]:
        inner = [codec.pack(value) for value in values[0]]
        if all(is_array(raw) for raw in inner):
            return codec.array_header(len(inner)) + b"".join(inner)
    packed = [codec.pack(value) for value in values]
    tuples = [raw if is_array(raw) else b"\x91" + raw for raw in packed]
    return codec.array_header(len(tuples)) + b"".join(tuples)


def is_array(raw: bytes) -> bool:
    """Whether a packed value is an array."""
    return raw[0] & 0xF0 == 0x90 or raw[0] in (0xDC, 0xDD)
