"""Handlers of Tarantool 1.5's requests, which work on the same box as all others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from iproto_server.box import Tuple, Waiter
from iproto_server.box.access.access_control import Privilege
from iproto_server.box.api.box import Box
from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.iterator_type import IteratorType
from iproto_server.protocol.constants import RequestType
from iproto_server.protocol.tarantool15.constants import Flag, RequestType15
from iproto_server.protocol.tarantool15.request import (
    Call,
    Delete,
    Insert,
    Request15,
    Select,
    Target,
    Update,
    decode_body,
    decode_header,
    decode_target,
)
from iproto_server.protocol.tarantool15.response import encode_error, encode_pong, encode_tuples, too_large
from iproto_server.protocol.tarantool15.update_operations import apply_operations, decode_operations
from iproto_server.server.application_errors import procedure_error, waited_error
from iproto_server.server.limits.unsent_limit import NoRoomError
from iproto_server.server.requests.dml import reserve
from iproto_server.server.tarantool15.fields import CallResults, FormatCache, RowFields, key_of, text_or_bytes

if TYPE_CHECKING:
    from iproto_server.box.access.session import Session
    from iproto_server.server.client_connection import ClientConnection
    from iproto_server.server.requests.dispatcher import Dispatcher

# Plain integers: the operators of an IntFlag cost more than the rest of the check.
_EVERYTHING: Final = int(Privilege.READ | Privilege.WRITE | Privilege.EXECUTE | Privilege.USAGE)
_RETURN_TUPLE: Final = int(Flag.RETURN_TUPLE)
_ADD: Final = int(Flag.ADD)
_REPLACE: Final = int(Flag.REPLACE)
_EQ: Final = int(IteratorType.EQ)
_COUNTED_AS: Final[dict[int, RequestType]] = {
    RequestType15.CALL: RequestType.CALL,
    RequestType15.SELECT: RequestType.SELECT,
    RequestType15.UPDATE: RequestType.UPDATE,
}
_PASSED_OVER: Final = 16
"""Bytes that a skipped row counts towards the size of the answer, because each key may skip many rows."""


class RowsResult:
    """The rows that a request selected or changed.

    Parameters:
        count: their number.
        tuples: the rows, if requested.
    """

    __slots__ = ("count", "tuples")

    def __init__(self, count: int, tuples: list[bytes]) -> None:
        self.count = count
        self.tuples = tuples


class Requests15:
    """Handles the requests of Tarantool 1.5's clients, as guest, because 1.5 has no users.

    Parameters:
        box: the database.
        dispatcher: makes the calls, and counts the requests.
        answer_max: maximum bytes of rows in the answer to a SELECT.
    """

    def __init__(self, box: Box, dispatcher: Dispatcher, answer_max: int) -> None:
        self._box = box
        self._transactions = box.transactions
        self._catalog = box.catalog
        self._access = box.access
        self._dispatcher = dispatcher
        self._answer_max = answer_max
        self._formats = FormatCache()
        self._results = CallResults(self._formats)

    def handle(self, connection: ClientConnection, frame: bytes) -> None:
        """Answer one request now or, if a call waits, later.

        Parameters:
            connection: the connection, whose `reply` gets the answer.
            frame: header and body of the request.
        """
        kind, _, request_id = decode_header(frame)
        if kind == RequestType15.PING:
            self._dispatcher.requests[RequestType.PING] += 1
            self._transactions.has_logged = False
            connection.reply(encode_pong(request_id))
            return
        facade = self._box.session
        session = connection.session
        self._transactions.has_logged = False
        waiter: Waiter | None = None
        try:
            if session.credentials.universe & _EVERYTHING != _EVERYTHING:
                self._check_rights(session, decode_target(frame))
            request = decode_body(frame)
            self._dispatcher.requests[counted_as(request)] += 1
            session.sync = request_id
            facade.current = session
            if self._transactions.take_out is not None:
                self._transactions.take_out()
            if isinstance(request, Call):
                result = self._call(connection, request)
                if isinstance(result, Waiter):
                    waiter = result
                else:
                    tuples = self._results.tuples(result)
                    answer = encode_tuples(kind, request_id, len(tuples), tuples)
            else:
                found = self._carry_out(connection, request)
                if isinstance(request, Select):
                    reserve(connection, found.tuples)
                answer = encode_tuples(kind, request_id, found.count, found.tuples)
        except NoRoomError:
            self._dispatcher.requests[RequestType.SELECT] -= 1
            connection.put_back(frame)
            return
        except BoxError as error:
            answer = self._failed(kind, request_id, error)
        except BaseException as error:  # noqa: BLE001  # every request gets an answer
            answer = self._failed(kind, request_id, procedure_error("a request", error, session))
        finally:
            facade.current = facade.background
        if waiter is None:
            connection.reply(answer)
        else:
            connection.wait_for(waiter, self._responder(kind, request_id))

    def _responder(self, kind: int, request_id: int) -> Callable[[Waiter], bytes]:
        """Return a function that encodes the response of a waiting call, or its error."""

        def respond(waiter: Waiter) -> bytes:
            try:
                if waiter.error is not None:
                    raise waiter.error
                tuples = self._results.tuples(waiter.result)
                return encode_tuples(kind, request_id, len(tuples), tuples)
            except BoxError as error:
                return self._failed(kind, request_id, error)
            except BaseException as error:  # noqa: BLE001  # the same as in `handle`
                return self._failed(kind, request_id, waited_error(waiter, error))

        return respond

    def _failed(self, kind: int, request_id: int, error: BoxError) -> bytes:
        self._dispatcher.errors += 1
        return encode_error(kind, request_id, error)

    def _call(self, connection: ClientConnection, request: Call) -> object:
        name = request.name.decode("utf-8", "surrogateescape")
        arguments = [text_or_bytes(argument) for argument in request.arguments]
        return self._dispatcher.calls.invoke(connection.session, name, arguments)

    def _check_rights(self, session: Session, target: Target) -> None:
        """Raise BoxError ACCESS_DENIED unless a session may send the request, before its body is decoded."""
        try:
            if isinstance(target.name, bytes):
                self._dispatcher.calls.check(session, target.name.decode("utf-8", "surrogateescape"))
            else:
                privilege = Privilege.READ if target.type == RequestType15.SELECT else Privilege.WRITE
                self._access.check_space(session.credentials, privilege, self._catalog.space(target.name))
        except BoxError:
            self._dispatcher.requests[counted_unread(target)] += 1
            raise

    def _carry_out(
        self, connection: ClientConnection, request: Insert | Select | Update | Delete
    ) -> RowsResult:
        space = self._catalog.space(request.space_id)
        if isinstance(request, Select):
            return self._select(space, request)
        change: Callable[..., RowsResult] = self._insert
        if isinstance(request, Update):
            change = self._update
        elif isinstance(request, Delete):
            change = self._delete
        # A transaction, because a request may make two changes, and encoding the answer may fail.
        return self._box.run(connection.session, change, space, request)

    # -- rows --

    def _select(self, space: MemtxSpace, request: Select) -> RowsResult:
        fields = self._formats.fields(space.format)
        index = space.index(request.index_id)
        offset, left = request.offset, request.limit
        tuples: list[bytes] = []
        size = 0
        for packed in request.keys:
            if not left:
                break
            key = key_of(index, fields, packed)
            rows = space.select(request.index_id, _EQ, 0, offset + left, key)
            passed = min(offset, len(rows))
            offset -= passed
            size += passed * _PASSED_OVER
            for row in rows[passed:]:
                tuples.append(fields.tuple(Tuple(row).fields))
                size += len(tuples[-1])
                if size > self._answer_max:
                    break
            if size > self._answer_max:
                raise too_large(size)
            left = request.limit - len(tuples)
        return RowsResult(len(tuples), tuples)

    def _insert(self, space: MemtxSpace, request: Insert) -> RowsResult:
        fields = self._formats.fields(space.format)
        row = _row(space, fields.values(request.fields))
        if request.flags & _ADD:
            row = space.insert(row)
        else:
            if request.flags & _REPLACE:
                _check_is_there(space, row)
            row = space.replace(row)
        return self._changed(fields, row, request.flags)

    def _update(self, space: MemtxSpace, request: Update) -> RowsResult:
        fields = self._formats.fields(space.format)
        key = _primary_key(space, fields, request.key)
        raw = space.find(0, key)
        if raw is None:
            return RowsResult(0, [])
        old = Tuple(raw, space.format).fields
        operations = decode_operations(request.operations)
        changed = apply_operations(len(old), lambda number: fields.field(number, old[number]), operations)
        row = _row(space, fields.updated(old, changed))
        space.format.check(row.fields)
        primary = space.primary_index()
        if primary.key_of(row.fields, b"") == primary.key_of(old, b""):
            row = space.replace(row)
        else:
            # 1.5 allows a change of the primary key to one without a row.
            space.delete(0, key)
            row = space.insert(row)
        return self._changed(fields, row, request.flags)

    def _delete(self, space: MemtxSpace, request: Delete) -> RowsResult:
        fields = self._formats.fields(space.format)
        row = space.delete(0, _primary_key(space, fields, request.key))
        return RowsResult(0, []) if row is None else self._changed(fields, row, request.flags)

    @staticmethod
    def _changed(fields: RowFields, row: Tuple, flags: int) -> RowsResult:
        return RowsResult(1, [fields.tuple(row.fields)] if flags & _RETURN_TUPLE else [])


def counted_as(request: Request15) -> RequestType:
    """Return the request type under which a request is counted."""
    if isinstance(request, Call):
        return RequestType.CALL
    if isinstance(request, Select):
        return RequestType.SELECT
    if isinstance(request, Insert):
        return RequestType.INSERT if request.flags & _ADD else RequestType.REPLACE
    return RequestType.UPDATE if isinstance(request, Update) else RequestType.DELETE


def counted_unread(target: Target) -> RequestType:
    """Return the same for a request whose body is not decoded."""
    if target.type == RequestType15.INSERT:
        return RequestType.INSERT if target.flags & _ADD else RequestType.REPLACE
    return _COUNTED_AS.get(target.type, RequestType.DELETE)


def _row(space: MemtxSpace, values: list[object]) -> Tuple:
    """Make a row of values that equal their unpacked forms."""
    return Tuple(codec.pack(values), space.format, values)


def _primary_key(space: MemtxSpace, fields: RowFields, packed: list[bytes]) -> list[object]:
    """Decode a full primary key. Raises BoxError EXACT_MATCH, KEY_PART_TYPE, NO_SUCH_INDEX_ID."""
    primary = space.index(0)
    if len(packed) != primary.part_count:
        raise BoxError(ErrorCode.EXACT_MATCH, primary.part_count, len(packed))
    return key_of(primary, fields, packed)


def _check_is_there(space: MemtxSpace, row: Tuple) -> None:
    """Raise BoxError TUPLE_NOT_FOUND unless a row with this row's primary key exists."""
    space.format.check(row.fields)
    primary = space.primary_index()
    if primary.get(primary.key_of(row.fields, b"")) is None:
        raise BoxError(ErrorCode.TUPLE_NOT_FOUND, primary.name, space.name)
