"""A client: sends pipelined operations, and records the expected state."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from tests.crash.books.world import Operation, World, shown
from tests.crash.checks.finding import Finding, Kind
from tests.crash.servers.pipeline import Pipeline, Reply


class Meter:
    """Counters of all clients.

    Attributes:
        acknowledged: The numbers of successes, by the kind of request.
        refused: The numbers of requests that were refused as expected.
        unknown: The numbers of requests without an answer.
        transactions: The numbers of stream transactions, by their end.
        findings: Wrong answers.
    """

    def __init__(self) -> None:
        self.acknowledged: Counter[str] = Counter()
        self.refused = 0
        self.unknown = 0
        self.transactions: Counter[str] = Counter()
        self.findings: list[Finding] = []
        self._count = 0
        self._goals: list[tuple[int, Callable[[], object], asyncio.Event]] = []

    def acknowledge(self, kind: str) -> None:
        """Count a success."""
        self.acknowledged[kind] += 1
        self._count += 1
        if self._goals and self._count >= self._goals[0][0]:
            _, then, event = self._goals.pop(0)
            then()
            event.set()

    async def more(self, acknowledgements: int, then: Callable[[], object] = lambda: None) -> None:
        """Wait for a number of further successes.

        Parameters:
            acknowledgements: The number.
            then: Called as soon as the last one is read.
        """
        event = asyncio.Event()
        self._goals.append((self._count + acknowledgements, then, event))
        await event.wait()

    def complain(self, kind: Kind, text: str) -> None:
        """Record a wrong answer."""
        self.findings.append(Finding(kind, text))


class Client(ABC):
    """Keeps a window of requests in flight until the connection breaks.

    Parameters:
        pipeline: The connection.
        meter: The counters of all clients.
        window: The maximum number of requests in flight.
    """

    def __init__(self, pipeline: Pipeline, meter: Meter, window: int) -> None:
        self.pipeline = pipeline
        self.meter = meter
        self._window = asyncio.Semaphore(window)

    async def run(self) -> None:
        """Send until the connection breaks and every outcome is known."""
        while not self.pipeline.is_broken:
            await self._window.acquire()
            if not self.pipeline.is_broken:
                self.step()
        await self.pipeline.ended()

    @abstractmethod
    def step(self) -> None:
        """Send one request."""

    def send(
        self, kind: str, request_type: int, body: Mapping[int, Any], answered: Callable[[Reply], None]
    ) -> None:
        """Send a request.

        Parameters:
            kind: Its name, for reports.
            request_type: Its type.
            body: Its body.
            answered: Called with the answer, if there is one.
        """

        def come(reply: Reply | None) -> None:
            self._window.release()
            if reply is None:
                self.meter.unknown += 1
            else:
                answered(reply)

        self.pipeline.send(request_type, body, come)


class Source(ABC):
    """Generates operations.

    Parameters:
        world: The expected state of the client's rows.
        chance: The source of random values.
    """

    def __init__(self, world: World, chance: Random) -> None:
        self.world = world
        self.chance = chance

    @abstractmethod
    def next_operation(self) -> Operation:
        """Generate an operation that is valid after those sent so far."""


class RowClient(Client):
    """A client with rows of its own, whose expected state it records.

    Parameters:
        source: The source of its operations.
    """

    def __init__(self, pipeline: Pipeline, meter: Meter, window: int, source: Source) -> None:
        super().__init__(pipeline, meter, window)
        self.world = source.world
        self._source = source

    def step(self) -> None:
        """Send the next operation."""
        operation = self._source.next_operation()
        number = self.world.send(operation)
        self.send(
            operation.kind,
            operation.request_type,
            operation.body,
            lambda reply: self._answered(number, operation, reply),
        )

    def _answered(self, number: int, operation: Operation, reply: Reply) -> None:
        if reply.error_code != operation.error_code:
            self.meter.complain(
                Kind.ANSWER,
                f"client {self.world.client}: {operation.kind}, operation {number}: "
                f"error {reply.error_code} ({shown(reply.data)}) instead of {operation.error_code}",
            )
            return
        if operation.error_code:
            # A refused request has written nothing, so it does not prove that earlier ones were written.
            self.meter.refused += 1
            return
        if operation.data is not None and reply.data != operation.data:
            self.meter.complain(
                Kind.ANSWER,
                f"client {self.world.client}: {operation.kind}, operation {number}: answered with "
                f"{shown(reply.data)} instead of {shown(operation.data)}",
            )
        else:
            self.meter.acknowledge(operation.kind)
        self.world.acknowledge(number)
