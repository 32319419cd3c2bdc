"""A Graphite server in the test's own process, and a reporter with a clock of the test's."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator

from iproto_server.config.address import Address
from iproto_server.metrics.graphite import GraphiteReporter
from iproto_server.metrics.graphite_sender import (
    TcpSender,
    UdpSender,
)

Run = Callable[[Awaitable[None]], None]


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition that another task or the kernel is about to bring."""
    for _ in range(20_000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it never came")


class Clock:
    """A clock that stands until it is moved; it serves as the wall clock and as the monotonic one."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class Sleeps:
    """Stands in for the waits between attempts: notes them, and lets each pass when the test says so."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self._gate = asyncio.Semaphore(0)

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)
        await self._gate.acquire()

    async def asked_for(self, count: int) -> None:
        """Wait until a wait has begun for the count-th time."""
        await until(lambda: len(self.asked) == count)

    def let_pass(self, count: int = 1) -> None:
        for _ in range(count):
            self._gate.release()


class Receiver:
    """A TCP receiver that accepts, reads and closes only when the test says so."""

    def __init__(self, port: int = 0) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Little room in the kernel, so that it is soon noticed when nobody reads.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._socket.bind(("127.0.0.1", port))
        self._socket.listen()
        self._socket.setblocking(False)
        self.address = Address("127.0.0.1", self._socket.getsockname()[1])

    async def accept(self) -> ReceivedConnection:
        sock, _ = await asyncio.get_running_loop().sock_accept(self._socket)
        sock.setblocking(False)
        return ReceivedConnection(sock)

    def close(self) -> None:
        self._socket.close()


class ReceivedConnection:
    """The receiver's end of a connection, and what it has read so far."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self.data = b""

    async def read(self) -> bool:
        """Read something; False at the end."""
        chunk = await asyncio.get_running_loop().sock_recv(self._socket, 65536)
        self.data += chunk
        return bool(chunk)

    async def read_lines(self, count: int) -> list[bytes]:
        """Read until there are this many lines in all."""
        while self.data.count(b"\n") < count:
            assert await self.read(), "the connection was closed"
        return self.data.splitlines()

    async def read_to_end(self) -> bytes:
        while await self.read():
            pass
        return self.data

    def reset(self) -> None:
        """Close so that the other end gets "connection reset"."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def close(self) -> None:
        self._socket.close()


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    with socket.socket(socket.AF_INET, kind) as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


class Counters:
    """The queue's four counters, and as many others as a test wants."""

    def __init__(self, more: int = 0) -> None:
        self.total = 0
        self.more = more

    def __call__(self) -> Iterator[tuple[str, int | float]]:
        self.total += 1
        yield from (("total", self.total), ("ready", 2), ("waiting", 0), ("taken", 1))
        yield from ((f"counter{number}", number) for number in range(self.more))


def reporter(
    sender: TcpSender | UdpSender, clock: Clock, counters: Counters | None = None
) -> GraphiteReporter:
    """A reporter whose samples a test takes itself, with `tick`."""
    return GraphiteReporter(
        Address("unused"), "tcp", "queue.stats", 3600.0, counters or Counters(), clock=clock, sender=sender
    )


async def connect(receiver: Receiver, sender: TcpSender) -> ReceivedConnection:
    """Wait until both ends know that they are connected."""
    connection = await receiver.accept()
    await until(lambda: sender.connected)
    return connection
