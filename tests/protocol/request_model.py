"""A slow model of the request decoder, which cuts packed maps with the functions of `codec`.

`decode` returns the parts of a request, or of the error that `decode_request` must raise.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from iproto_server.codec import msgpack as codec
from iproto_server.codec.msgpack import Kind
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.protocol.constants import Key, RequestType
from iproto_server.protocol.request import RequestError, decode_request

_U32: Final = 0xFFFFFFFF

# The keys up to 0x2b have a kind even where a header has no use for them; those up to 0x52 have none, and nil
# is accepted.
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
_CALL_REQUIRED: Final[dict[int, Key]] = {
    RequestType.CALL: Key.FUNCTION_NAME,
    RequestType.CALL_16: Key.FUNCTION_NAME,
    RequestType.EVAL: Key.EXPR,
}

_PAIRS_MAX: Final = 1024
_NAMES: Final = {
    Key.SPACE_ID: "space id",
    Key.LIMIT: "limit",
    Key.KEY: "key",
    Key.TUPLE: "tuple",
    Key.FUNCTION_NAME: "function name",
    Key.USER_NAME: "user name",
    Key.EXPR: "expression",
    Key.OPS: "operations",
    Key.SQL_TEXT: "SQL text",
    Key.STMT_ID: "stmt id",
    Key.EVENT_KEY: "event key",
}
_NUMBERS_ONLY: Final = re.compile(rb"(?:[\x00-\x7f]|\xcc.|\xcd.{2}|\xce.{4}|\xcf.{8})*+", re.DOTALL)


class Parts(NamedTuple):
    """The parts of a request; the body as representations of its values by key."""

    type: int
    sync: int
    schema_version: int
    stream_id: int
    body: dict[int, str]


class Refusal(NamedTuple):
    """The parts of an error."""

    sync: int
    code: int
    message: str


def decode(frame: bytes) -> Parts | Refusal:
    """Decode a frame."""
    try:
        return _decode(frame)
    except RequestError as error:
        return Refusal(error.sync, error.code, error.message)


def decoded(frame: bytes) -> Parts | Refusal:
    """Decode a frame with the server's decoder."""
    try:
        request = decode_request(frame)
    except RequestError as error:
        return Refusal(error.sync, error.code, error.message)
    return _parts(request.type, request.sync, request.schema_version, request.stream_id, request.body)


def _parts(kind: int, sync: int, schema_version: int, stream_id: int, body: dict[int, object]) -> Parts:
    return Parts(kind, sync, schema_version, stream_id, {key: repr(value) for key, value in body.items()})


def _decode(frame: bytes) -> Parts:
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
    return _parts(number, sync, header[Key.SCHEMA_VERSION] & _U32, header[Key.STREAM_ID], body)


def _unsigned(raw: bytes) -> int:
    return raw[0] if len(raw) == 1 else int.from_bytes(raw[1:], "big")


def _decode_body(sync: int, number: int, packed: bytes) -> dict[int, object]:
    if number in _ROW_REQUIRED:
        return _decode_row(sync, number, packed)
    if number in _CALL_REQUIRED:
        body = _decode_checked(sync, packed, _CALL_KINDS, "missing request body", "packet body")
        _require(sync, body, _CALL_REQUIRED[number])
        body.setdefault(Key.TUPLE.value, _NO_ITEMS)
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
    if codec.kind(packed) is Kind.MAP and codec.map_count(packed) > _PAIRS_MAX:
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
            raise RequestError(sync, ErrorCode.MISSING_REQUEST_FIELD, _NAMES[key])


def _decode_row(sync: int, number: int, packed: bytes) -> dict[int, object]:
    body: dict[int, object] = {}
    for key, value in _split_body(sync, packed, "packet body") if packed else ():
        if codec.kind(key) is not Kind.UINT or len(key) > 1:
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
        names = f"{_NAMES[Key.SQL_TEXT]} or {_NAMES[Key.STMT_ID]}"
        raise RequestError(sync, ErrorCode.MISSING_REQUEST_FIELD, names)
    return body
