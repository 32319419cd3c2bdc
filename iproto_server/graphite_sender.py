"""How a sample of counters reaches the Graphite receiver: over TCP or UDP, without ever waiting for it.

When the receiver is dead, slow or flapping, samples are dropped instead of queued, so a connection holds at
most BUFFER_LIMIT bytes (or one sample, when that is more). A sample goes out whole or not at all, and a new
connection starts with a new sample, so that no receiver ever joins two halves of different lines.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import random
import socket
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from iproto_server.address import Address
from iproto_server.logs import event

logger = logging.getLogger("iproto_server.graphite")

#: Bytes that may wait in a TCP connection to a slow receiver; beyond it samples are dropped.
BUFFER_LIMIT = 64 * 1024

#: Largest datagram; with the IP and UDP headers it fits an Ethernet frame.
DATAGRAM_SIZE = 1400

#: A connection that took nothing for this many seconds is replaced: its other end may be gone without a word.
STALL_SECONDS = 30.0

#: A connection that lived this long was a working one: the next reconnect is quick again.
STABLE_SECONDS = 10.0

#: How long one attempt to connect may take.
CONNECT_SECONDS = 5.0

#: The receiver's name is looked up again this often for UDP, which has no connection to lose.
RESOLVE_SECONDS = 60.0

FIRST_BACKOFF, MAX_BACKOFF = 0.5, 30.0

Sample = list[bytes]
Sleep = Callable[[float], Awaitable[object]]


class Sender(Protocol):
    """Brings samples to a receiver, or drops them; never waits and never raises."""

    def start(self) -> None:
        """Begin to connect, on the running loop."""

    def send(self, lines: Sample) -> bool:
        """Take a sample's lines; False when they were dropped."""

    async def stop(self, grace: float) -> None:
        """Send what was taken, for at most `grace` seconds, and let everything go."""


def backoff(attempt: int, uniform: Callable[[float, float], float] = random.uniform) -> float:
    """Seconds to wait before the next attempt: doubling up to MAX_BACKOFF, of which a random half is taken
    off.

    Parameters:
        attempt: how many attempts have failed since the last working connection, from 0.
        uniform: makes the random number, so that many servers do not all come back at once.
    """
    bound = min(MAX_BACKOFF, FIRST_BACKOFF * 2.0 ** min(attempt, 30))
    return uniform(bound / 2, bound)


async def resolve(
    address: Address, kind: socket.SocketKind
) -> list[tuple[socket.AddressFamily, tuple[object, ...]]]:
    """Look the receiver up, in the loop's thread pool.

    Returns:
        What to connect to, best first, as (address family, socket address).

    Raises:
        OSError: the name is not known.
    """
    found = await asyncio.get_running_loop().getaddrinfo(address.host, address.port, type=kind)
    return [(family, sockaddr) for family, _, _, _, sockaddr in found]


class TcpSender:
    """Keeps one TCP connection, and writes a sample only while the connection has room for it.

    Parameters:
        address: the receiver.
        sleep: waits between attempts to connect.
        clock: a monotonic clock in seconds.
    """

    def __init__(
        self, address: Address, *, sleep: Sleep = asyncio.sleep, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._address = address
        self._sleep = sleep
        self._clock = clock
        self._connection: _Connection | None = None
        self._task: asyncio.Task[None] | None = None
        self._reported: str | None = None
        self._least = 0
        self._moved_at = 0.0

    @property
    def connected(self) -> bool:
        """Whether there is a connection now."""
        return self._connection is not None

    @property
    def buffered(self) -> int:
        """Bytes that wait in the connection for a slow receiver."""
        return self._connection.transport.get_write_buffer_size() if self._connection else 0

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._keep_connected(), name="graphite")

    def send(self, lines: Sample) -> bool:
        connection = self._connection
        if connection is None or connection.transport.is_closing():
            return False
        data = b"".join(lines)
        waiting = connection.transport.get_write_buffer_size()
        if waiting and waiting + len(data) > BUFFER_LIMIT:
            self._watch_stall(connection, waiting)
            return False
        connection.transport.write(data)
        # What this adds is not to be taken for the receiver's standing still.
        self._least = connection.transport.get_write_buffer_size()
        self._moved_at = self._clock()
        return True

    async def stop(self, grace: float) -> None:
        task, connection = self._task, self._connection
        if task is None:
            return
        if connection is not None:
            connection.transport.close()
            await asyncio.wait([connection.lost], timeout=grace)
            connection.transport.abort()
        task.cancel()
        await asyncio.wait([task])
        self._task = self._connection = None

    def _watch_stall(self, connection: _Connection, waiting: int) -> None:
        now = self._clock()
        if waiting < self._least:
            self._least, self._moved_at = waiting, now
        elif now - self._moved_at >= STALL_SECONDS:
            self._report("graphite receiver does not read", seconds=round(now - self._moved_at))
            connection.transport.abort()

    async def _keep_connected(self) -> None:
        failures = 0
        while True:
            try:
                connection = await self._connect()
            except OSError as error:
                self._report("graphite receiver cannot be reached", error=error.strerror or str(error))
            else:
                since = self._moved_at = self._clock()
                self._least = 0
                self._connection = connection
                await connection.lost
                self._connection = None
                if self._clock() - since >= STABLE_SECONDS:
                    failures = 0
                    self._reported = None
                self._report("graphite connection lost")
            await self._sleep(backoff(failures))
            failures += 1

    async def _connect(self) -> _Connection:
        failure: OSError = OSError("the name has no address")
        for _, sockaddr in await resolve(self._address, socket.SOCK_STREAM):
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    _, connection = await asyncio.get_running_loop().create_connection(
                        _Connection, str(sockaddr[0]), self._address.port
                    )
            except OSError as error:  # TimeoutError is one
                failure = error if error.strerror else OSError(errno.ETIMEDOUT, "no answer")
            else:
                event(logger, logging.DEBUG, "graphite connected", address=self._address)
                return connection
        raise failure

    def _report(self, state: str, **fields: object) -> None:
        """Log a trouble when it begins, not every second of it."""
        if self._reported != state:
            event(logger, logging.WARNING, state, address=self._address, **fields)
        self._reported = state


class _Connection(asyncio.Protocol):
    """A connection to the receiver, who is never expected to say anything."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.lost.done():
            self.lost.set_result(None)


class UdpSender:
    """Sends datagrams of whole lines from a socket that does not wait: what the kernel does not take is
    dropped.

    Parameters:
        address: the receiver.
        sleep: waits between look-ups of its name.
    """

    def __init__(self, address: Address, *, sleep: Sleep = asyncio.sleep) -> None:
        self._address = address
        self._sleep = sleep
        self._socket: socket.socket | None = None
        self._sockaddr: tuple[object, ...] | None = None
        self._task: asyncio.Task[None] | None = None
        self._trouble: str | None = None

    @property
    def connected(self) -> bool:
        """Whether the receiver's address is known, so that samples can be sent."""
        return self._socket is not None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._keep_resolved(), name="graphite")

    def send(self, lines: Sample) -> bool:
        if self._socket is None:
            return False
        sent = True
        for datagram in pack_datagrams(lines):
            sent = self._send(self._socket, datagram) and sent
        return sent

    async def stop(self, grace: float) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self, sock: socket.socket, datagram: bytes) -> bool:
        try:
            try:
                sock.send(datagram)
            except ConnectionRefusedError as error:
                # This is the answer to an earlier datagram, and it kept this one from going out.
                self._report(error.strerror)
                sock.send(datagram)
            else:
                self._report(None)
        except OSError as error:
            self._report(error.strerror)
            return False
        return True

    async def _keep_resolved(self) -> None:
        failures = 0
        while True:
            try:
                found = await resolve(self._address, socket.SOCK_DGRAM)
                self._use(*found[0])
            except OSError as error:
                # An address that was good until now is kept.
                self._report(error.strerror or str(error))
                await self._sleep(backoff(failures))
                failures += 1
            else:
                failures = 0
                await self._sleep(RESOLVE_SECONDS)

    def _use(self, family: socket.AddressFamily, sockaddr: tuple[object, ...]) -> None:
        if self._socket is not None and sockaddr == self._sockaddr:
            return
        sock = socket.socket(family, socket.SOCK_DGRAM)
        try:
            sock.setblocking(False)
            sock.connect(sockaddr)
        except OSError:
            sock.close()
            raise
        if self._socket is not None:
            self._socket.close()
        self._socket, self._sockaddr = sock, sockaddr

    def _report(self, trouble: str | None) -> None:
        """Log a trouble when it begins, not every second of it."""
        if trouble is not None and trouble != self._trouble:
            event(
                logger,
                logging.WARNING,
                "graphite receiver cannot be reached",
                address=self._address,
                error=trouble,
            )
        self._trouble = trouble


def pack_datagrams(lines: Iterable[bytes]) -> list[bytes]:
    """Join lines into datagrams of DATAGRAM_SIZE bytes at most; a line is never cut, a longer one goes alone."""
    datagrams: list[bytes] = []
    current = b""
    for line in lines:
        if current and len(current) + len(line) > DATAGRAM_SIZE:
            datagrams.append(current)
            current = b""
        current += line
    return [*datagrams, current] if current else datagrams
