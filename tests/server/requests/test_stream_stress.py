"""Many streams of many connections that transfer amounts at random, with a fixed number of transactions."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest

from iproto_server import Application, Box, BoxError, Tuple
from tests.crash.servers.pipeline import Pipeline, Reply, Stream
from tests.iproto_client import (
    BEGIN,
    COMMIT,
    INDEX_ID,
    ITERATOR,
    KEY,
    LIMIT,
    REPLACE,
    ROLLBACK,
    SELECT,
    SPACE_ID,
    TUPLE,
    UPDATE,
)
from tests.server.in_process import ServerInProcess

CONNECTIONS, STREAMS, TRANSACTIONS = 8, 4, 20
"""Connections, streams of each, and transactions that each of these commits or rolls back."""

SPACE, INDEXES, ACCOUNTS, BALANCE = 600, 3, 15, 1000
AUDIT = 601
"""The space to which triggers write each account's balance before it changes."""
REFUSED = -1_000_000
"""A balance that another trigger refuses after that."""
SEED = 20_261_121
ALL = 2
CONFLICT, PROC_LUA = 97, 32
PATIENCE = 100_000
"""How often the server is asked whether it has noticed. Only a failing test ever asks so often."""

app = Application("bank")


@app.setup
def setup(box: Box) -> None:
    accounts = box.schema.create_space("accounts", id=SPACE)
    accounts.create_index("primary", parts=[(0, "unsigned")])
    accounts.create_index("balance", parts=[(1, "integer")], unique=False)
    accounts.create_index("seat", parts=[(3, "unsigned")])
    audit = box.schema.create_space("audit", id=AUDIT)
    audit.create_index("primary", parts=[(0, "unsigned")])

    def note(old: Tuple | None, new: Tuple | None) -> None:
        assert new is not None
        audit.replace([new[0], new[1]])

    def refuse(old: Tuple | None, new: Tuple | None) -> None:
        assert new is not None
        if new[1] == REFUSED:
            audit.upsert([ACCOUNTS + new[0], 1], [("+", 1, 1)])
            raise BoxError.procedure("no such balance")

    accounts.before_replace(note)
    accounts.on_replace(refuse)
    for key in range(ACCOUNTS):
        accounts.insert([key, BALANCE, 0, key])


class Books:
    """What must be there: by account, what all commits have made of it, without the seats."""

    def __init__(self) -> None:
        self.accounts = [[key, BALANCE, 0] for key in range(ACCOUNTS)]
        self.committed = 0
        self.refused = 0
        self.rolled_back = 0

    def look(self, rows: list[list[int]]) -> None:
        """Somebody sees these rows at one moment."""
        assert len(rows) == ACCOUNTS
        assert sum(row[1] for row in rows) == ACCOUNTS * BALANCE
        assert sum(row[2] for row in rows) % 2 == 0
        assert sorted(row[3] for row in rows) == list(range(ACCOUNTS))

    def end(self, changes: dict[int, int], replies: list[Reply], *, is_commit: bool) -> None:
        """A transaction that adds to some accounts has ended."""
        codes = {reply.error_code for reply in replies}
        assert codes <= {0, CONFLICT}, replies
        if not is_commit:
            assert replies[-1].error_code == 0
            self.rolled_back += 1
        elif CONFLICT in codes:
            self.refused += 1
        else:
            self.committed += 1
            for key, difference in changes.items():
                self.accounts[key][1] += difference
                self.accounts[key][2] += 1


class Teller:
    """Who works in one stream."""

    def __init__(self, pipeline: Pipeline, number: int, books: Books, chance: Random) -> None:
        self._pipeline = pipeline
        self._stream = Stream(pipeline, number)
        self._books = books
        self._chance = chance

    async def work(self) -> None:
        """Make all transactions, some of them right behind each other, and look at all accounts meanwhile."""
        left = TRANSACTIONS
        while left:
            if self._chance.random() < 0.4:
                await self._read_and_write()
                left -= 1
            else:
                count = min(left, self._chance.randrange(1, 4))
                await asyncio.gather(*(self._pipelined() for _ in range(count)))
                left -= count
            await self._look()
        assert await answered(self._stream.send(BEGIN, {})) == [Reply(0, None)]
        assert await answered(self._stream.send(ROLLBACK, {})) == [Reply(0, None)]

    def _draw(self) -> tuple[dict[int, int], int]:
        source, target = self._chance.sample(range(ACCOUNTS), 2)
        amount = self._chance.randrange(1, 100)
        return {source: -amount, target: amount}, COMMIT if self._chance.random() < 0.85 else ROLLBACK

    async def _pipelined(self) -> None:
        changes, end = self._draw()
        sent = [self._stream.send(BEGIN, {})]
        for key, difference in changes.items():
            operations = [["+", 1, difference], ["+", 2, 1]]
            body = {SPACE_ID: SPACE, INDEX_ID: 0, KEY: [key], TUPLE: operations}
            sent.append(self._stream.send(UPDATE, body))
        refused = [self._refused(key) for key in changes if self._chance.random() < 0.3]
        sent.append(self._stream.send(end, {}))
        self._books.end(changes, await answered(*sent), is_commit=end == COMMIT)
        await check_refusals(refused)

    def _refused(self, key: int) -> asyncio.Future[Reply | None]:
        """Ask for a change of an account that a trigger refuses, in the stream or outside of it."""
        body = {SPACE_ID: SPACE, INDEX_ID: 0, KEY: [key], TUPLE: [["=", 1, REFUSED]]}
        stream = self._stream if self._chance.random() < 0.7 else Stream(self._pipeline, 0)
        return stream.send(UPDATE, body)

    async def _read_and_write(self) -> None:
        """Transfer an amount, and let the two accounts change seats."""
        changes, end = self._draw()
        [begun, *found] = await answered(
            self._stream.send(BEGIN, {}), *(self._stream.send(SELECT, selection(key)) for key in changes)
        )
        sent = []
        if all(reply.error_code == 0 for reply in found):
            [source], [target] = (reply.data for reply in found)
            amount = changes[target[0]]
            rows = (
                [source[0], source[1] - amount, source[2] + 1, ACCOUNTS + source[0]],
                [target[0], target[1] + amount, target[2] + 1, source[3]],
                [source[0], source[1] - amount, source[2] + 1, target[3]],
            )
            sent += [self._stream.send(REPLACE, {SPACE_ID: SPACE, TUPLE: row}) for row in rows]
        refused = [self._refused(key) for key in changes if self._chance.random() < 0.3]
        sent.append(self._stream.send(end, {}))
        self._books.end(changes, [begun, *found, *await answered(*sent)], is_commit=end == COMMIT)
        await check_refusals(refused)

    async def _look(self) -> None:
        """See all accounts: by one request, or in a transaction, one after the other."""
        if self._chance.random() < 0.5:
            index = self._chance.randrange(INDEXES)
            body = {SPACE_ID: SPACE, INDEX_ID: index, ITERATOR: ALL, LIMIT: ACCOUNTS + 1, KEY: []}
            [reply] = await answered(Stream(self._pipeline, 0).send(SELECT, body))
            self._books.look(reply.data)
        else:
            sent = [self._stream.send(BEGIN, {})]
            for key in self._chance.sample(range(ACCOUNTS), ACCOUNTS):
                sent.append(self._stream.send(SELECT, selection(key)))
                if self._chance.random() < 0.2:
                    await sent[-1]
            _, *found, _ = await answered(*sent, self._stream.send(COMMIT, {}))
            self._books.look([row for reply in found for row in reply.data])

    async def leave(self) -> None:
        """Begin a transaction and do not end it."""
        body = {SPACE_ID: SPACE, TUPLE: [0, 0, 0, ACCOUNTS]}
        for reply in await answered(self._stream.send(BEGIN, {}), self._stream.send(REPLACE, body)):
            assert reply.error_code == 0


async def check_refusals(sent: list[asyncio.Future[Reply | None]]) -> None:
    """Check that changes were refused by the trigger, if not for a conflict before."""
    for reply in await answered(*sent):
        assert reply.error_code in (PROC_LUA, CONFLICT)


def selection(key: int) -> dict[int, Any]:
    return {SPACE_ID: SPACE, INDEX_ID: 0, LIMIT: 1, KEY: [key]}


async def answered(*sent: asyncio.Future[Reply | None]) -> list[Reply]:
    """Wait for answers; there must be all of them."""
    replies = await asyncio.gather(*sent)
    assert None not in replies
    return [reply for reply in replies if reply is not None]


async def work(address: str, books: Books) -> None:
    """Let all tellers work, and leave with transactions open."""
    host, _, port = address.rpartition(":")
    pipelines = [await Pipeline.connect(host, int(port)) for _ in range(CONNECTIONS)]
    tellers = [
        Teller(pipeline, number, books, Random(f"{SEED}/{connection}/{number}"))
        for connection, pipeline in enumerate(pipelines)
        for number in range(1, STREAMS + 1)
    ]
    async with asyncio.TaskGroup() as group:
        for teller in tellers:
            group.create_task(teller.work())
    await asyncio.gather(*(teller.leave() for teller in tellers))
    for pipeline in pipelines:
        await pipeline.close()


def open_transactions(server: ServerInProcess) -> int:
    async def count() -> int:
        return len(server.server.box.interactive)

    number: int = server.run(count())
    return number


@pytest.mark.parametrize("wal_mode", ["write", "fsync"])
def test_transfers_are_isolated_and_none_is_lost(tmp_path: Path, wal_mode: str) -> None:
    books = Books()
    with ServerInProcess(tmp_path, [app], wal_mode=wal_mode) as server:
        asyncio.run(work(server.server.box.listen[0], books))
        for _ in range(PATIENCE):
            if not open_transactions(server):
                break
        assert open_transactions(server) == 0
        rows = server.connect().everything(SPACE).data
        by_balance, by_seat = (server.connect().everything(SPACE, index).data for index in (1, 2))
        audit = server.connect().everything(AUDIT).data
    books.look(rows)
    assert audit == [row[:2] for row in rows]
    assert [row[:3] for row in rows] == books.accounts
    assert by_balance == sorted(rows, key=lambda row: (row[1], row[0]))
    assert by_seat == sorted(rows, key=lambda row: int(row[3]))
    assert books.committed + books.refused + books.rolled_back == CONNECTIONS * STREAMS * TRANSACTIONS
    assert books.committed > CONNECTIONS * STREAMS
    assert books.refused > 0
