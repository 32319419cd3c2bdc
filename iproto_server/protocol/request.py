"""From frames to requests.

Two roads lead to the same answer. The short one reads what well-behaved clients send, byte by byte and with
as few calls as possible, and gives up at the first thing it does not expect. The careful one then starts
over, checks every key, and is the one that knows what is wrong and how Tarantool words it.
"""

from typing import Final

from iproto_server import codec
from iproto_server.codec import Kind
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.protocol.constants import KEY_NAMES, Key, RequestType

_U32: Final = 0xFFFFFFFF


class Request:
    """One request.

    Attributes:
        type: what is asked for; usually a member of ``constants.RequestType``, but any byte may come.
        sync: the number to answer with.
        schema_version: the one that the client knows, 0 for no matter.
        stream_id: the stream that the request belongs to, 0 for none.
        body: what belongs to the type, by ``constants.Key``. In SELECT, INSERT, REPLACE, UPDATE, DELETE and
            UPSERT the values of KEY, TUPLE and OPS are packed arrays, checked to be well-formed; everything
            else is unpacked. The body of a type that is not listed in this module is empty.
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
}
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

_CALL: Final = RequestType.CALL.value
_FUNCTION_NAME: Final = Key.FUNCTION_NAME.value
_TUPLE: Final = Key.TUPLE.value
_NO_VALUES: Final = frozenset((RequestType.PING.value, RequestType.NOP.value))


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
        request = _decode_expected(frame)
    except (IndexError, BoxError):
        request = None
    return _decode_with_care(frame) if request is None else request


def _decode_expected(frame: bytes) -> Request | None:
    """Decode what clients usually send; give up, with None or an error, on anything else."""
    number = sync = schema_version = stream_id = 0
    count = frame[0] - 0x80
    if not 0 < count < 0x10:
        return None
    position = 1
    while count:
        count -= 1
        key = frame[position]
        value = frame[position + 1]
        position += 2
        if value >= 0x80:
            if not 0xCC <= value <= 0xCF:
                return None
            end = position + (1 << (value - 0xCC))
            value = int.from_bytes(frame[position:end], "big")
            position = end
        if key == 0:
            number = value & 0xFF
        elif key == 1:
            sync = value
        elif key == 5:
            schema_version = value & _U32
        elif key == 10:
            stream_id = value
        else:
            return None
    size = len(frame)
    body: dict[int, object] | None
    if number == _CALL:
        body = _expected_call(frame, position)
    elif number in _ROW_REQUIRED_SETS:
        body = _expected_row(frame, position, _ROW_REQUIRED_SETS[number])
    elif number in _NO_VALUES and position == size:
        body = {}
    else:
        return None
    if body is None:
        return None
    return Request(number, sync, schema_version, stream_id, body)


def _expected_call(frame: bytes, position: int) -> dict[int, object] | None:
    # Two keys that are both there are the two keys that are allowed, each once.
    if frame[position] != 0x82:
        return None
    body = codec.unpack(frame[position:])
    if (
        isinstance(body, dict)
        and len(body) == 2
        and type(body.get(_FUNCTION_NAME)) is str
        and type(body.get(_TUPLE)) is list
    ):
        return body
    return None


def _expected_row(frame: bytes, position: int, required: frozenset[int]) -> dict[int, object] | None:
    count = frame[position] - 0x80
    if not 0 < count < 0x10:
        return None
    position += 1
    size = len(frame)
    body: dict[int, object] = {}
    while count:
        count -= 1
        key = frame[position]
        value = frame[position + 1]
        if 0x10 <= key <= 0x15:
            position += 2
            if value >= 0x80:
                if not 0xCC <= value <= 0xCF:
                    return None
                end = position + (1 << (value - 0xCC))
                value = int.from_bytes(frame[position:end], "big") & _U32
                position = end
            body[key] = value
        elif key == 0x20 or key == 0x21 or key == 0x28:
            if not (0x90 <= value < 0xA0 or value == 0xDC or value == 0xDD):
                return None
            start = position + 1
            if count:
                position = _end_of_array(frame, start)
                body[key] = frame[start:position]
            else:
                array = frame[start:]
                if not codec.is_valid(array):
                    return None
                body[key] = array
                position = size
        else:
            return None
    if position != size or not required <= body.keys():
        return None
    return body


def _end_of_array(frame: bytes, start: int) -> int:
    """Find where an array ends; short for the keys of one number that most requests have."""
    first = frame[start]
    if first == 0x90:
        return start + 1
    if first == 0x91:
        item = frame[start + 1]
        if item < 0x80 or item >= 0xE0:
            return start + 2
        if 0xCC <= item <= 0xCF:
            return start + 2 + (1 << (item - 0xCC))
    return codec.skip(frame, start)


def _decode_with_care(frame: bytes) -> Request:
    header: dict[int, int] = {Key.REQUEST_TYPE: 0, Key.SYNC: 0, Key.SCHEMA_VERSION: 0, Key.STREAM_ID: 0}
    try:
        end = codec.skip(frame, 0)
        pairs = codec.split_map(frame[:end])
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
    try:
        body = _decode_body(sync, number, packed)
    except RequestError:
        raise
    except BoxError:  # Well-formed, but nested deeper than it may be to become values.
        raise RequestError(sync, ErrorCode.INVALID_MSGPACK, "packet body") from None
    return Request(number, sync, header[Key.SCHEMA_VERSION] & _U32, header[Key.STREAM_ID], body)


def _unsigned(raw: bytes) -> int:
    return raw[0] if len(raw) == 1 else int.from_bytes(raw[1:], "big")


def _decode_body(sync: int, number: int, packed: bytes) -> dict[int, object]:
    if number in _ROW_REQUIRED:
        return _decode_row(sync, number, packed)
    if number in _CALL_REQUIRED:
        body = _decode_checked(sync, packed, _CALL_KINDS, "missing request body", "packet body")
        _require(sync, body, _CALL_REQUIRED[number])
        body.setdefault(_TUPLE, [])
        return body
    if number == RequestType.AUTH:
        body = _decode_checked(sync, packed, _AUTH_KINDS, "missing request body", "packet body")
        _require(sync, body, Key.USER_NAME, Key.TUPLE)
        return body
    if number == RequestType.ID:
        body = _decode_checked(sync, packed, _ID_KINDS, "request body", "request body")
        features = body.get(Key.FEATURES)
        if isinstance(features, list) and not all(type(item) is int and item >= 0 for item in features):
            raise RequestError(sync, ErrorCode.INVALID_MSGPACK, "request body")
        return body
    if number in (RequestType.EXECUTE, RequestType.PREPARE):
        return _decode_sql(sync, packed)
    return {}


def _split_body(sync: int, packed: bytes, otherwise: str) -> list[tuple[bytes, bytes]]:
    if codec.kind(packed) is not Kind.MAP:
        raise RequestError(sync, ErrorCode.INVALID_MSGPACK, otherwise)
    return codec.split_map(packed)


def _require(sync: int, body: dict[int, object], *keys: Key) -> None:
    for key in keys:
        if key not in body:
            raise RequestError(sync, ErrorCode.MISSING_REQUEST_FIELD, KEY_NAMES[key])


def _decode_row(sync: int, number: int, packed: bytes) -> dict[int, object]:
    body: dict[int, object] = {}
    for key, value in _split_body(sync, packed, "packet body") if packed else ():
        wanted = _ROW_KINDS.get(key[0]) if len(key) == 1 else None
        if wanted is None:
            continue
        if codec.kind(value) is not wanted:
            raise RequestError(sync, ErrorCode.INVALID_MSGPACK, "packet body")
        if wanted is Kind.UINT:
            body[key[0]] = _unsigned(value) & _U32
        elif wanted is Kind.ARRAY:
            body[key[0]] = value
        else:
            body[key[0]] = codec.unpack(value)
    required = _ROW_REQUIRED[number]
    _require(sync, body, *(required[1:] if Key.SPACE_NAME in body else required))
    return body


def _decode_checked(
    sync: int, packed: bytes, kinds: dict[int, Kind], missing: str, otherwise: str
) -> dict[int, object]:
    """Unpack the keys in ``kinds`` and pass over the others, which must be numbers."""
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
            body[number] = codec.unpack(value)
    return body


def _decode_sql(sync: int, packed: bytes) -> dict[int, object]:
    if not packed:
        raise RequestError(sync, ErrorCode.INVALID_MSGPACK, "missing request body")
    pairs = _split_body(sync, packed, "packet body")
    body: dict[int, object] = {
        key[0]: codec.unpack(value) for key, value in pairs if len(key) == 1 and key[0] in _SQL_KEYS
    }
    if Key.SQL_TEXT in body and Key.STMT_ID in body:
        reason = "SQL text and statement id are incompatible options in one request: choose one"
        raise RequestError(sync, ErrorCode.INVALID_MSGPACK, reason)
    if Key.SQL_TEXT not in body and Key.STMT_ID not in body:
        names = f"{KEY_NAMES[Key.SQL_TEXT]} or {KEY_NAMES[Key.STMT_ID]}"
        raise RequestError(sync, ErrorCode.MISSING_REQUEST_FIELD, names)
    return body
