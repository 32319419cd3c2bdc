"""From frames to requests.

Two roads lead to the same answer. The short one lets the C library read what well-behaved clients send and
gives up at the first thing it does not expect. The careful one then starts over, checks every key, and is
the one that knows what is wrong and how Tarantool words it. (Where the short one is more lenient: of a
repeated key only the last value is checked, and a key that equals a number, as 1.0 and true equal 1, is
taken for it.)
"""

import re
from typing import Final

import msgpack

from iproto_server.codec import msgpack as codec
from iproto_server.codec.msgpack import Kind
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native import twin
from iproto_server.protocol.constants import KEY_NAMES, Key, RequestType

_U32: Final = 0xFFFFFFFF


@twin
class Request:
    """One request.

    Attributes:
        type: what is asked for; usually a member of ``constants.RequestType``, but any byte may come.
        sync: the number to answer with.
        schema_version: the one that the client knows, 0 for no matter.
        stream_id: the stream that the request belongs to, 0 for none.
        body: what belongs to the type, by ``constants.Key``. Arrays, maps and the values of SQL stay packed,
            checked to be well-formed: nobody knows yet whether the client may do what it asks for, and there
            may be millions of items. Numbers and texts are unpacked. The body of a type that is not listed in
            this module is empty.
    """

    __slots__ = ("body", "schema_version", "stream_id", "sync", "type")

    def __init__(
        self, type: int, sync: int, schema_version: int, stream_id: int, body: dict[int, object]
    ) -> None:
        """Create a request from its parts."""
        self.type = type
        self.sync = sync
        self.schema_version = schema_version
        self.stream_id = stream_id
        self.body = body

    def __repr__(self) -> str:
        """Show every part."""
        return (
            f"Request(type={self.type}, sync={self.sync}, schema_version={self.schema_version}, "
            f"stream_id={self.stream_id}, body={self.body!r})"
        )


class RequestError(BoxError):
    """A frame is not a request. The connection goes on.

    Attributes:
        sync: the number to answer with, 0 if the fault came before it.
    """

    sync: int

    def __init__(self, sync: int, code: int, *args: object) -> None:
        """Create the error to answer with.

        Args:
            sync: the request's number as far as it is known.
            code: a member of ``ErrorCode``.
            args: what goes into the error's wording.
        """
        super().__init__(code, *args)
        self.sync = sync


# Which kind a key's value must have in a header. The keys up to 0x2b have one even where a header has no use
# for them; those up to 0x52 never had one, and nil is taken.
_HEADER_KINDS: Final = {
    **dict.fromkeys(range(0x20), Kind.UINT),
    Key.TIMESTAMP.value: Kind.DOUBLE,
    Key.KEY.value: Kind.ARRAY,
    Key.TUPLE.value: Kind.ARRAY,
    **dict.fromkeys(range(0x22, 0x28), Kind.STR),
    Key.VCLOCK.value: Kind.MAP,
    Key.OPS.value: Kind.ARRAY,
    **dict.fromkeys(range(0x29, 0x2C), Kind.MAP),
    **dict.fromkeys(range(0x2C, 0x53), Kind.NIL),
}
_ROW_KINDS: Final = {
    **dict.fromkeys(range(Key.SPACE_ID, Key.INDEX_BASE + 1), Kind.UINT),
    Key.KEY.value: Kind.ARRAY,
    Key.TUPLE.value: Kind.ARRAY,
    Key.OPS.value: Kind.ARRAY,
    Key.TUPLE_META.value: Kind.MAP,
    Key.SPACE_NAME.value: Kind.STR,
    Key.INDEX_NAME.value: Kind.STR,
    Key.FETCH_POSITION.value: Kind.BOOL,
    Key.AFTER_POSITION.value: Kind.STR,
    Key.AFTER_TUPLE.value: Kind.ARRAY,
}
_BEGIN_KINDS: Final = {Key.TIMEOUT.value: Kind.DOUBLE, Key.TXN_ISOLATION.value: Kind.UINT}
_WATCH_KINDS: Final = {Key.EVENT_KEY.value: Kind.STR}
_CALL_KINDS: Final = {
    Key.FUNCTION_NAME.value: Kind.STR,
    Key.EXPR.value: Kind.STR,
    Key.TUPLE.value: Kind.ARRAY,
}
_AUTH_KINDS: Final = {Key.USER_NAME.value: Kind.STR, Key.TUPLE.value: Kind.ARRAY}
_ID_KINDS: Final = {
    Key.VERSION.value: Kind.UINT,
    Key.FEATURES.value: Kind.ARRAY,
    Key.AUTH_TYPE.value: Kind.STR,
}
_KEPT_PACKED: Final = (Kind.ARRAY, Kind.MAP)
_NO_ITEMS: Final = b"\x90"
_SQL_KEYS: Final = frozenset((Key.SQL_TEXT.value, Key.SQL_BIND.value, Key.STMT_ID.value))

# In the order in which the first missing one is named.
_ROW_REQUIRED: Final[dict[int, tuple[Key, ...]]] = {
    RequestType.SELECT: (Key.SPACE_ID, Key.LIMIT, Key.KEY),
    RequestType.INSERT: (Key.SPACE_ID, Key.TUPLE),
    RequestType.REPLACE: (Key.SPACE_ID, Key.TUPLE),
    RequestType.UPDATE: (Key.SPACE_ID, Key.KEY, Key.TUPLE),
    RequestType.DELETE: (Key.SPACE_ID, Key.KEY),
    RequestType.UPSERT: (Key.SPACE_ID, Key.TUPLE, Key.OPS),
}
_ROW_REQUIRED_SETS: Final = {
    number: frozenset(key.value for key in keys) for number, keys in _ROW_REQUIRED.items()
}
_CALL_REQUIRED: Final[dict[int, Key]] = {
    RequestType.CALL: Key.FUNCTION_NAME,
    RequestType.CALL_16: Key.FUNCTION_NAME,
    RequestType.EVAL: Key.EXPR,
}

# Longer arrays and maps are for the careful road, which reserves memory only for what is really there.
_EXPECTED_ITEMS: Final = 4096
# What is unpacked at once has no more bytes: a header that has more holds values that it should not.
_EXPECTED_HEADER: Final = 40
_MOST_PAIRS: Final = 1024
"""A header or body with more keys is refused: Tarantool knows fewer than a hundred of them."""

# A request to ID says which features the client has, as numbers.
_NUMBERS_ONLY: Final = re.compile(rb"(?:[\x00-\x7f]|\xcc.|\xcd.{2}|\xce.{4}|\xcf.{8})*+", re.DOTALL)
# An unpacker keeps the largest buffer it ever needed, so those that read more than this are not kept.
_KEEP_UNPACKER: Final = 1 << 20


class _Unexpected(Exception):
    """The frame is not what clients usually send."""


_UNEXPECTED: Final = (_Unexpected, LookupError, *codec.MALFORMED)

_unpackers: Final = [codec.new_unpacker(_EXPECTED_ITEMS)]

_CALL: Final = RequestType.CALL.value
_FUNCTION_NAME: Final = Key.FUNCTION_NAME.value
_SCHEMA_VERSION: Final = Key.SCHEMA_VERSION.value
_TUPLE: Final = Key.TUPLE.value
_ROW_NUMBERS: Final = frozenset(range(Key.SPACE_ID, Key.INDEX_BASE + 1))
_ROW_ARRAYS: Final = frozenset((Key.KEY.value, Key.TUPLE.value, Key.OPS.value))
_PING: Final = RequestType.PING.value
_BODILESS: Final = frozenset((RequestType.PING.value, RequestType.NOP.value))


@twin
def decode_request(frame: bytes) -> Request:
    """Decode a frame.

    Args:
        frame: header and body, without the length before them; may hold anything.

    Returns:
        The request, its known keys checked.

    Raises:
        RequestError: the frame is malformed, or lacks a key that its type needs; it carries the sync to
            answer with.
    """
    try:
        return _decode_expected(frame)
    except _UNEXPECTED:
        return _decode_with_care(frame)


def _decode_expected(frame: bytes) -> Request:
    """Decode what clients usually send; raise one of ``_UNEXPECTED`` at anything else."""
    # An unpacker that is not read to the end is left out of the pool: it holds the rest of its frame.
    unpacker = _unpackers.pop() if _unpackers else codec.new_unpacker(_EXPECTED_ITEMS)
    base = unpacker.tell()
    unpacker.feed(frame[:_EXPECTED_HEADER])
    header = unpacker.unpack()
    if len(frame) > _EXPECTED_HEADER:
        unpacker.feed(frame[_EXPECTED_HEADER:])
    number = header[0]
    sync = header[1]
    if type(header) is not dict or type(sync) is not int or sync < 0:
        raise _Unexpected
    schema_version = 0
    if len(header) != 2:
        schema_version = header[_SCHEMA_VERSION]
        if type(schema_version) is not int or schema_version < 0 or len(header) != 3:
            raise _Unexpected
        schema_version &= _U32
    body: dict[int, object]
    if number == _CALL:
        body = _expected_call(frame, unpacker, base)
    elif type(number) is not int:
        raise _Unexpected
    elif number in _ROW_REQUIRED_SETS:
        body = _expected_row(frame, unpacker, base)
        if not _ROW_REQUIRED_SETS[number] <= body.keys():
            raise _Unexpected
    elif number in _BODILESS:
        body = {}
        if number == _PING and unpacker.tell() - base != len(frame):
            if 0xC9 in frame and codec.ENDLESS_HEAD in frame:
                raise _Unexpected
            unpacker.skip()  # whatever it is
    else:
        raise _Unexpected
    size = len(frame)
    if unpacker.tell() - base != size:
        raise _Unexpected
    if size <= _KEEP_UNPACKER:
        _unpackers.append(unpacker)
    return Request(number, sync, schema_version, 0, body)


def _expected_call(frame: bytes, unpacker: msgpack.Unpacker, base: int) -> dict[int, object]:
    if 0xC9 in frame and codec.ENDLESS_HEAD in frame:
        raise _Unexpected
    body: dict[int, object] = {}
    if unpacker.read_map_header() != 2:
        raise _Unexpected
    for _ in range(2):
        start = unpacker.tell() - base + 1
        key = frame[start - 1]
        unpacker.skip()
        if key == _TUPLE and codec.kind(frame, start) is Kind.ARRAY:
            unpacker.skip()
            body[key] = frame[start : unpacker.tell() - base]
        elif key == _FUNCTION_NAME and codec.kind(frame, start) is Kind.STR:
            body[key] = unpacker.unpack()
        else:
            raise _Unexpected
    if len(body) != 2:
        raise _Unexpected
    return body


def _expected_row(frame: bytes, unpacker: msgpack.Unpacker, base: int) -> dict[int, object]:
    if 0xC9 in frame and codec.ENDLESS_HEAD in frame:
        raise _Unexpected
    body: dict[int, object] = {}
    for _ in range(unpacker.read_map_header()):
        start = unpacker.tell() - base + 1
        key = frame[start - 1]
        unpacker.skip()
        if key in _ROW_NUMBERS:
            if codec.kind(frame, start) is not Kind.UINT:
                raise _Unexpected
            body[key] = unpacker.unpack() & _U32
        elif key in _ROW_ARRAYS:
            if codec.kind(frame, start) is not Kind.ARRAY:
                raise _Unexpected
            unpacker.skip()
            body[key] = frame[start : unpacker.tell() - base]
        else:
            raise _Unexpected
    return body


def _decode_with_care(frame: bytes) -> Request:
    header: dict[int, int] = {Key.REQUEST_TYPE: 0, Key.SYNC: 0, Key.SCHEMA_VERSION: 0, Key.STREAM_ID: 0}
    try:
        end = codec.skip(frame, 0)
        pairs = _pairs(frame[:end])
    except BoxError:
        raise RequestError(0, ErrorCode.INVALID_MSGPACK, "packet header") from None
    for key, value in pairs:
        number = _unsigned(key) if codec.kind(key) is Kind.UINT else -1
        if _HEADER_KINDS.get(number) is not codec.kind(value):
            raise RequestError(header[Key.SYNC], ErrorCode.INVALID_MSGPACK, "packet header")
        if number in header:
            header[number] = _unsigned(value)
    sync = header[Key.SYNC]
    number = header[Key.REQUEST_TYPE]
    packed = frame[end:]
    if packed and (number == RequestType.NOP or not codec.is_valid(packed)):
        raise RequestError(sync, ErrorCode.INVALID_MSGPACK, "packet body")
    number &= 0xFF
    body = _decode_body(sync, number, packed)
    return Request(number, sync, header[Key.SCHEMA_VERSION] & _U32, header[Key.STREAM_ID], body)


def _unsigned(raw: bytes) -> int:
    return raw[0] if len(raw) == 1 else int.from_bytes(raw[1:], "big")


def _decode_body(sync: int, number: int, packed: bytes) -> dict[int, object]:
    if number in _ROW_REQUIRED:
        return _decode_row(sync, number, packed)
    if number in _CALL_REQUIRED:
        body = _decode_checked(sync, packed, _CALL_KINDS, "missing request body", "packet body")
        _require(sync, body, _CALL_REQUIRED[number])
        body.setdefault(_TUPLE, _NO_ITEMS)
        return body
    if number == RequestType.AUTH:
        body = _decode_checked(sync, packed, _AUTH_KINDS, "missing request body", "packet body")
        _require(sync, body, Key.USER_NAME, Key.TUPLE)
        return body
    if number == RequestType.ID:
        body = _decode_checked(sync, packed, _ID_KINDS, "request body", "request body")
        features = body.get(Key.FEATURES)
        if isinstance(features, bytes) and not _are_numbers(features):
            raise RequestError(sync, ErrorCode.INVALID_MSGPACK, "request body")
        return body
    if number in (RequestType.EXECUTE, RequestType.PREPARE):
        return _decode_sql(sync, packed)
    if number in (RequestType.BEGIN, RequestType.COMMIT):
        return _decode_checked(sync, packed, _BEGIN_KINDS, "request body", "request body") if packed else {}
    if number in (RequestType.WATCH, RequestType.UNWATCH, RequestType.WATCH_ONCE):
        body = _decode_checked(sync, packed, _WATCH_KINDS, "missing request body", "packet body")
        _require(sync, body, Key.EVENT_KEY)
        return body
    return {}


def _are_numbers(array: bytes) -> bool:
    """Tell whether a well-formed array holds unsigned numbers only, without making values of them."""
    head = {0xDC: 3, 0xDD: 5}.get(array[0], 1)
    return _NUMBERS_ONLY.fullmatch(array, head) is not None


def _pairs(packed: bytes) -> list[tuple[bytes, bytes]]:
    """Cut a map; one of too many pairs is malformed."""
    if codec.kind(packed) is Kind.MAP and codec.map_count(packed) > _MOST_PAIRS:
        raise BoxError(ErrorCode.INVALID_MSGPACK, "too many keys")
    return codec.split_map(packed)


def _split_body(sync: int, packed: bytes, otherwise: str) -> list[tuple[bytes, bytes]]:
    try:
        return _pairs(packed)
    except BoxError:
        raise RequestError(sync, ErrorCode.INVALID_MSGPACK, otherwise) from None


def _require(sync: int, body: dict[int, object], *keys: Key) -> None:
    for key in keys:
        if key not in body:
            raise RequestError(sync, ErrorCode.MISSING_REQUEST_FIELD, KEY_NAMES[key])


def _decode_row(sync: int, number: int, packed: bytes) -> dict[int, object]:
    body: dict[int, object] = {}
    for key, value in _split_body(sync, packed, "packet body") if packed else ():
        if codec.kind(key) is not Kind.UINT:
            continue
        name = _unsigned(key)
        wanted = _ROW_KINDS.get(name)
        if wanted is None:
            continue
        if codec.kind(value) is not wanted:
            raise RequestError(sync, ErrorCode.INVALID_MSGPACK, "packet body")
        if wanted is Kind.UINT:
            body[name] = _unsigned(value) & _U32
        else:
            body[name] = value if wanted in _KEPT_PACKED else codec.unpack(value)
    required = _ROW_REQUIRED[number]
    _require(sync, body, *(required[1:] if Key.SPACE_NAME in body else required))
    return body


def _decode_checked(
    sync: int, packed: bytes, kinds: dict[int, Kind], missing: str, otherwise: str
) -> dict[int, object]:
    """Take the values of the keys in ``kinds`` and pass over the others, whose keys must be numbers."""
    if not packed:
        raise RequestError(sync, ErrorCode.INVALID_MSGPACK, missing)
    body: dict[int, object] = {}
    for key, value in _split_body(sync, packed, otherwise):
        if codec.kind(key) is not Kind.UINT:
            raise RequestError(sync, ErrorCode.INVALID_MSGPACK, otherwise)
        number = _unsigned(key)
        if number in kinds:
            if codec.kind(value) is not kinds[number]:
                raise RequestError(sync, ErrorCode.INVALID_MSGPACK, otherwise)
            body[number] = value if kinds[number] in _KEPT_PACKED else codec.unpack(value)
    return body


def _decode_sql(sync: int, packed: bytes) -> dict[int, object]:
    if not packed:
        raise RequestError(sync, ErrorCode.INVALID_MSGPACK, "missing request body")
    pairs = _split_body(sync, packed, "packet body")
    body: dict[int, object] = {
        _unsigned(key): value
        for key, value in pairs
        if codec.kind(key) is Kind.UINT and _unsigned(key) in _SQL_KEYS
    }
    if Key.SQL_TEXT in body and Key.STMT_ID in body:
        reason = "SQL text and statement id are incompatible options in one request: choose one"
        raise RequestError(sync, ErrorCode.INVALID_MSGPACK, reason)
    if Key.SQL_TEXT not in body and Key.STMT_ID not in body:
        names = f"{KEY_NAMES[Key.SQL_TEXT]} or {KEY_NAMES[Key.STMT_ID]}"
        raise RequestError(sync, ErrorCode.MISSING_REQUEST_FIELD, names)
    return body
