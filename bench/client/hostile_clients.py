"""Clients that do not behave: each is a coroutine that goes on until it is cancelled.

They share nothing with the server's code. What they know about it is where it listens.
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
"""Seconds between two tries of those who are thrown out each time."""

_SLOW: Final = 0.01
_FLOOD: Final = 1000
_SELECT, _CALL, _PING = 1, 10, 64
_CLIENT_HELLO: Final = bytes.fromhex("160301 00a5 01 0000a1 0303") + bytes(range(160))
_HTTP: Final = b"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: x\r\nAccept: */*\r\n\r\n"


class Offender:
    """One client that does not behave.

    Parameters:
        address: the server's host and port.
        chance: what it draws from.
        done: counts what it did, by name.

    Attributes:
        done: as above.
        has_begun: is set when it has its first connection.
    """

    def __init__(self, address: Address, chance: random.Random, done: Counter[str]) -> None:
        self._address = address
        self._chance = chance
        self.done = done
        self._loop = asyncio.get_running_loop()
        self.has_begun = asyncio.Event()

    async def offend(self, name: str, conduct: Conduct) -> None:
        """Do the same again and again, on a new connection when the server has closed the last."""
        while True:
            with socket.socket() as one, suppress(OSError):
                if name in _DEAF:
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                one.setblocking(False)
                await self._loop.sock_connect(one, self._address)
                self.done[name] += 1
                self.has_begun.set()
                await conduct(self, one)
            await asyncio.sleep(_PAUSE)

    async def send(self, one: socket.socket, data: bytes) -> None:
        """Send all of it, however long that takes."""
        await self._loop.sock_sendall(one, data)

    async def _read_to_the_end(self, one: socket.socket) -> None:
        while await self._loop.sock_recv(one, _RECEIVE):
            """Whatever it is."""

    async def garbage(self, one: socket.socket) -> None:
        """Random bytes."""
        await self.send(one, self._chance.randbytes(self._chance.randrange(1, 5000)))
        async with asyncio.timeout(1):
            await self._read_to_the_end(one)

    async def half_a_frame(self, one: socket.socket) -> None:
        """The beginning of a request, and nothing more, for ever."""
        whole = call_frame("queue.put", ["x" * 1000])
        await self.send(one, whole[: self._chance.randrange(1, len(whole))])
        await self._read_to_the_end(one)

    async def huge_length(self, one: socket.socket) -> None:
        """A request that is as large as may be, of which a mebibyte comes; or one that is even larger."""
        if self._chance.random() < 0.5:
            await self.send(one, b"\xcf\x7f" + bytes(7) + b"x" * 1000)
        else:
            await self.send(one, b"\xce\x0f\xff\xff\xff" + bytes(1 << 20))
        await self._read_to_the_end(one)

    async def deaf(self, one: socket.socket) -> None:
        """Asks for much, and reads nothing of it."""
        rows = request_frame(_SELECT, {0x10: 281, 0x12: 1000, 0x14: 2, 0x20: []})
        while True:
            await self.send(one, (rows + call_frame("box.space.queue:select", [[], {"limit": 1000}])) * 50)
            self.done["requests of the deaf"] += 100

    async def flood(self, one: socket.socket) -> None:
        """As many requests as the server takes, all answers read."""
        block = (request_frame(_PING, {}) + call_frame("queue.stats", [])) * (_FLOOD // 2)
        reading = self._loop.create_task(self._read_to_the_end(one))
        try:
            while not reading.done():
                await self.send(one, block)
                self.done["requests of the flood"] += _FLOOD
        finally:
            reading.cancel()

    async def reset(self, one: socket.socket) -> None:
        """Takes tasks and is gone without a farewell, at times before the answers."""
        await self.send(one, call_frame("queue.take", [5]) * 3)
        if self._chance.random() < 0.5:
            await self._loop.sock_recv(one, _RECEIVE)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    async def slow(self, one: socket.socket) -> None:
        """Sends requests byte by byte."""
        for byte in call_frame("queue.stats", []):
            await self.send(one, bytes((byte,)))
            await asyncio.sleep(_SLOW)
        await self._loop.sock_recv(one, _RECEIVE)

    async def other_protocol(self, one: socket.socket) -> None:
        """Speaks TLS or HTTP."""
        await self.send(one, self._chance.choice([_CLIENT_HELLO, _HTTP]))
        async with asyncio.timeout(1):
            await self._read_to_the_end(one)

    async def unknown_type(self, one: socket.socket) -> None:
        """Requests that there are not, or that have the wrong body."""
        block = b"".join(request_frame(kind, {0x10: 1, 0x30 + kind % 8: kind}) for kind in range(13, 256))
        await self._ask(one, block)

    async def deep(self, one: socket.socket) -> None:
        """Values inside values inside values, and arrays that are said to be long."""
        body = b"\x82\x22\xa4call\x21"
        head = msgpack.packb({0: _CALL, 1: 1}) + body
        inserted = msgpack.packb({0: 2, 1: 1}) + b"\x82\x10\xcd\x02\x00\x21\x91"
        nested = [head + b"\x91" * depth + b"\x01" for depth in (100, 900, 1100, 100_000)]
        claimed = [start + b"\xdd\xff\xff\xff\xff" * 500 for start in (head, inserted)]
        maps = [inserted + b"\x81\x01" * 5000 + b"\x01", head + b"\x91" + b"\xdf\x7f\xff\xff\xff" * 100]
        await self._ask(one, b"".join(map(frame, nested + claimed + maps)))

    async def _ask(self, one: socket.socket, block: bytes) -> None:
        """Send some requests ever again, slowly enough to read the answers."""
        reading = self._loop.create_task(self._read_to_the_end(one))
        try:
            while not reading.done():
                await self.send(one, block)
                self.done["requests that are refused"] += 1
                await asyncio.sleep(_PAUSE)
        finally:
            reading.cancel()


Conduct = Callable[[Offender, socket.socket], Coroutine[Any, Any, None]]
"""What a client does with a connection."""

CONDUCTS: Final[Mapping[str, Conduct]] = {
    "garbage": Offender.garbage,
    "half a frame": Offender.half_a_frame,
    "a huge length": Offender.huge_length,
    "never reads": Offender.deaf,
    "floods": Offender.flood,
    "resets": Offender.reset,
    "byte by byte": Offender.slow,
    "other protocols": Offender.other_protocol,
    "unknown types": Offender.unknown_type,
    "deep nesting": Offender.deep,
}
"""What there is, by its name."""

_DEAF: Final = frozenset({"never reads"})


class Offenders:
    """A process with clients of all kinds in it. Use as a context manager.

    Parameters:
        address: the server's host and port.
        count: how many clients; each kind has its share.
        seed: what they draw from.
        conducts: what they do, by name; it can be pickled.
    """

    def __init__(
        self, address: Address, count: int, seed: int = 0, conducts: Mapping[str, Conduct] = CONDUCTS
    ) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        kinds = [*conducts.items()]
        mine = [kinds[number % len(kinds)] for number in range(count)]
        self._process = context.Process(target=_run, args=(address, mine, seed, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self._pipe.recv()

    def done(self) -> Counter[str]:
        """What they have done so far: connections by the kind of conduct, and requests."""
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
    address: Address, conducts: list[tuple[str, Conduct]], seed: int, pipe: Pipe[Counter[str] | None, None]
) -> None:
    # These clients would be on other machines: here they get only the processor time that nobody else wants.
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    asyncio.run(_offend(address, conducts, seed, pipe))


async def _offend(
    address: Address, conducts: list[tuple[str, Conduct]], seed: int, pipe: Pipe[Counter[str] | None, None]
) -> None:
    done: Counter[str] = Counter()
    offenders = [Offender(address, random.Random(seed + number), done) for number in range(len(conducts))]
    tasks = [
        asyncio.create_task(offender.offend(name, conduct))
        for offender, (name, conduct) in zip(offenders, conducts, strict=True)
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
    await asyncio.gather(*(offender.has_begun.wait() for offender in offenders))
    pipe.send(None)
    await over.wait()
    loop.remove_reader(pipe.fileno())
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
