"""Sends samples to the Graphite receiver over TCP or UDP, without ever waiting for it.

If the receiver is dead, slow or unreliable, samples are dropped instead of queued: a connection buffers at
most BUFFER_LIMIT bytes, or one sample if that is larger. A sample is sent completely or not at all, and a new
connection begins with a new sample, so that the receiver never joins parts of different lines.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import random
import socket
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol, cast

from iproto_server.config.address import Address
from iproto_server.logging.log_setup import event

logger = logging.getLogger("iproto_server.graphite")

#: Bytes that may wait in a TCP connection to a slow receiver; beyond it samples are dropped.
BUFFER_LIMIT = 64 * 1024

#: Largest datagram; with the IP and UDP headers it fits an Ethernet frame.
DATAGRAM_SIZE = 1400

#: Seconds without progress after which a connection is replaced, because its other end may have vanished.
STALL_SECONDS = 30.0

#: Seconds after which a connection counts as working, so that the next reconnect is quick.
STABLE_SECONDS = 10.0

#: Maximum duration of an attempt to connect, in seconds.
CONNECT_SECONDS = 5.0

#: Seconds between two lookups of the receiver's name for UDP, which has no connection to lose.
RESOLVE_SECONDS = 60.0

FIRST_BACKOFF, MAX_BACKOFF = 0.5, 30.0

Sample = list[bytes]
Sleep = Callable[[float], Awaitable[object]]
Clock = Callable[[], float]


class Sender(Protocol):
    """Sends samples to a receiver, or drops them; never waits, never raises."""

    def start(self) -> None:
        """Start connecting, on the running loop."""

    def send(self, lines: Sample) -> bool:
        """Send a sample's lines; return False if they were dropped."""

    async def stop(self, grace: float) -> None:
        """Send the buffered samples for at most `grace` seconds, then release all resources."""


def backoff(attempt: int, uniform: Callable[[float, float], float] = random.uniform) -> float:
    """Return the seconds before the next attempt: doubled up to MAX_BACKOFF, less a random half or less.

    Parameters:
        attempt: number of failed attempts since the last working connection.
        uniform: returns the random number, so that many servers do not reconnect at once.
    """
    bound = min(MAX_BACKOFF, FIRST_BACKOFF * 2.0 ** min(attempt, 30))
    return uniform(bound / 2, bound)


Resolved = tuple[socket.AddressFamily, tuple[object, ...]]


async def resolve(address: Address, kind: socket.SocketKind) -> list[Resolved]:
    """Look up the receiver's name in the loop's thread pool.

    Returns:
        Its addresses, best first, as (address family, socket address).

    Raises:
        OSError: the name is not known.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(address.host, address.port, type=kind)
    except UnicodeError as error:
        raise OSError(errno.EINVAL, "not a host name") from error
    return [(family, sockaddr) for family, _, _, _, sockaddr in found]


class _Health:
    """Logs a failure when it begins and when it has been over for a while."""

    def __init__(self, address: Address, clock: Clock) -> None:
        self._address = address
        self._clock = clock
        self._failed_at: float | None = None

    def failed(self, trouble: str) -> None:
        if self._failed_at is None:
            event(logger, logging.WARNING, "graphite receiver lost", address=self._address, error=trouble)
        self._failed_at = self._clock()

    def worked(self) -> None:
        if self._failed_at is not None and self._clock() - self._failed_at >= STABLE_SECONDS:
            event(logger, logging.INFO, "graphite receiver is back", address=self._address)
            self._failed_at = None


class TcpSender:
    """Keeps one TCP connection, and writes a sample only if the connection's buffer has room.

    Parameters:
        address: the receiver.
        sleep: waits between attempts to connect.
        clock: a monotonic clock in seconds.
    """

    def __init__(
        self, address: Address, *, sleep: Sleep = asyncio.sleep, clock: Clock = time.monotonic
    ) -> None:
        self._address = address
        self._sleep = sleep
        self._clock = clock
        self._health = _Health(address, clock)
        self._connection: _Connection | None = None
        self._task: asyncio.Task[None] | None = None
        self._least = 0
        self._moved_at = 0.0

    @property
    def connected(self) -> bool:
        """Whether there is a connection now."""
        return self._connection is not None

    @property
    def buffered(self) -> int:
        """Bytes in the connection's buffer."""
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
        # The added bytes must not look like a stalled receiver.
        self._least = connection.transport.get_write_buffer_size()
        self._moved_at = self._clock()
        self._health.worked()
        return True

    async def stop(self, grace: float) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.transport.close()
            await asyncio.wait([connection.lost], timeout=grace)
            if not connection.lost.done():
                connection.transport.abort()

    def _watch_stall(self, connection: _Connection, waiting: int) -> None:
        now = self._clock()
        if waiting < self._least:
            self._least, self._moved_at = waiting, now
        elif now - self._moved_at >= STALL_SECONDS:
            self._health.failed(f"reads nothing for {STALL_SECONDS:g} s")
            connection.transport.abort()

    async def _keep_connected(self) -> None:
        failures = 0
        while True:
            try:
                connection = await self._connect()
            except OSError as error:
                self._health.failed(error.strerror or str(error))
            else:
                since = self._moved_at = self._clock()
                self._least = 0
                self._connection = connection
                # Not awaited itself: when this task is cancelled, `lost` is still needed.
                await asyncio.wait([connection.lost])
                self._connection = None
                if self._clock() - since >= STABLE_SECONDS:
                    failures = 0
                self._health.failed("the connection was closed")
            await self._sleep(backoff(failures))
            failures += 1

    async def _connect(self) -> _Connection:
        failure = OSError(errno.EADDRNOTAVAIL, "the name has no address")
        for _, sockaddr in await resolve(self._address, socket.SOCK_STREAM):
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    _, connection = await asyncio.get_running_loop().create_connection(
                        _Connection, str(sockaddr[0]), self._address.port
                    )
            except TimeoutError:
                failure = OSError(errno.ETIMEDOUT, "no answer")
            except OSError as error:
                failure = error
            else:
                event(logger, logging.DEBUG, "graphite connected", address=self._address)
                return connection
        raise failure


class _Connection(asyncio.Protocol):
    """A connection to the receiver, which sends nothing."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        # Otherwise the kernel would buffer megabytes for a receiver that does not read.
        sock: socket.socket = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_LIMIT)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.lost.done():
            self.lost.set_result(None)


class UdpSender:
    """Sends datagrams of whole lines from a non-blocking socket; those that the kernel refuses are dropped.

    Parameters:
        address: the receiver.
        sleep: waits between lookups of its name.
        clock: a monotonic clock in seconds.
    """

    def __init__(
        self, address: Address, *, sleep: Sleep = asyncio.sleep, clock: Clock = time.monotonic
    ) -> None:
        self._address = address
        self._sleep = sleep
        self._health = _Health(address, clock)
        self._resolved: list[Resolved] = []
        self._in_use: Resolved | None = None
        self._socket: socket.socket | None = None
        self._task: asyncio.Task[None] | None = None

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
                # The reply to an earlier datagram, that no process listens, has kept this one from being
                # sent.
                self._health.failed(error.strerror or str(error))
                self._use_next().send(datagram)
            else:
                self._health.worked()
        except OSError as error:
            self._health.failed(error.strerror or str(error))
            return False
        return True

    async def _keep_resolved(self) -> None:
        failures = 0
        while True:
            try:
                self._resolved = await resolve(self._address, socket.SOCK_DGRAM)
                if self._in_use not in self._resolved:
                    self._use(self._resolved[0])
            except OSError as error:
                # A previously resolved address stays in use.
                self._health.failed(error.strerror or str(error))
                await self._sleep(backoff(failures))
                failures += 1
            else:
                failures = 0
                await self._sleep(RESOLVE_SECONDS)

    def _use_next(self) -> socket.socket:
        """Switch to the receiver's next address: carbon may not listen on ::1 of "localhost"."""
        place = self._resolved.index(self._in_use) if self._in_use in self._resolved else -1
        return self._use(self._resolved[(place + 1) % len(self._resolved)])

    def _use(self, resolved: Resolved) -> socket.socket:
        """Switch to one of the receiver's addresses."""
        if self._socket is not None and resolved == self._in_use:
            return self._socket
        family, sockaddr = resolved
        sock = socket.socket(family, socket.SOCK_DGRAM)
        try:
            sock.setblocking(False)
            sock.connect(sockaddr)
        except OSError:
            sock.close()
            raise
        if self._socket is not None:
            self._socket.close()
        self._socket, self._in_use = sock, resolved
        return sock


def pack_datagrams(lines: Iterable[bytes]) -> list[bytes]:
    """Join lines into datagrams of at most DATAGRAM_SIZE bytes; a longer line gets a datagram of its own."""
    datagrams: list[bytes] = []
    current = b""
    for line in lines:
        if current and len(current) + len(line) > DATAGRAM_SIZE:
            datagrams.append(current)
            current = b""
        current += line
    return [*datagrams, current] if current else datagrams
