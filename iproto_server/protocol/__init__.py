"""The wire protocol, without sockets and without a database: decodes requests and encodes responses.

A connection sends :func:`encode_greeting`, passes received bytes to its :class:`FrameDecoder`, decodes each
frame as a :class:`Request` with :func:`decode_request`, and responds with the ``encode_`` functions.
Responses may be in any order; their sync matches them to requests.
"""

from iproto_server.protocol.constants import Feature, Key, RequestType
from iproto_server.protocol.framing import FrameDecoder, FramingError
from iproto_server.protocol.greeting import encode_greeting
from iproto_server.protocol.request import Request, RequestError, decode_request
from iproto_server.protocol.response import encode_error, encode_id, encode_ok, encode_tuples

__all__ = [
    "Feature",
    "FrameDecoder",
    "FramingError",
    "Key",
    "Request",
    "RequestError",
    "RequestType",
    "decode_request",
    "encode_error",
    "encode_greeting",
    "encode_id",
    "encode_ok",
    "encode_tuples",
]
