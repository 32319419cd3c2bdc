"""Servers with low limits, and what clients send them."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from iproto_server import Application, Box, ManualClock
from iproto_server.config.address import Address
from iproto_server.protocol.constants import Key, RequestType
from iproto_server.server.limits.connection_deadlines import TICK
from tests.iproto_client import frame
from tests.server.in_process import ServerInProcess

KIBIBYTE, MEBIBYTE = 2**10, 2**20
app = Application("limits")


@app.setup
def setup(box: Box) -> None:
    box.schema.user.create("alice", password="secret", if_not_exists=True)
    box.schema.user.grant("alice", "execute", "universe", if_not_exists=True)


@app.procedure("become")
def become(box: Box, user: str) -> None:
    box.session.su(user)


@app.procedure("as_admin")
def as_admin(box: Box) -> None:
    with box.session.su("admin"):
        pass


@app.procedure("size")
def size(box: Box, data: bytes) -> int:
    return len(data)


class Limited(ServerInProcess):
    """A server on which only `alice` has rights, and whose deadlines pass when the test says so."""

    def __init__(self, work_dir: Path, **options: Any) -> None:
        listen = (Address("127.0.0.1", 0),)
        options = {"guest": "none", "listen": listen, "listen_1_5": listen, **options}
        super().__init__(work_dir, [app], **options)
        self.clock = ManualClock()

    def __enter__(self) -> Limited:
        super().__enter__()
        self.server.state.deadlines._clock = self.clock
        return self

    def in_loop(self, function: Callable[[], Any]) -> Any:
        """Call something in the server's loop."""

        async def call() -> Any:
            await asyncio.sleep(0)
            return function()

        return self.run(call())

    def pass_time(self, seconds: float) -> None:
        """Let the time of deadlines pass, and a little more."""

        async def advance() -> None:
            for _ in range(int(seconds / TICK) + 2):
                self.clock.advance(TICK)
                await asyncio.sleep(0)
                await asyncio.sleep(0)

        self.run(advance())

    def counter(self, name: str) -> float:
        """A counter of the server's."""
        counters: dict[str, float] = self.in_loop(lambda: dict(self.server.metrics()))
        return counters[f"server.{name}"]

    def refused(self) -> dict[str, float]:
        """How many connections were closed, by the limit."""
        counters: dict[str, float] = self.in_loop(lambda: dict(self.server.metrics()))
        start = "server.refused."
        names = [name for name in counters if name.startswith(start)]
        return {name.removeprefix(start): counters[name] for name in names if counters[name]}

    def wait_for_buffered(self, size: int) -> None:
        """Wait until so many bytes have arrived that are no request yet."""

        while self.in_loop(lambda: self.server.state.incoming.buffered) != size:
            """It is on its way."""


Start = Callable[..., Limited]


def call_of(count: int, sync: int = 0) -> bytes:
    """A CALL of `size` with so many bytes."""
    return frame(RequestType.CALL, {Key.FUNCTION_NAME: "size", Key.TUPLE: [bytes(count)]}, sync=sync)


def ping_of(count: int) -> bytes:
    """A PING that is a frame of so many bytes, its length not counted."""
    body = b"\xc6" + struct.pack(">I", count - 10) + bytes(count - 10)
    packed = b"\x82\x00\x40\x01\x05" + body
    assert len(packed) == count
    return b"\xce" + struct.pack(">I", count) + packed
