"""Tarantool 1.5's binary protocol, without sockets and without a database.

There is no greeting. A request is a header of three little-endian numbers (type, length of the body, number
of the request) and a body. The response has the same type and number, so several requests may be in flight.
Fields are bytes preceded by their length; their meaning depends on the space.

Source: `doc/box-protocol.txt` of Tarantool 1.5.5, otherwise the behaviour of 1.5.5.
"""

from iproto_server.native._native import FrameDecoder15
from iproto_server.protocol.tarantool15.constants import Flag, RequestType15, UpdateCode
from iproto_server.protocol.tarantool15.request import (
    Call,
    Delete,
    Header,
    Insert,
    Select,
    Update,
    decode_body,
    decode_header,
)
from iproto_server.protocol.tarantool15.response import encode_error, encode_pong, encode_tuples
from iproto_server.protocol.tarantool15.return_code import ReturnCode, return_code
from iproto_server.protocol.tarantool15.update_operations import Field, apply_operations, decode_operations

__all__ = [
    "Call",
    "Delete",
    "Field",
    "Flag",
    "FrameDecoder15",
    "Header",
    "Insert",
    "RequestType15",
    "ReturnCode",
    "Select",
    "Update",
    "UpdateCode",
    "apply_operations",
    "decode_body",
    "decode_header",
    "decode_operations",
    "encode_error",
    "encode_pong",
    "encode_tuples",
    "return_code",
]
