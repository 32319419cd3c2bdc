"""Many clients that put, take, give back and die at random; at the end every task is accounted for."""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path
from typing import Any

import msgpack

from iproto_server.protocol.constants import Key, RequestType
from iproto_server.testing.logged_process import LoggedProcess
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient, frame
from tests.programs import REPOSITORY
from tests.running_server import QUEUE_APPLICATION, RunningServer

WORKERS = 50
STEPS = 1000
VICTIMS = 3
TASKS_PER_VICTIM = 5
SEED = 20_201_105
PATIENCE = 100_000
"""How often the server is asked whether it has settled. Only a failing test ever asks so often."""

VICTIM = """
import sys
from tests.iproto_client import IprotoClient
client = IprotoClient.at(sys.argv[1])
client.socket.settimeout(None)
for _ in range(int(sys.argv[2])):
    assert client.call("queue.take", 30).data
print("holding", flush=True)
client.receive()
"""
"""Takes tasks and keeps them until it is killed."""


class Books:
    """What all workers together know must be true."""

    def __init__(self) -> None:
        self.put: set[int] = set()
        self.acknowledged: set[int] = set()
        self.holders: dict[int, object] = {}
        self.deaths = 0


class Worker:
    """One client, over and over again on a new connection.

    It never dies between a put or an ack and the answer, so that the books are exact; it may die between a
    take and its answer.
    """

    def __init__(self, server: RunningServer, books: Books, chance: random.Random) -> None:
        self._server = server
        self._books = books
        self._chance = chance
        self._mine: dict[int, int] = {}

    async def run(self, first: int) -> None:
        """Do STEPS things; `first` is the first of the numbers it puts."""
        await self._connect()
        for number in range(first, first + STEPS):
            what = self._chance.random()
            if what < 0.35:
                options = {"delay": self._chance.random() / 50} if self._chance.random() < 0.3 else None
                await self._call("queue.put", number, options)
                self._books.put.add(number)
            elif what < 0.7:
                await self._take()
            elif what < 0.85:
                await self._give("queue.ack")
            elif what < 0.93:
                await self._give("queue.release")
            else:
                await self._die()
        await self._die()

    async def _take(self) -> None:
        answer = await self._call("queue.take", self._chance.choice([0, 0.001, 0.02]))
        if answer:
            [task] = answer
            assert task["status"] == "T"
            assert task["id"] not in self._books.holders, "handed to two at once"
            self._books.holders[task["id"]] = self
            self._mine[task["id"]] = task["data"]

    async def _give(self, procedure: str) -> None:
        if not self._mine:
            return
        task_id = self._chance.choice(list(self._mine))
        data = self._mine.pop(task_id)
        del self._books.holders[task_id]
        [task] = await self._call(procedure, task_id)
        assert (task["id"], task["data"]) == (task_id, data)
        if procedure == "queue.ack":
            assert data not in self._books.acknowledged
            self._books.acknowledged.add(data)

    async def _die(self) -> None:
        """Go in the middle of a take, as one that was killed goes, or take leave."""
        for task_id in self._mine:
            del self._books.holders[task_id]
        self._mine.clear()
        self._books.deaths += 1
        how = self._chance.random()
        if how < 0.5:
            for timeout in (0, 30):
                self._writer.write(call("queue.take", timeout))
        if how < 0.25:
            await asyncio.sleep(self._chance.random() / 100)
        if how < 0.75:
            self._writer.transport.abort()
        else:
            self._writer.close()
        await self._connect()

    async def _connect(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(self._server.host, self._server.port)
        await self._reader.readexactly(128)

    async def _call(self, name: str, *arguments: object) -> list[Any]:
        self._writer.write(call(name, *arguments))
        size = int.from_bytes((await self._reader.readexactly(5))[1:], "big")
        unpacker = msgpack.Unpacker(strict_map_key=False)
        unpacker.feed(await self._reader.readexactly(size))
        header, body = unpacker.unpack(), unpacker.unpack()
        assert header[Key.REQUEST_TYPE] == 0, body
        answer: list[Any] = body[Key.DATA]
        return answer

    def close(self) -> None:
        """The last connection ends here."""
        self._writer.close()


def call(name: str, *arguments: object) -> bytes:
    return frame(RequestType.CALL, {Key.FUNCTION_NAME: name, Key.TUPLE: list(arguments)})


async def work(server: RunningServer, books: Books) -> None:
    workers = [Worker(server, books, random.Random(SEED + number)) for number in range(WORKERS)]
    async with asyncio.TaskGroup() as group:
        for number, worker in enumerate(workers):
            group.create_task(worker.run(number * STEPS))
    for worker in workers:
        worker.close()


def victim(server: RunningServer, directory: Path) -> LoggedProcess:
    command = [sys.executable, "-c", VICTIM, server.address, str(TASKS_PER_VICTIM)]
    return LoggedProcess(command, cwd=directory, env={"PYTHONPATH": str(REPOSITORY)})


def settled(client: IprotoClient) -> dict[str, int]:
    """The counters once the last deaths are noticed and the last delays have ended."""
    for _ in range(PATIENCE):
        stats: dict[str, int] = client.call("queue.stats").data[0]
        if not stats["taken"] and not stats["waiting"]:
            return stats
    raise AssertionError(f"it does not settle: {stats}")


def test_no_task_is_lost_and_none_is_in_two_hands(start_server: StartServer, tmp_path: Path) -> None:
    server = start_server([QUEUE_APPLICATION])
    books = Books()
    victims = [victim(server, tmp_path) for _ in range(VICTIMS)]
    with IprotoClient.at(server.address) as client:
        # Numbers below zero are the victims', who are served first: each dies with its hands full.
        for number in range(VICTIMS * TASKS_PER_VICTIM):
            client.call("queue.put", -1 - number)
            books.put.add(-1 - number)
        for process in victims:
            process.wait_for("holding")
        asyncio.run(work(server, books))
        assert books.deaths > 2 * WORKERS
        assert len(books.acknowledged) > 10 * WORKERS
        assert client.call("queue.stats").data[0]["taken"] >= VICTIMS * TASKS_PER_VICTIM
        for process in victims:
            process.kill()

        stats = settled(client)
        [rows] = client.call("box.space.queue:select").data
        assert {row[1] for row in rows} <= {"R"}
        left = [row[3] for row in rows]
        assert len(set(left)) == len(left)
        assert not books.acknowledged & set(left), "acknowledged, but still there"
        assert books.acknowledged | set(left) == books.put, "lost, or come from nowhere"
        assert stats == {"total": len(left), "ready": len(left), "waiting": 0, "taken": 0}
    assert " error " not in server.process.output
