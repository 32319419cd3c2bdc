"""The load of streams: deals of several requests, in several concurrent streams of one connection.

Some are rolled back, some end with their connection, some by a timeout, and many conflict.
"""

from __future__ import annotations

import asyncio
from enum import StrEnum
from random import Random
from typing import Any, Final

from tests.crash import schema
from tests.crash.books.deals import Deal, Deals
from tests.crash.books.world import shown
from tests.crash.checks.finding import Kind
from tests.crash.loads.client import Meter
from tests.crash.schema import Row
from tests.crash.servers.pipeline import Pipeline, Reply, Stream
from tests.crash.servers.subject import Server
from tests.iproto_client import (
    BEGIN,
    CALL,
    COMMIT,
    FUNCTION_NAME,
    INDEX_ID,
    INSERT,
    KEY,
    LIMIT,
    REPLACE,
    ROLLBACK,
    SELECT,
    SPACE_ID,
    TIMEOUT,
    TUPLE,
    TXN_ISOLATION,
    UPDATE,
)

STREAMS = 4
"""The maximum number of streams of a connection."""

TIME_LIMITS = (0.0005, 0.002, 0.01)
"""The timeouts in seconds; some transactions end in time, some do not."""

ISOLATION_LEVELS = 5
TRANSACTION_CONFLICT, TRANSACTION_TIMEOUT = 97, 231

Request = tuple[int, dict[int, Any]]
"""Type and body."""


class End(StrEnum):
    """How a trader ends a transaction."""

    COMMIT = "commit"
    ROLLBACK = "rollback"
    CUT = "cut"
    """The connection is aborted."""

    CUT_COMMIT = "cut commit"
    """The connection is aborted after the COMMIT was sent."""


ENDS: Final = {End.COMMIT: 85, End.ROLLBACK: 12, End.CUT: 2, End.CUT_COMMIT: 1}


class Trader:
    """A client that reconnects after aborting its connection.

    Parameters:
        server: The server.
        meter: The counters of all clients.
        chance: The source of random values.
        deals: The expected deals.
        instance: The server's UUID. Another server may get its port as soon as it is killed.
    """

    def __init__(self, server: Server, meter: Meter, chance: Random, deals: Deals, instance: bytes) -> None:
        self._server = server
        self._instance = instance
        self._meter = meter
        self._chance = chance
        self._deals = deals

    async def run(self) -> None:
        """Make deals until the server is gone."""
        while True:
            try:
                pipeline = await Pipeline.connect(self._server.host, self._server.port)
            except (OSError, EOFError):
                return
            if pipeline.instance != self._instance:
                pipeline.cut()
                return
            streams = range(1, 1 + self._chance.randrange(1, STREAMS + 1))
            await asyncio.gather(*(self._trade(pipeline, number) for number in streams))
            await pipeline.ended()

    async def _trade(self, pipeline: Pipeline, stream: int) -> None:
        while not pipeline.is_broken:
            source, target = self._chance.sample(range(schema.SHARES), 2)
            deal = self._deals.begin(source, target, self._chance.randrange(1, 100))
            if self._chance.random() < 0.1:
                self._deals.committing(deal)
                reply = await pipeline.call("crash.deal", *deal.row)
                self._judge(deal, End.COMMIT, [reply], {0})
            else:
                await self._deal(Stream(pipeline, stream), deal)

    async def _deal(self, stream: Stream, deal: Deal) -> None:
        """Make a deal in a transaction of a stream."""
        time_limit = self._chance.choice(TIME_LIMITS) if self._chance.random() < 0.1 else 0.0
        options: dict[int, Any] = {TIMEOUT: time_limit} if time_limit else {}
        if self._chance.random() < 0.3:
            options[TXN_ISOLATION] = self._chance.randrange(ISOLATION_LEVELS)
        sent = [stream.send(BEGIN, options)]
        if self._chance.random() < 0.5:
            sent += [stream.send(*request) for request in self._changes(deal)]
        else:
            sent += await self._read_and_write(stream, deal)
        if time_limit:
            await asyncio.sleep(self._chance.uniform(0, 1.5) * time_limit)
        [end] = self._chance.choices(list(ENDS), list(ENDS.values()))
        if end in (End.COMMIT, End.CUT_COMMIT):
            self._deals.committing(deal)
            sent.append(stream.send(COMMIT, {}))
        elif end is End.ROLLBACK:
            sent.append(stream.send(ROLLBACK, {}))
        if end in (End.CUT, End.CUT_COMMIT):
            stream.pipeline.cut()
        expected = {0, TRANSACTION_CONFLICT, TRANSACTION_TIMEOUT if time_limit else 0}
        self._judge(deal, end, await asyncio.gather(*sent), expected)

    def _changes(self, deal: Deal) -> list[Request]:
        """Send requests that do not depend on the current state."""
        call: Request = (CALL, {FUNCTION_NAME: "crash.deal", TUPLE: deal.row})
        if self._chance.random() < 0.3:
            return [call]
        changes = [
            _update(deal.source, [["-", 1, deal.amount], ["+", 2, 1]]),
            _update(deal.target, [["+", 1, deal.amount], ["+", 2, 1]]),
            _written_down(deal),
        ]
        self._chance.shuffle(changes)
        return changes

    async def _read_and_write(self, stream: Stream, deal: Deal) -> list[asyncio.Future[Reply | None]]:
        """Read the shares, compute, and write them, with their seats exchanged.

        Concurrent changes must not be lost.
        """
        reads = [stream.send(*_selection(key)) for key in (deal.source, deal.target)]
        replies = await asyncio.gather(*reads)
        if self._chance.random() < 0.3:
            await asyncio.sleep(self._chance.random() / 100)
        writes = [stream.send(*_written_down(deal))]
        shares = [reply.data[0] for reply in replies if reply is not None and not reply.error_code]
        if len(shares) == len(reads):
            source, target = shares
            writes += [stream.send(*request) for request in _exchange(source, target, deal.amount)]
        return [*reads, *writes]

    def _judge(self, deal: Deal, end: End, replies: list[Reply | None], expected: set[int]) -> None:
        """Record the outcome of a deal.

        Parameters:
            deal: The deal.
            end: The end of its transaction.
            replies: The answers to all its requests.
            expected: The error codes that are allowed.
        """
        codes = {reply.error_code for reply in replies if reply is not None}
        if not codes <= expected or (end is End.ROLLBACK and replies[-1] and replies[-1].error_code):
            answers = [shown(reply.data) for reply in replies if reply is not None and reply.error_code]
            self._meter.complain(Kind.ANSWER, f"the deal {deal.row}, {end}: {answers}")
        if end is End.CUT:
            how = "cut off"
        elif replies[-1] is None or (codes == {0} and None in replies):
            # The answer to COMMIT may come before that of an earlier request, which waits for the log: that
            # one may have been refused, and the COMMIT that of a transaction which has only read.
            how = "unknown"
            self._meter.unknown += 1
        elif end is End.ROLLBACK:
            how = "rolled back"
            self._meter.acknowledge("stream rollback")
        elif codes == {0}:
            how = "committed"
            self._deals.committed(deal)
            self._meter.acknowledge("deal")
        else:
            how = "out of time" if TRANSACTION_TIMEOUT in codes else "in conflict"
            self._deals.refused(deal)
            self._meter.refused += 1
        self._meter.transactions[how] += 1


def _exchange(source: Row, target: Row, amount: int) -> list[Request]:
    """Build the rows that replace two shares. A seat is freed before it is taken."""
    rows = (
        [source[0], source[1] - amount, source[2] + 1, schema.SHARES + source[0]],
        [target[0], target[1] + amount, target[2] + 1, source[3]],
        [source[0], source[1] - amount, source[2] + 1, target[3]],
    )
    return [(REPLACE, {SPACE_ID: schema.SHARES_ID, TUPLE: row}) for row in rows]


def _selection(key: int) -> Request:
    return SELECT, {SPACE_ID: schema.SHARES_ID, INDEX_ID: 0, LIMIT: 1, KEY: [key]}


def _update(key: int, operations: list[Any]) -> Request:
    return UPDATE, {SPACE_ID: schema.SHARES_ID, INDEX_ID: 0, KEY: [key], TUPLE: operations}


def _written_down(deal: Deal) -> Request:
    return INSERT, {SPACE_ID: schema.DEALS_ID, TUPLE: deal.row}
