"""A client that reads all shares repeatedly: by one request, or one by one in a transaction."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from tests.crash import schema
from tests.crash.books.deals import Deals
from tests.crash.checks.finding import Kind
from tests.crash.loads.client import Meter
from tests.crash.loads.trader import TRANSACTION_CONFLICT
from tests.crash.schema import Row
from tests.crash.servers.pipeline import Pipeline, Reply, Stream
from tests.iproto_client import BEGIN, COMMIT, INDEX_ID, ITERATOR, KEY, LIMIT, SELECT, SPACE_ID

_ALL = 2
_INDEXES = 3


class Onlooker:
    """Checks that no part of a deal is visible.

    Parameters:
        pipeline: The connection.
        meter: The counters of all clients.
        chance: The source of random values.
        deals: The expected deals.
    """

    def __init__(self, pipeline: Pipeline, meter: Meter, chance: Random, deals: Deals) -> None:
        self._pipeline = pipeline
        self._meter = meter
        self._chance = chance
        self._deals = deals

    async def run(self) -> None:
        """Read until the connection breaks."""
        stream = 0
        while not self._pipeline.is_broken:
            floor = self._deals.floor
            if self._chance.random() < 0.5:
                replies = [await Stream(self._pipeline, 0).send(SELECT, self._everything())]
            else:
                stream += 1
                replies = await self._one_by_one(Stream(self._pipeline, stream))
            self._judge(replies, floor)

    def _everything(self) -> dict[int, Any]:
        index = self._chance.randrange(_INDEXES)
        return {SPACE_ID: schema.SHARES_ID, INDEX_ID: index, ITERATOR: _ALL, LIMIT: 1000, KEY: []}

    async def _one_by_one(self, stream: Stream) -> list[Reply | None]:
        sent = [stream.send(BEGIN, {})]
        for key in self._chance.sample(range(schema.SHARES), schema.SHARES):
            body = {SPACE_ID: schema.SHARES_ID, INDEX_ID: 0, LIMIT: 1, KEY: [key]}
            sent.append(stream.send(SELECT, body))
            if self._chance.random() < 0.5:
                await sent[-1]
        return await asyncio.gather(*sent, stream.send(COMMIT, {}))

    def _judge(self, replies: list[Reply | None], floor: int) -> None:
        shares: list[Row] = []
        for reply in replies:
            if reply is None:
                self._meter.unknown += 1
                return
            if reply.error_code:
                # DDL aborts every transaction.
                if len(replies) == 1 or reply.error_code != TRANSACTION_CONFLICT:
                    self._meter.complain(Kind.ANSWER, f"a look at the shares: {reply.data}")
                self._meter.refused += 1
                return
            shares += reply.data or []
        self._meter.findings += self._deals.look(shares, floor)
        self._meter.acknowledge("look" if len(replies) == 1 else "look in a stream")
