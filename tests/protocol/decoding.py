"""Requests decoded by the server, or refused."""

from typing import Any

import msgpack
from hypothesis import strategies as st

from iproto_server.codec import msgpack as codec
from iproto_server.protocol import Request
from tests.codec.test_msgpack import values
from tests.protocol.probes import GOOD_BODIES


def parts(request: Request) -> tuple[int, int, int, int, dict[int, object]]:
    return request.type, request.sync, request.schema_version, request.stream_id, request.body


def pairs(keys: st.SearchStrategy[Any], items: st.SearchStrategy[Any], most: int) -> st.SearchStrategy[bytes]:
    """A packed map, in which keys may be repeated."""
    packed = st.tuples(keys.map(codec.pack), items.map(codec.pack)).map(b"".join)
    return st.lists(packed, max_size=most).map(lambda found: bytes((0x80 + len(found),)) + b"".join(found))


numbers = st.integers(0, 3) | st.integers(0, 2**64 - 1)
items = numbers | st.lists(values, max_size=3) | st.text(max_size=3) | st.floats() | values
keys = st.sampled_from([*range(0x10, 0x16), 0x1F, *range(0x20, 0x30), *range(0x40, 0x44), *range(0x54, 0x60)])
any_headers = pairs(st.sampled_from([0, 1, 5, 10, 2, 3, 4, 0x21, 0x52, 0x60, -1, 300, "a"]), items, 5)
good_headers = st.builds(
    lambda number, sync, rest: msgpack.packb({0: number, 1: sync, **rest}),
    st.sampled_from([*range(17), 64, 73, 74, 75, 77, 99, 266, 2**40 + 10]),
    numbers,
    st.fixed_dictionaries({}, optional={5: st.integers(0, 2**34), 10: st.integers(0, 3)}),
)
any_bodies = pairs(keys | st.integers(-1, 300) | values, items, 6) | values.map(codec.pack) | st.just(b"")
good_bodies = st.sampled_from([*GOOD_BODIES.values()]).flatmap(
    lambda body: st.dictionaries(keys, items, max_size=2).map(lambda more: codec.pack({**body, **more}))
)
frames = st.builds(
    lambda head, body: head + body, good_headers | any_headers, good_bodies | good_bodies | any_bodies
)
