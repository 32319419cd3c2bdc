"""A server whose calls wait, in the test's own process, and the ways in which a client ends."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvloop

from iproto_server import Application, Box, Waiter, WaitQueue
from tests.iproto_client import CALL, FUNCTION_NAME, TUPLE, IprotoClient
from tests.protocol.tarantool15.box15_client import Client15
from tests.server.in_process import ServerInProcess

NET_MSG_MAX = 4
Client = IprotoClient | Client15


class Service:
    """An application whose calls wait in a line, and a server of it.

    Parameters:
        directory: the server's.
        loop: what it runs in.
        options: more of its configuration.

    Attributes:
        line: where calls of `wait` wait for a `give`.
        gone: released when a client is gone.
        steps: what `step` was called with, and how many waited then.
        barrier: where `step(0)` waits for the test.
        work: what calls of `hours` wait for.
        ended: called in the server when a session ends.
    """

    def __init__(self, directory: Path, loop: asyncio.AbstractEventLoop, **options: Any) -> None:
        self.gone = threading.Semaphore(0)
        self.steps: list[tuple[int, int]] = []
        self.barrier = threading.Barrier(2)
        self.work = asyncio.Event()
        self.ended: Callable[[], None] = lambda: None
        self._things: list[object] = []
        application = Application("line")
        application.setup(self._setup)
        procedures = (self.wait, self.give, self.step, self.big, self.hours, self.keep, self.kept)
        for procedure in procedures:
            application.procedure(procedure.__name__)(procedure)
        self.running = ServerInProcess(
            directory, [application], loop=loop, net_msg_max=NET_MSG_MAX, **options
        )

    def _setup(self, box: Box) -> None:
        self.line = WaitQueue(box)
        box.session.on_disconnect(self._end)
        self.kept_rows = box.schema.create_space("kept", if_not_exists=True)
        self.kept_rows.create_index("pk", if_not_exists=True)

    def _end(self) -> None:
        self.ended()
        self.gone.release()

    def keep(self, box: Box, number: int) -> None:
        """Store a row."""
        self.kept_rows.insert([number])

    def kept(self, box: Box) -> list[Any]:
        """The stored rows."""
        return [[number for (number,) in self.kept_rows.select()]]

    def wait(self, box: Box) -> Waiter:
        """Wait for a thing."""
        return self.line.park(3600, self._things.pop)

    def give(self, box: Box, thing: object) -> None:
        """Give the first one a thing."""
        self._things.append(thing)
        self.line.wake()

    def step(self, box: Box, number: int | str | bytes) -> None:
        """Note who waits; 0 stops the server until the test goes on."""
        if not isinstance(number, int):  # of Tarantool 1.5's protocol, whose fields are bytes
            number = int.from_bytes(number.encode() if isinstance(number, str) else number, "little")
        if number == 0:
            self.barrier.wait(20)
            self.barrier.wait(20)
        self.steps.append((number, len(self.line)))

    def big(self, box: Box, size: int) -> str:
        """A large answer."""
        return "x" * size

    async def hours(self, box: Box) -> None:
        """Work for hours, or until the test ends that."""
        await self.work.wait()

    def fill(self) -> IprotoClient:
        """Have as many procedures run as may; return whose they are."""
        client = self.running.connect()
        for _ in range(NET_MSG_MAX):
            call(client, "hours")
        self.until(lambda: self.running.server.state.is_full)
        return client

    def end_work(self) -> None:
        """Let these procedures end, and others run."""

        async def end() -> None:
            self.work.set()
            self.work = asyncio.Event()

        self.running.run(end())

    def until(self, condition: Callable[[], bool]) -> None:
        """Let the server go on until something is so."""

        async def wait() -> None:
            async with asyncio.timeout(20):
                while not condition():  # noqa: ASYNC110  # nobody tells
                    await asyncio.sleep(0)

        self.running.run(wait())

    def until_held(self, count: int = 1) -> None:
        """Let the server go on until it holds so many connections."""
        self.until(lambda: len(self.running.server.state.held) == count)

    def waiting(self) -> int:
        """How many wait."""

        async def look() -> int:
            return len(self.line)

        found: int = self.running.run(look())
        return found

    def waiter(self) -> IprotoClient:
        """A client with a call that waits."""
        before = self.waiting()
        client = self.running.connect()
        call(client, "wait")
        self.until(lambda: len(self.line) == before + 1)
        return client


@contextmanager
def serve(directory: Path, kind: str = "uvloop", **options: Any) -> Iterator[Service]:
    loop = uvloop.new_event_loop() if kind == "uvloop" else asyncio.new_event_loop()
    service = Service(directory, loop, **options)
    with service.running:
        yield service


def call(client: IprotoClient, name: str, *arguments: object) -> int:
    return client.send(CALL, {FUNCTION_NAME: name, TUPLE: list(arguments)})


def shut(client: Client) -> None:
    """End it as a process does that has read everything."""
    close(client)


def close(client: Client) -> None:
    if isinstance(client, IprotoClient):
        client.close()
    else:
        client.socket.close()


def reset(client: Client) -> None:
    """End it as a process does that has not."""
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    close(client)


def half_close(client: Client) -> None:
    """Send no more."""
    socket.socket.shutdown(client.socket, socket.SHUT_WR)
