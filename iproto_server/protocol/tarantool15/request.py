"""Decodes requests.

Checks follow the order and the messages of 1.5, so a request with two faults is refused for the same one. As
in 1.5, the end of a DELETE or CALL is not checked.
"""

import struct
from typing import Final, NamedTuple

from iproto_server.errors import BoxError, ErrorCode
from iproto_server.protocol.tarantool15.constants import HEADER_SIZE, RequestType15

_unpack_header: Final = struct.Struct("<III").unpack_from
_unpack_number: Final = struct.Struct("<I").unpack_from

_ROW_REQUESTS: Final = frozenset(RequestType15) - {RequestType15.CALL, RequestType15.PING}
_VARINT_MAX: Final = 5
_UINT32_MASK: Final = 0xFFFFFFFF


class Header(NamedTuple):
    """The header of a request.

    Attributes:
        type: the request type; see `RequestType15`.
        length: the length of the body, in bytes.
        request_id: the request's number, repeated in the response.
    """

    type: int
    length: int
    request_id: int


class Insert(NamedTuple):
    """INSERT: store a row.

    Attributes:
        space_id: the space's number.
        flags: see `Flag`.
        fields: the row.
    """

    space_id: int
    flags: int
    fields: list[bytes]


class Select(NamedTuple):
    """SELECT: the rows with the first key, then those with the second, and so on.

    Attributes:
        space_id: the space's number.
        index_id: the index's number.
        offset: the number of rows to skip, for all keys together.
        limit: the greatest number of rows, for all keys together.
        keys: full or partial keys, each a list of fields.
    """

    space_id: int
    index_id: int
    offset: int
    limit: int
    keys: list[list[bytes]]


class Update(NamedTuple):
    """UPDATE: change a row.

    Attributes:
        space_id: the space's number.
        flags: see `Flag`.
        key: the primary key.
        operations: the packed operations; ignored if the row does not exist.
    """

    space_id: int
    flags: int
    key: list[bytes]
    operations: bytes


class Delete(NamedTuple):
    """DELETE: remove a row.

    Attributes:
        space_id: the space's number.
        flags: see `Flag`.
        key: the primary key.
    """

    space_id: int
    flags: int
    key: list[bytes]


class Call(NamedTuple):
    """CALL: call a procedure.

    Attributes:
        name: the procedure's name.
        arguments: its arguments.
    """

    name: bytes
    arguments: list[bytes]


class Target(NamedTuple):
    """The target of a request.

    Attributes:
        type: as in the header.
        name: the number of the space, or the name of the procedure.
        flags: the flags of an INSERT; otherwise 0.
    """

    type: int
    name: int | bytes
    flags: int


Request15 = Insert | Select | Update | Delete | Call


def illegal(message: str) -> BoxError:
    """The error for a malformed request, with its full text; 1.5 adds no prefix."""
    return BoxError.with_message(ErrorCode.ILLEGAL_PARAMS, message)


class FieldReader:
    """Reads numbers and fields of bodies.

    Args:
        data: the bytes.
        position: the offset to start at.
    """

    __slots__ = ("_data", "position")

    def __init__(self, data: bytes, position: int = 0) -> None:
        self._data = data
        self.position = position

    @property
    def is_at_end(self) -> bool:
        """Whether everything is read."""
        return self.position == len(self._data)

    def byte(self) -> int:
        """The next byte."""
        if self.is_at_end:
            raise illegal("packet too short (expected 8 bits)")
        self.position += 1
        return self._data[self.position - 1]

    def number(self) -> int:
        """The next number of four bytes."""
        position = self.position
        if len(self._data) - position < 4:
            raise illegal("packet too short (expected 32 bits)")
        self.position = position + 4
        value: int = _unpack_number(self._data, position)[0]
        return value

    def length(self) -> int:
        """The next number of one to five bytes, seven bits each, the highest first."""
        data = self._data
        value = 0
        for count, position in enumerate(range(self.position, self.position + _VARINT_MAX), start=1):
            if position >= len(data):
                what = "varint" if count < 3 else "BER int"
                raise illegal(f"{what} is too short (expected {count}+ bytes)")
            byte = data[position]
            value = value << 7 | byte & 0x7F
            if byte < 0x80:
                self.position = position + 1
                return value & _UINT32_MASK
        raise illegal("incorrect BER integer format")

    def field(self) -> bytes:
        """The next field."""
        size = self.length()
        start = self.position
        end = start + size
        if end > len(self._data):
            raise illegal("packet too short (expected a field)")
        self.position = end
        return self._data[start:end]

    def fields(self) -> list[bytes]:
        """The next tuple: the number of fields, and the fields."""
        return [self.field() for _ in range(self.number())]

    def rest(self) -> bytes:
        """The rest of the data."""
        start, self.position = self.position, len(self._data)
        return self._data[start:]


def decode_header(frame: bytes) -> Header:
    """The header of a whole request."""
    return Header(*_unpack_header(frame))


def decode_target(frame: bytes) -> Target:
    """Read only the target of a request other than PING: there may be millions of fields.

    Args:
        frame: header and body.

    Raises:
        BoxError: ILLEGAL_PARAMS for a malformed target or an unknown type.
    """
    kind: int = _unpack_header(frame)[0]
    reader = FieldReader(frame, HEADER_SIZE)
    if kind == RequestType15.CALL:
        reader.number()  # flags without effect
        return Target(kind, reader.field(), 0)
    if kind not in _ROW_REQUESTS:
        raise _unknown()
    return Target(kind, reader.number(), reader.number() if kind == RequestType15.INSERT else 0)


def decode_body(frame: bytes) -> Request15:
    """Decode a request other than PING.

    Args:
        frame: header and body.

    Returns:
        The request.

    Raises:
        BoxError: ILLEGAL_PARAMS for a malformed request or an unknown type.
    """
    kind: int = _unpack_header(frame)[0]
    reader = FieldReader(frame, HEADER_SIZE)
    if kind == RequestType15.CALL:
        reader.number()  # flags without effect
        return Call(reader.field(), reader.fields())
    if kind == RequestType15.SELECT:
        return _select(reader)
    if kind == RequestType15.INSERT:
        return _insert(reader)
    if kind == RequestType15.UPDATE:
        return Update(reader.number(), reader.number(), reader.fields(), reader.rest())
    if kind == RequestType15.DELETE:
        return Delete(reader.number(), reader.number(), reader.fields())
    if kind == RequestType15.DELETE_1_3:
        return Delete(reader.number(), 0, reader.fields())
    raise _unknown()


def _unknown() -> BoxError:
    return illegal("unsupported command code, check the error log")


def _select(reader: FieldReader) -> Select:
    space_id, index_id, offset, limit, count = (reader.number() for _ in range(5))
    if count == 0:
        raise illegal("tuple count must be positive")
    keys = [reader.fields() for _ in range(count)]
    if not reader.is_at_end:
        raise illegal("can't unpack request")
    return Select(space_id, index_id, offset, limit, keys)


def _insert(reader: FieldReader) -> Insert:
    request = Insert(reader.number(), reader.number(), reader.fields())
    if not reader.is_at_end:
        raise illegal("during verifying tuple: incorrect tuple format")
    return request
