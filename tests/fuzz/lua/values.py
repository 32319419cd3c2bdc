"""Values: any bytes as values of Lua, and what these are as MessagePack, JSON and YAML."""

from __future__ import annotations

import asyncio
from functools import cache
from pathlib import Path
from typing import Any, Final

from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError
from iproto_server.lua.fibers import FiberRuntime
from iproto_server.lua.limits import LuaLimits
from tests.fuzz.draw import Draw
from tests.fuzz.target import Target

CODE: Final = Path(__file__).with_name("values.lua")
MEMORY: Final = 256 << 20
"""The maximum bytes of Lua's objects."""


@cache
def functions() -> Any:
    """Load the functions of Lua that are tested."""
    runtime = FiberRuntime(asyncio.new_event_loop(), limits=LuaLimits(memory=MEMORY))
    return runtime.call(runtime.load(CODE.read_bytes(), b"@values.lua"))


def check(data: bytes) -> None:
    draw = Draw(data)
    packed = codec.pack(draw.value(5)) if draw.byte() % 4 == 0 else draw.rest()
    again = functions()[b"values"](packed)
    if again is None:
        return
    assert codec.is_valid(again), again
    try:
        has_maps = b"{" in repr(codec.unpack(again)).encode("utf-8", "replace")
    except BoxError:
        return
    # Maps have no order, and keys that are integers of C stay apart.
    if not has_maps:
        third = functions()[b"values"](again)
        assert third == again, (again, third)


TARGET: Final = Target(
    check,
    [
        bytes(12),
        *(
            b"\1" + codec.pack(value)
            for value in (
                [1, -1, 2**63, 1.5, "text", b"bytes", None, True],
                {"a": {"b": [1, 2, 3]}, 1: 2, -5: {}},
                [[], [[]], {}, "x" * 40, "y" * 300, 2**60, -(2**60)],
                [codec.ExtType(1, b"\2\1\x2c"), codec.ExtType(2, bytes(16)), codec.ExtType(9, b"")],
                [codec.ExtType(3, codec.pack({0: [{0: "T", 1: "f", 2: 1, 3: "m", 4: 0, 5: 7, 6: {}}]}))],
            )
        ),
        b"\1\x82\x81\1\2\3\x81\1\x91\2\3",
        b"\1\xdd\0\0\0\2\xca\x3f\x80\0\0\xc0",
        b"\1" + b"\x91" * 50 + b"\xc0",
        b"\1" + b"\x91" * 200 + b"\xc0",
        b'\1{"a": [1, 2.5, null, {"b": "\\u00e9"}]}',
        b"\1a: [1, 2, {b: !!binary AAAA}]\nc: &x 1\nd: *x\n",
    ],
    memory=64 << 20,
)
