"""One run of a server under load, up to its kill."""

from __future__ import annotations

import asyncio
import signal
from random import Random

from tests.crash import schema
from tests.crash.checks.checker import Books
from tests.crash.checks.finding import Kind
from tests.crash.loads.builder import Builder
from tests.crash.loads.clerk import Clerk
from tests.crash.loads.client import Client, Meter, RowClient, Source
from tests.crash.loads.onlooker import Onlooker
from tests.crash.loads.trader import Trader
from tests.crash.loads.worker import Worker
from tests.crash.loads.writer import Writer
from tests.crash.moment import Event, Moment, Pace
from tests.crash.schema import BALLAST_AT_A_TIME, BUILDER
from tests.crash.servers.pipeline import Pipeline
from tests.crash.servers.subject import Server

WORKERS = 3
TRADERS = 4
WINDOWS = (1, 4, 16, 50)
"""The maximum number of requests in flight per client."""

TIMEOUT = 60.0
"""The time limit in seconds; only a server that hangs reaches it."""


async def live(server: Server, books: Books, moment: Moment, pace: Pace, chance: Random) -> Meter:
    """Put a server under load until the given moment.

    Parameters:
        server: The server.
        books: The expected state.
        moment: The moment of the kill or stop.
        pace: The typical durations.
        chance: The source of random values.

    Returns:
        The counters of the clients. The server is ending then, or has ended.

    Raises:
        OSError: It cannot be connected to.
        EOFError: It does not greet.
    """
    meter = Meter()
    control = await Pipeline.connect(server.host, server.port)
    clients: list[Client | Trader | Onlooker] = []
    for number, world in books.worlds.items():
        source: type[Source] = Builder if number == BUILDER else Writer
        window = server.subject.builder_window if number == BUILDER else chance.choice(WINDOWS)
        pipeline = await Pipeline.connect(server.host, server.port)
        clients.append(RowClient(pipeline, meter, window, source(world, Random(chance.random()))))
    for number in range(WORKERS if server.subject.has_queue else 0):
        pipeline = await Pipeline.connect(server.host, server.port)
        window = chance.choice(WINDOWS)
        worker = Worker(pipeline, meter, window, Random(chance.random()), books.tasks, number)
        worker.has_dead_letters = server.subject.has_dead_letters
        clients.append(worker)
    pipeline = await Pipeline.connect(server.host, server.port)
    clients.append(
        Clerk(pipeline, meter, chance.choice(WINDOWS[:3]), Random(chance.random()), books.numbering)
    )
    if server.subject.has_streams:
        pipeline = await Pipeline.connect(server.host, server.port)
        clients.append(Onlooker(pipeline, meter, Random(chance.random()), books.deals))
        clients += [
            Trader(server, meter, Random(chance.random()), books.deals, control.instance)
            for _ in range(TRADERS)
        ]
    work = asyncio.gather(*(client.run() for client in clients), _fill(control, books, meter))
    coming = asyncio.create_task(moment.come(meter, control, server, pace))
    done, _ = await asyncio.wait((work, coming), timeout=TIMEOUT, return_when=asyncio.FIRST_COMPLETED)
    if coming in done:
        await coming
    else:
        coming.cancel()
        meter.complain(Kind.SERVER, "it closes its connections" if done else "its moment never comes")
    server.process.signal(signal.SIGTERM if moment.event is Event.STOP else signal.SIGKILL)
    try:
        await asyncio.wait_for(asyncio.gather(work, control.ended()), TIMEOUT)
    except TimeoutError:
        meter.complain(Kind.SERVER, "it neither answers its clients nor closes their connections")
    return meter


async def _fill(control: Pipeline, books: Books, meter: Meter) -> None:
    """Complete the ballast."""
    while books.ballast < books.ballast_rows:
        keys = range(books.ballast, books.ballast + BALLAST_AT_A_TIME)
        reply = await control.call("crash.fill", [schema.ballast(key) for key in keys])
        if reply is None:
            return
        if reply.error_code:
            meter.complain(Kind.ANSWER, f"crash.fill: error {reply.error_code} ({reply.data})")
            return
        books.ballast += BALLAST_AT_A_TIME
        meter.acknowledge("fill")
