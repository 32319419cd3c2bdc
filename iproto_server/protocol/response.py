"""From results to bytes. Compiled code encodes the header of every response, and the responses with rows."""

from collections.abc import Sequence
from typing import Final

from iproto_server.codec import extensions
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError
from iproto_server.native._native import encode_response, encode_result, encode_tuples
from iproto_server.protocol.constants import CHUNK, ERROR_FLAG, Key, RequestType

__all__ = [
    "encode_chunk",
    "encode_error",
    "encode_event",
    "encode_id",
    "encode_ok",
    "encode_page",
    "encode_result",
    "encode_tuples",
    "response_sync",
    "response_version",
]

_EVENT_HEADER: Final = bytes((0x81, Key.REQUEST_TYPE, RequestType.EVENT))
_EMPTY_BODY: Final = b"\x80"
_ONE_VALUE: Final = bytes((0x81, Key.DATA)) + b"\xdd\x00\x00\x00\x01"


def encode_ok(sync: int, schema_version: int, body: bytes = _EMPTY_BODY) -> bytes:
    """Encode a response that says it went well.

    Args:
        sync: the request's own number, 64 bits.
        schema_version: the current one, 32 bits.
        body: a packed map; empty for PING and the like.

    Returns:
        The whole frame.
    """
    return encode_response(0, sync, schema_version, body)


def encode_page(sync: int, schema_version: int, raws: Sequence[bytes], position: str | None) -> bytes:
    """Encode a response that carries rows and the position of the last one.

    Args:
        sync: the request's own number.
        schema_version: the current one.
        raws: the rows, each a packed array.
        position: the position; None for none.

    Returns:
        The whole frame.
    """
    if position is None:
        return encode_tuples(sync, schema_version, raws)
    rows = b"\xdd" + len(raws).to_bytes(4, "big") + b"".join(raws)
    body = b"\x82" + bytes((Key.DATA,)) + rows + bytes((Key.POSITION,)) + codec.pack(position)
    return encode_ok(sync, schema_version, body)


def encode_error(sync: int, schema_version: int, error: BoxError) -> bytes:
    """Encode a response that says what went wrong: the text for older clients, the stack for newer ones.

    Args:
        sync: the request's own number, 0 if the fault came before it was read.
        schema_version: the current one.
        error: what went wrong.

    Returns:
        The whole frame, whatever is in the error: what cannot be packed is described or left out. Texts end
        at a zero byte, as they do in Tarantool, where they are C strings.
    """
    try:
        text = extensions.error_text(error.message)
        body = codec.pack({Key.ERROR_24.value: text, Key.ERROR.value: extensions.error_stack(error)})
    except BaseException:  # noqa: BLE001  # an application's class of errors may raise anything here
        body = _plain_error_body(error)
    code = (ERROR_FLAG | error.code) & 0xFFFFFFFF
    return encode_response(code, sync, schema_version, body)


def response_sync(response: bytes) -> int:
    """The number of the request that a whole frame answers."""
    return int.from_bytes(response[14:22], "big")


def response_version(response: bytes) -> int:
    """The schema version that a whole frame tells."""
    return int.from_bytes(response[24:28], "big")


def _plain_error_body(error: BoxError) -> bytes:
    try:
        text = str(extensions.error_text(error.message))
    except BaseException:  # noqa: BLE001  # the same as in `encode_error`
        text = type(error).__name__
    message = text.encode("utf-8", "backslashreplace").decode()
    plain = BoxError.with_message(error.code & 0xFFFFFFFF, message, type="ClientError")
    return codec.pack({Key.ERROR_24.value: message, Key.ERROR.value: extensions.error_stack(plain)})


def encode_chunk(sync: int, schema_version: int, data: bytes) -> bytes:
    """Encode a message that comes before the answer to a request (IPROTO_CHUNK).

    Args:
        sync: the request's own number.
        schema_version: the current one.
        data: the message, packed.

    Returns:
        The whole frame.
    """
    return encode_response(CHUNK, sync, schema_version, _ONE_VALUE + data)


def encode_event(key: str, data: bytes | None) -> bytes:
    """Encode the value of a key, for somebody who watches it (IPROTO_EVENT).

    It answers no request, so as in Tarantool 2.11 its header has neither a number nor a schema version.

    Args:
        key: the key's name.
        data: its value, packed; None where it has none.

    Returns:
        The whole frame.
    """
    body = bytes((0x81 if data is None else 0x82, Key.EVENT_KEY)) + codec.pack(key)
    if data is not None:
        body += bytes((Key.EVENT_DATA,)) + data
    return b"\xce" + (len(_EVENT_HEADER) + len(body)).to_bytes(4, "big") + _EVENT_HEADER + body


def encode_id(sync: int, schema_version: int, version: int, features: Sequence[int], auth_type: str) -> bytes:
    """Encode the answer to ID.

    Args:
        sync: the request's own number.
        schema_version: the current one.
        version: of the protocol.
        features: what this server can do, members of ``constants.Feature``.
        auth_type: the method of AUTH to use, such as ``"chap-sha1"``.

    Returns:
        The whole frame.
    """
    body = {
        Key.VERSION.value: version,
        Key.FEATURES.value: [int(feature) for feature in features],
        Key.AUTH_TYPE.value: auth_type,
    }
    return encode_ok(sync, schema_version, codec.pack(body))
