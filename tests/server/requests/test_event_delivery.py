"""Events and pushed messages beside the log: what waits for it, and what comes of a write that fails."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest

from iproto_server import Application, Box
from tests.iproto_client import (
    CALL,
    CHUNK,
    DATA,
    EVENT,
    EVENT_DATA,
    EVENT_KEY,
    FUNCTION_NAME,
    PING,
    TUPLE,
    WATCH,
    Answer,
    IprotoClient,
)
from tests.server.faults.faulty_disk import WAL_IO
from tests.server.in_process import ServerInProcess

gate = asyncio.Event()


def application() -> Application:
    app = Application("rows")

    @app.setup
    def setup(box: Box) -> None:
        box.schema.create_space("rows", if_not_exists=True).create_index("primary", if_not_exists=True)
        gate.clear()

    @app.procedure("change_and_tell")
    def change_and_tell(box: Box, number: int) -> None:
        box.space.rows.replace([number])
        box.session.push("pushed")
        box.broadcast("row", number)

    @app.procedure("push_when_open")
    async def push_when_open(box: Box) -> str:
        await gate.wait()
        box.session.push("pushed")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return "answer"

    @app.procedure("change_and_open")
    def change_and_open(box: Box) -> None:
        box.space.rows.replace([1])
        gate.set()

    return app


class Start(Protocol):
    def __call__(self, **options: Any) -> ServerInProcess: ...


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with ExitStack() as servers:
        yield lambda **options: servers.enter_context(ServerInProcess(tmp_path, [application()], **options))


def send_call(client: IprotoClient, procedure: str, *arguments: object) -> int:
    return client.send(CALL, {FUNCTION_NAME: procedure, TUPLE: list(arguments)})


def watching(server: ServerInProcess, *keys: str) -> IprotoClient:
    """A client that watches keys, and has acknowledged what there was in the beginning."""
    client = server.connect()
    for key in keys:
        client.send(WATCH, {EVENT_KEY: key})
        assert client.receive().status == EVENT
        client.send(WATCH, {EVENT_KEY: key})
    client.request(PING)
    return client


def stall(server: ServerInProcess) -> None:
    """From now on the disk does not come to an end with syncing."""
    server.disk.may_sync.clear()
    server.disk.is_syncing.clear()


def told(answer: Answer) -> tuple[Any, Any]:
    assert answer.status == EVENT
    return answer.body[EVENT_KEY], answer.body[EVENT_DATA]


def test_a_value_that_rests_on_rows_waits_for_the_disk_and_no_other_does(start: Start) -> None:
    server = start(wal_mode="fsync")
    watcher, writer, other = watching(server, "row", "other"), server.connect(), server.connect()
    stall(server)
    sync = send_call(writer, "change_and_tell", 1)
    assert server.disk.is_syncing.wait(30)
    # The message before the answer is there, as in Tarantool; the answer is not.
    chunk = writer.receive()
    assert (chunk.status, chunk.sync, chunk.body[DATA]) == (CHUNK, sync, ["pushed"])
    assert other.call("box.broadcast", "other", 2).ok
    assert told(watcher.receive()) == ("other", 2)
    watcher.request(PING)
    # Whoever asks is told what there is, as with rows.
    assert other.call("box.watch_once", "row").data == [1]
    server.disk.may_sync.set()
    assert told(watcher.receive()) == ("row", 1)
    assert writer.receive().sync == sync


@pytest.mark.parametrize("mode", ["write", "fsync"])
def test_what_was_told_with_rows_that_cannot_be_written_is_told_as_by_tarantool(
    start: Start, mode: str
) -> None:
    server = start(wal_mode=mode)
    watcher, writer = watching(server, "row"), server.connect()
    server.disk.fault = errno.ENOSPC
    sync = send_call(writer, "change_and_tell", 1)
    chunk, answer = writer.receive(), writer.receive()
    assert (chunk.status, chunk.sync, chunk.body[DATA]) == (CHUNK, sync, ["pushed"])
    assert (answer.sync, answer.failure) == (sync, WAL_IO)
    assert told(watcher.receive()) == ("row", 1)


@pytest.mark.parametrize("mode", ["write", "fsync"])
def test_a_schema_that_is_not_written_is_told_with_the_version_it_has_then(start: Start, mode: str) -> None:
    server = start(wal_mode=mode)
    watcher, writer = watching(server, "box.schema"), server.connect()
    server.disk.fault = errno.ENOSPC
    assert writer.call("box.schema.create_space", "lost").failure == WAL_IO
    server.disk.fault = None
    version = writer.request(PING).schema_version
    while told(watcher.receive()) != ("box.schema", {"version": version}):
        watcher.send(WATCH, {EVENT_KEY: "box.schema"})


def test_a_message_comes_before_its_answer_though_others_wait_for_the_disk(start: Start) -> None:
    server = start(wal_mode="fsync")
    client = server.connect()
    pushing = send_call(client, "push_when_open")
    client.request(PING)
    stall(server)
    changing = send_call(client, "change_and_open")
    assert server.disk.is_syncing.wait(30)
    chunk, answer = client.receive(), client.receive()
    assert (chunk.status, chunk.sync, chunk.body[DATA]) == (CHUNK, pushing, ["pushed"])
    assert (answer.sync, answer.data) == (pushing, ["answer"])
    server.disk.may_sync.set()
    assert client.receive().sync == changing
