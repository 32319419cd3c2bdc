"""What the tests of the client share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from time import monotonic, sleep
from typing import Any, TypeVar

from iproto_server.client import Backoff
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.running_server import QUEUE_APPLICATION, RunningServer

TUBES_APPLICATION = "queue_lua_compat.tubes:app"
EXACT = Backoff(jitter=0)
"""Delays that a test can compare: 1, 2, 4, … seconds."""

TIMEOUT = 60.0
"""Seconds that only a failing test waits for."""

T = TypeVar("T")


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a test's coroutine function."""
    return asyncio.run(asyncio.wait_for(main(), TIMEOUT))


class Sleeps:
    """A sleep that ends when the test says so."""

    def __init__(self) -> None:
        self._asked: asyncio.Queue[tuple[float, asyncio.Future[None]]] = asyncio.Queue()

    async def __call__(self, seconds: float) -> None:
        wake = asyncio.get_running_loop().create_future()
        self._asked.put_nowait((seconds, wake))
        await wake

    async def next(self) -> float:
        """Wait until somebody sleeps, wake them, and return the seconds that they asked for."""
        seconds, wake = await self._asked.get()
        if not wake.done():
            wake.set_result(None)
        return seconds

    async def asked(self) -> float:
        """Wait until somebody sleeps, and return the seconds; the sleep goes on."""
        return (await self._asked.get())[0]


async def briefly(seconds: float) -> None:
    """A sleep that takes next to no time."""
    await asyncio.sleep(0.01)


def tutorial(start_server: StartServer) -> RunningServer:
    """Start a server of the tutorial's queue."""
    return start_server([QUEUE_APPLICATION])


def tubes(start_server: StartServer, **kinds: tuple[str, dict[str, Any]]) -> RunningServer:
    """Start a server with tubes.

    Parameters:
        kinds: by a tube's name, its type and options.
    """
    server = start_server([TUBES_APPLICATION])
    create_tubes(server.address, **kinds)
    return server


def create_tubes(address: str, **kinds: tuple[str, dict[str, Any]]) -> None:
    """Create tubes on a server; parameters as of `tubes`."""
    with IprotoClient.at(address) as client:
        for name, (kind, options) in kinds.items():
            assert client.call("queue.create_tube", name, kind, options).ok


def call(address: str, name: str, *arguments: Any) -> Any:
    """Call a procedure, and return its first result."""
    with IprotoClient.at(address) as client:
        response = client.call(name, *arguments)
        assert response.ok, response.failure
        return response.data[0] if response.data else None


def counts(address: str) -> tuple[int, int, int]:
    """Return how many tasks of the tutorial's queue are ready, waiting and taken."""
    stats = call(address, "queue.stats")
    return stats["ready"], stats["waiting"], stats["taken"]


def tube_states(address: str, tube: str) -> dict[str, int]:
    """Return how many tasks of a tube have each state, without zeros and the total."""
    tasks = call(address, "queue.statistics", tube)["tasks"]
    return {state: count for state, count in tasks.items() if count and state != "total"}


def wait_until(holds: Callable[[], bool]) -> None:
    """Ask again until something holds; fails after `TIMEOUT`."""
    end = monotonic() + TIMEOUT
    while not holds():
        assert monotonic() < end
        sleep(0.005)


def wait_for_counts(address: str, expected: tuple[int, int, int]) -> None:
    """Wait until the tutorial's queue has these numbers of tasks, as `counts` returns them."""
    wait_until(lambda: counts(address) == expected)
