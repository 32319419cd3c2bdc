"""Hostile clients: each is a coroutine that runs until it is cancelled.

They use none of the server's code and know nothing but its address.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import struct
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection as Pipe
from typing import Any, Final, Self

import msgpack

from bench.client.iproto_frames import call_frame, frame, request_frame

Address = tuple[str, int]

_GREETING: Final = 128
_RECEIVE: Final = 2**16
_PAUSE: Final = 0.05
"""Seconds before a disconnected client connects again."""

_SLOW: Final = 0.01
_FLOOD: Final = 1000
_SELECT, _CALL, _PING = 1, 10, 64
_CLIENT_HELLO: Final = bytes.fromhex("160301 00a5 01 0000a1 0303") + bytes(range(160))
_HTTP: Final = b"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: x\r\nAccept: */*\r\n\r\n"


class HostileClient:
    """One hostile client.

    Parameters:
        address: the server's host and port.
        chance: the source of random values.
        done: counts connections and requests by name.

    Attributes:
        done: as above.
        is_connected: set when the first connection is established.
    """

    def __init__(self, address: Address, chance: random.Random, done: Counter[str]) -> None:
        self._address = address
        self._chance = chance
        self.done = done
        self._loop = asyncio.get_running_loop()
        self.is_connected = asyncio.Event()

    async def run(self, name: str, attack: Attack) -> None:
        """Repeat an attack, on a new connection whenever the server has closed the last one."""
        while True:
            with socket.socket() as one, suppress(OSError):
                if name in _DEAF:
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                one.setblocking(False)
                await self._loop.sock_connect(one, self._address)
                self.done[name] += 1
                self.is_connected.set()
                await attack(self, one)
            await asyncio.sleep(_PAUSE)

    async def send(self, one: socket.socket, data: bytes) -> None:
        """Send all of the data, without a time limit."""
        await self._loop.sock_sendall(one, data)

    async def _read_to_the_end(self, one: socket.socket) -> None:
        while await self._loop.sock_recv(one, _RECEIVE):
            """Discard what was read."""

    async def garbage(self, one: socket.socket) -> None:
        """Send random bytes."""
        await self.send(one, self._chance.randbytes(self._chance.randrange(1, 5000)))
        async with asyncio.timeout(1):
            await self._read_to_the_end(one)

    async def half_a_frame(self, one: socket.socket) -> None:
        """Send the beginning of a request, and nothing more."""
        whole = call_frame("queue.put", ["x" * 1000])
        await self.send(one, whole[: self._chance.randrange(1, len(whole))])
        await self._read_to_the_end(one)

    async def huge_length(self, one: socket.socket) -> None:
        """Announce the largest allowed request and send a mebibyte of it, or announce a larger one."""
        if self._chance.random() < 0.5:
            await self.send(one, b"\xcf\x7f" + bytes(7) + b"x" * 1000)
        else:
            await self.send(one, b"\xce\x0f\xff\xff\xff" + bytes(1 << 20))
        await self._read_to_the_end(one)

    async def deaf(self, one: socket.socket) -> None:
        """Request large answers, and read none of them."""
        rows = request_frame(_SELECT, {0x10: 281, 0x12: 1000, 0x14: 2, 0x20: []})
        while True:
            await self.send(one, (rows + call_frame("box.space.queue:select", [[], {"limit": 1000}])) * 50)
            self.done["requests of the deaf"] += 100

    async def flood(self, one: socket.socket) -> None:
        """Send requests as fast as the server accepts them, and read all answers."""
        block = (request_frame(_PING, {}) + call_frame("queue.stats", [])) * (_FLOOD // 2)
        reading = self._loop.create_task(self._read_to_the_end(one))
        try:
            while not reading.done():
                await self.send(one, block)
                self.done["requests of the flood"] += _FLOOD
        finally:
            reading.cancel()

    async def reset(self, one: socket.socket) -> None:
        """Take tasks and reset the connection, sometimes before the answers arrive."""
        await self.send(one, call_frame("queue.take", [5]) * 3)
        if self._chance.random() < 0.5:
            await self._loop.sock_recv(one, _RECEIVE)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    async def slow(self, one: socket.socket) -> None:
        """Send a request byte by byte."""
        for byte in call_frame("queue.stats", []):
            await self.send(one, bytes((byte,)))
            await asyncio.sleep(_SLOW)
        await self._loop.sock_recv(one, _RECEIVE)

    async def other_protocol(self, one: socket.socket) -> None:
        """Send TLS or HTTP."""
        await self.send(one, self._chance.choice([_CLIENT_HELLO, _HTTP]))
        async with asyncio.timeout(1):
            await self._read_to_the_end(one)

    async def unknown_type(self, one: socket.socket) -> None:
        """Send requests of unknown types or with wrong bodies."""
        block = b"".join(request_frame(kind, {0x10: 1, 0x30 + kind % 8: kind}) for kind in range(13, 256))
        await self._ask(one, block)

    async def deep(self, one: socket.socket) -> None:
        """Send deeply nested values, and arrays that claim to be long."""
        body = b"\x82\x22\xa4call\x21"
        head = msgpack.packb({0: _CALL, 1: 1}) + body
        inserted = msgpack.packb({0: 2, 1: 1}) + b"\x82\x10\xcd\x02\x00\x21\x91"
        nested = [head + b"\x91" * depth + b"\x01" for depth in (100, 900, 1100, 100_000)]
        claimed = [start + b"\xdd\xff\xff\xff\xff" * 500 for start in (head, inserted)]
        maps = [inserted + b"\x81\x01" * 5000 + b"\x01", head + b"\x91" + b"\xdf\x7f\xff\xff\xff" * 100]
        await self._ask(one, b"".join(map(frame, nested + claimed + maps)))

    async def _ask(self, one: socket.socket, block: bytes) -> None:
        """Send the same requests repeatedly, slowly enough to read the answers."""
        reading = self._loop.create_task(self._read_to_the_end(one))
        try:
            while not reading.done():
                await self.send(one, block)
                self.done["requests that are refused"] += 1
                await asyncio.sleep(_PAUSE)
        finally:
            reading.cancel()


Attack = Callable[[HostileClient, socket.socket], Coroutine[Any, Any, None]]
"""Attacks over one connection."""

ATTACKS: Final[Mapping[str, Attack]] = {
    "garbage": HostileClient.garbage,
    "half a frame": HostileClient.half_a_frame,
    "a huge length": HostileClient.huge_length,
    "never reads": HostileClient.deaf,
    "floods": HostileClient.flood,
    "resets": HostileClient.reset,
    "byte by byte": HostileClient.slow,
    "other protocols": HostileClient.other_protocol,
    "unknown types": HostileClient.unknown_type,
    "deep nesting": HostileClient.deep,
}
"""The attacks by name."""

_DEAF: Final = frozenset({"never reads"})


class HostileClients:
    """A process of hostile clients, as a context manager.

    Parameters:
        address: the server's host and port.
        count: the number of clients, spread evenly over the attacks.
        seed: the seed of their random values.
        attacks: the attacks by name; they must be picklable.
    """

    def __init__(
        self, address: Address, count: int, seed: int = 0, attacks: Mapping[str, Attack] = ATTACKS
    ) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        kinds = [*attacks.items()]
        mine = [kinds[number % len(kinds)] for number in range(count)]
        self._process = context.Process(target=_run, args=(address, mine, seed, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self._pipe.recv()

    def done(self) -> Counter[str]:
        """Count their connections by attack, and their requests, so far."""
        self._pipe.send(None)
        done = self._pipe.recv()
        assert isinstance(done, Counter)
        return done

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._pipe.close()
        self._process.join()


def _run(
    address: Address, attacks: list[tuple[str, Attack]], seed: int, pipe: Pipe[Counter[str] | None, None]
) -> None:
    # These clients stand for other machines, so they get only processor time that is idle otherwise.
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    asyncio.run(_attack(address, attacks, seed, pipe))


async def _attack(
    address: Address, attacks: list[tuple[str, Attack]], seed: int, pipe: Pipe[Counter[str] | None, None]
) -> None:
    done: Counter[str] = Counter()
    hostile = [HostileClient(address, random.Random(seed + number), done) for number in range(len(attacks))]
    tasks = [
        asyncio.create_task(client.run(name, attack))
        for client, (name, attack) in zip(hostile, attacks, strict=True)
    ]
    over = asyncio.Event()

    def asked() -> None:
        try:
            pipe.recv()
            pipe.send(done)
        except EOFError:
            over.set()

    loop = asyncio.get_running_loop()
    loop.add_reader(pipe.fileno(), asked)
    await asyncio.gather(*(client.is_connected.wait() for client in hostile))
    pipe.send(None)
    await over.wait()
    loop.remove_reader(pipe.fileno())
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
