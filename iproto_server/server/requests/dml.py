"""Requests for rows: SELECT, INSERT, REPLACE, UPDATE, DELETE, UPSERT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from iproto_server.box import Tuple
from iproto_server.box.access.access_control import Privilege
from iproto_server.box.api.box import Box
from iproto_server.box.index.index_def import PART_COUNT_MAX
from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.box.memtx.pagination import select_page
from iproto_server.box.update import parse_update
from iproto_server.codec import msgpack as codec
from iproto_server.codec.msgpack import Kind
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.iterator_type import IteratorType
from iproto_server.native._native import LARGE_ANSWER, SHORT_KEY
from iproto_server.protocol.constants import Key, RequestType
from iproto_server.protocol.request import Request
from iproto_server.protocol.response import encode_page, encode_tuples
from iproto_server.server.application_errors import procedure_error
from iproto_server.server.client_connection import ClientConnection
from iproto_server.server.limits.unsent_limit import NoRoomError
from iproto_server.server.requests.answer import Body, Handler

# Plain integers: the operators of an IntFlag cost more than the rest of the check.
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
_SPACE_NAME, _INDEX_NAME = int(Key.SPACE_NAME), int(Key.INDEX_NAME)
_PAGE_KEYS = frozenset(map(int, (Key.FETCH_POSITION, Key.AFTER_POSITION, Key.AFTER_TUPLE)))
_LAST_ITERATOR = int(max(IteratorType))
_LONG_EXTENSION = 1024
_REPLACED = (Kind.ARRAY, Kind.MAP, Kind.EXT)


def read_key(packed: bytes) -> Any:
    """Unpack the key of a request for rows.

    A very long key fits no index: it has too many values, or a value of a wrong type. Such a key is unpacked
    only as far as the error needs it: to the number of values, or with empty arrays in place of arrays, maps
    and large extensions.

    Parameters:
        packed: a well-formed array.

    Raises:
        BoxError: INVALID_MSGPACK, the key is nested too deeply.
    """
    if len(packed) <= SHORT_KEY:
        return codec.unpack(packed)
    count = codec.array_count(packed)
    if count > PART_COUNT_MAX:
        return range(count)
    return [
        [] if codec.kind(value) in _REPLACED and len(value) > _LONG_EXTENSION else codec.unpack(value)
        for value in codec.split_array(packed)
    ]


def reserve(connection: ClientConnection, rows: Sequence[bytes]) -> None:
    """Reserve room for the answer. Raises NoRoomError if the request has to wait."""
    size = sum(map(len, rows))
    if size > LARGE_ANSWER and not connection.admit(size):
        raise NoRoomError


class RowRequests:
    """Handles the requests for rows.

    Parameters:
        box: the database.

    Attributes:
        handlers: the handlers by request type.
    """

    def __init__(self, box: Box) -> None:
        self._sessions = box.session
        self._access = box.access
        self._catalog = box.catalog
        self.handlers: dict[int, Handler] = {
            RequestType.SELECT: self._select,
            RequestType.INSERT: self._insert,
            RequestType.REPLACE: self._replace,
            RequestType.UPDATE: self._update,
            RequestType.DELETE: self._delete,
            RequestType.UPSERT: self._upsert,
        }

    def _space(
        self, connection: ClientConnection, body: Body, needed: int, privilege: Privilege
    ) -> MemtxSpace:
        """Return the space of a request, after a check of the user's rights."""
        name = body.get(_SPACE_NAME)
        space = self._catalog.space(body[_SPACE_ID]) if name is None else self._catalog.space_by_name(name)
        user = connection.session.credentials
        if user.universe & needed != needed:
            self._access.check_space(user, privilege, space)
        return space

    @staticmethod
    def _index_id(space: MemtxSpace, body: Body) -> int:
        name = body.get(_INDEX_NAME)
        index_id: int = body.get(_INDEX_ID, 0) if name is None else space.index_by_name(name).id
        return index_id

    def _select(self, connection: ClientConnection, request: Request) -> bytes:
        body: Body = request.body
        iterator = body.get(_ITERATOR, 0)
        if iterator > _LAST_ITERATOR:  # checked first, even before a missing space
            raise BoxError(ErrorCode.ILLEGAL_PARAMS, "Invalid iterator type")
        space = self._space(connection, body, _READ_USAGE, Privilege.READ)
        index_id, offset, limit = self._index_id(space, body), body.get(_OFFSET, 0), body[_LIMIT]
        key = read_key(body[_KEY])
        if _PAGE_KEYS.isdisjoint(body):
            rows = space.select(index_id, iterator, offset, limit, key)
            reserve(connection, rows)
            return encode_tuples(request.sync, self._catalog.schema_version, rows)
        page = select_page(
            space,
            index_id,
            iterator,
            offset,
            limit,
            key,
            after_position=body.get(Key.AFTER_POSITION),
            after_row=body.get(Key.AFTER_TUPLE),
            fetch_position=body.get(Key.FETCH_POSITION, False),
        )
        reserve(connection, page.rows)
        return encode_page(request.sync, self._catalog.schema_version, page.rows, page.position)

    def _insert(self, connection: ClientConnection, request: Request) -> bytes:
        body: Body = request.body
        space = self._space(connection, body, _WRITE_USAGE, Privilege.WRITE)
        return self._change(request, space.insert, Tuple(body[_TUPLE], space.format))

    def _replace(self, connection: ClientConnection, request: Request) -> bytes:
        body: Body = request.body
        space = self._space(connection, body, _WRITE_USAGE, Privilege.WRITE)
        return self._change(request, space.replace, Tuple(body[_TUPLE], space.format))

    def _update(self, connection: ClientConnection, request: Request) -> bytes:
        body: Body = request.body
        space = self._space(connection, body, _WRITE_USAGE, Privilege.WRITE)
        index_id = self._index_id(space, body)
        key = read_key(body[_KEY])
        # Tarantool ignores the operations if the row is missing.
        operations = parse_update(body[_TUPLE], space.format.names, body.get(_INDEX_BASE, 0), deferred=True)
        return self._change(request, space.update, index_id, key, operations)

    def _delete(self, connection: ClientConnection, request: Request) -> bytes:
        body: Body = request.body
        space = self._space(connection, body, _WRITE_USAGE, Privilege.WRITE)
        return self._change(request, space.delete, self._index_id(space, body), read_key(body[_KEY]))

    def _upsert(self, connection: ClientConnection, request: Request) -> bytes:
        body: Body = request.body
        space = self._space(connection, body, _WRITE_USAGE, Privilege.WRITE)
        # Tarantool checks the row before the operations.
        operations = parse_update(body[_OPS], space.format.names, body.get(_INDEX_BASE, 0), deferred=True)
        return self._change(request, space.upsert, Tuple(body[_TUPLE], space.format), operations)

    def _change(self, request: Request, change: Callable[..., Tuple | None], *args: object) -> bytes:
        """Change a row in one transaction, and encode the row as the response.

        An exception of a trigger becomes an error response.
        """
        try:
            row = change(*args)
        except BoxError:
            raise
        except BaseException as error:
            raise procedure_error("a trigger", error, self._sessions.current) from error
        return encode_tuples(request.sync, self._catalog.schema_version, () if row is None else (row.raw,))
