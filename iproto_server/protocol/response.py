"""From results to bytes.

Every response has a length of 5 bytes and a header of 23, whatever the numbers in them: some clients read
the fields at fixed places, because Tarantool writes them so.
"""

import struct
from collections.abc import Sequence
from typing import Final

from iproto_server import codec, ext
from iproto_server.errors import BoxError
from iproto_server.protocol.constants import ERROR_FLAG, Key

HEADER_SIZE: Final = 23

_OK_START: Final = b"\x83\x00\xce\x00\x00\x00\x00\x01\xcf"
_SCHEMA_VERSION: Final = b"\x05\xce"
_DATA: Final = b"\x81\x30"
_EMPTY_BODY: Final = b"\x80"

_pack_ok = struct.Struct(">cI9sQ2sI").pack
_pack_data = struct.Struct(">cI9sQ2sI2s").pack
_pack_tuples = struct.Struct(">cI9sQ2sI3sI").pack
_pack_error = struct.Struct(">cI3sI2sQ2sI").pack


def encode_ok(sync: int, schema_version: int, body: bytes = _EMPTY_BODY) -> bytes:
    """Encode a response that says it went well.

    Args:
        sync: the request's own number, 64 bits.
        schema_version: the current one, 32 bits.
        body: a packed map; empty for PING and the like.

    Returns:
        The whole frame.
    """
    return _pack_ok(b"\xce", 23 + len(body), _OK_START, sync, _SCHEMA_VERSION, schema_version) + body


def encode_data(sync: int, schema_version: int, data: bytes) -> bytes:
    """Encode a response that carries values.

    Args:
        sync: the request's own number.
        schema_version: the current one.
        data: a packed array: the rows that were found, or the values that a procedure returned.

    Returns:
        The whole frame.
    """
    length = 25 + len(data)
    return _pack_data(b"\xce", length, _OK_START, sync, _SCHEMA_VERSION, schema_version, _DATA) + data


def encode_tuples(sync: int, schema_version: int, raws: Sequence[bytes]) -> bytes:
    """Encode a response that carries rows, which are joined and not packed again.

    Args:
        sync: the request's own number.
        schema_version: the current one.
        raws: the rows, each a packed array.

    Returns:
        The whole frame.
    """
    rows = b"".join(raws)
    length = 30 + len(rows)
    start = _pack_tuples(
        b"\xce", length, _OK_START, sync, _SCHEMA_VERSION, schema_version, b"\x81\x30\xdd", len(raws)
    )
    return start + rows


def encode_error(sync: int, schema_version: int, error: BoxError) -> bytes:
    """Encode a response that says what went wrong: the text for older clients, the stack for newer ones.

    Args:
        sync: the request's own number, 0 if the fault came before it was read.
        schema_version: the current one.
        error: what went wrong.

    Returns:
        The whole frame, whatever is in the error: what cannot be packed is described or left out.
    """
    try:
        body = codec.pack({Key.ERROR_24.value: error.message, Key.ERROR.value: ext.error_stack(error)})
    except BoxError:
        body = _plain_error_body(error)
    code = (ERROR_FLAG | error.code) & 0xFFFFFFFF
    start = _pack_error(
        b"\xce", 23 + len(body), b"\x83\x00\xce", code, b"\x01\xcf", sync, _SCHEMA_VERSION, schema_version
    )
    return start + body


def response_sync(response: bytes) -> int:
    """The number of the request that a whole frame answers."""
    return int.from_bytes(response[14:22], "big")


def response_version(response: bytes) -> int:
    """The schema version that a whole frame tells."""
    return int.from_bytes(response[24:28], "big")


def _plain_error_body(error: BoxError) -> bytes:
    message = error.message.encode("utf-8", "backslashreplace").decode()
    plain = BoxError.with_message(error.code & 0xFFFFFFFF, message, type="ClientError")
    return codec.pack({Key.ERROR_24.value: message, Key.ERROR.value: ext.error_stack(plain)})


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
