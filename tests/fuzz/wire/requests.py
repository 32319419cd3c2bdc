"""Decoding requests from frames: what the model decodes, or the same error."""

from __future__ import annotations

from typing import Any, Final

from iproto_server.codec import msgpack as codec
from iproto_server.protocol.constants import Key, RequestType
from iproto_server.protocol.request import RequestError, decode_request
from tests.fuzz.target import Target
from tests.protocol.probes import ROW_TYPES
from tests.protocol.request_model import decode, decoded

GOOD: Final = codec.pack({0: 1, 1: 7}) + codec.pack({0x10: 512, 0x12: 3, 0x20: [1]})
_PACKED: Final = (Key.KEY, Key.TUPLE, Key.OPS)


def check(data: bytes) -> None:
    assert decoded(data) == decode(data)
    try:
        request = decode_request(data)
    except RequestError:
        return
    if request.type in ROW_TYPES:
        for key in _PACKED:
            raw: Any = request.body.get(key)
            assert raw is None or codec.kind(raw) is codec.Kind.ARRAY
            assert raw is None or codec.is_valid(raw)


def frame_of(kind: int, body: dict[Key, object], header: dict[int, object] | None = None) -> bytes:
    """Build a frame with the sync 5."""
    packed = codec.pack({int(key): value for key, value in body.items()})
    return codec.pack({0: int(kind), 1: 5, **(header or {})}) + packed


SEEDS: Final = [
    GOOD,
    codec.pack({0: 64, 1: 1}),
    codec.pack({0: 64, 1: 1, 5: 80}) + b"\xc0",
    frame_of(RequestType.INSERT, {Key.SPACE_ID: 512, Key.TUPLE: [1, "R", 1.5]}),
    frame_of(RequestType.REPLACE, {Key.SPACE_ID: 512, Key.TUPLE: [1, {"a": [None]}]}, {5: 80, 10: 3}),
    frame_of(
        RequestType.UPDATE,
        {Key.SPACE_ID: 512, Key.INDEX_ID: 0, Key.INDEX_BASE: 1, Key.KEY: [1], Key.TUPLE: [["=", 2, "T"]]},
    ),
    frame_of(RequestType.UPSERT, {Key.SPACE_ID: 512, Key.TUPLE: [1, 2], Key.OPS: [["+", 1, 1]]}),
    frame_of(RequestType.DELETE, {Key.SPACE_ID: 512, Key.KEY: [1], Key.SPACE_NAME: "s", Key.INDEX_NAME: "i"}),
    frame_of(RequestType.CALL, {Key.FUNCTION_NAME: "queue.take", Key.TUPLE: [1, {"a": b"x"}]}),
    frame_of(RequestType.CALL_16, {Key.FUNCTION_NAME: "f"}),
    frame_of(RequestType.EVAL, {Key.EXPR: "return 1", Key.TUPLE: []}),
    frame_of(RequestType.AUTH, {Key.USER_NAME: "guest", Key.TUPLE: ["chap-sha1", b"x" * 20]}),
    frame_of(RequestType.ID, {Key.VERSION: 3, Key.FEATURES: [0, 1], Key.AUTH_TYPE: "chap-sha1"}),
    frame_of(RequestType.EXECUTE, {Key.SQL_TEXT: "SELECT 1", Key.SQL_BIND: []}),
    frame_of(RequestType.BEGIN, {Key.TIMEOUT: 1.5, Key.TXN_ISOLATION: 2}, {10: 1}),
    b"\x83\0\xce\0\0\0\1\1\xcf" + bytes(7) + b"\1\5\xce\0\0\0\0" + codec.pack({0x10: 1, 0x12: 1, 0x20: []}),
]

TARGET: Final = Target(
    check,
    SEEDS,
    {"a space id packed as a signed number": b"\x82\0\2\1\5\x82\x10\xd1\2\0\x21\x93\1\0\0"},
)
