"""The wire, without sockets and without a database: bytes in, requests out; results in, bytes out.

A connection greets with :func:`encode_greeting`, feeds what it receives to its :class:`FrameDecoder`, turns
each frame into a :class:`Request` with :func:`decode_request`, and answers with one of the ``encode_``
functions, in any order: the sync tells which answer belongs to which request.
"""

from iproto_server.protocol.constants import Feature, IteratorType, Key, RequestType
from iproto_server.protocol.framing import FrameDecoder, FramingError
from iproto_server.protocol.greeting import encode_greeting
from iproto_server.protocol.request import Request, RequestError, decode_request
from iproto_server.protocol.response import encode_error, encode_id, encode_ok, encode_tuples

__all__ = [
    "Feature",
    "FrameDecoder",
    "FramingError",
    "IteratorType",
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
