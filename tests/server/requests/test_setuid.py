"""Setuid functions and the moments at which others' rights must not leak, or their own be lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from iproto_server import Application, Box, Waiter, WaitQueue
from tests.differential.login import authenticate
from tests.iproto_client import (
    AUTH,
    CALL,
    FUNCTION_NAME,
    ITERATOR,
    KEY,
    LIMIT,
    PING,
    SELECT,
    SPACE_ID,
    TUPLE,
    USER_NAME,
    IprotoClient,
)
from tests.server.in_process import ServerInProcess

STREAM_ID = 0x0A
SETUID = ("read", "read.async", "wait", "wake", "become", "fail")
PLAIN = ("park", "plain.async")
DENIED = (42, "Read access to space 'closed' is denied for user 'ann'")


def closed_application() -> Application:
    """A space that only its owner may read, and procedures that try."""
    app = Application("closed")
    lines: dict[str, WaitQueue] = {}

    @app.setup
    def setup(box: Box) -> None:
        box.schema.create_space("closed").create_index("primary")
        box.space.closed.insert([1])
        box.schema.user.create("ann", password="secret")
        for name in (*SETUID, *PLAIN):
            box.schema.func.create(name, setuid=name in SETUID)
            box.schema.user.grant("ann", "execute", "function", name)
        lines["line"] = WaitQueue(box)

    def look(box: Box) -> tuple[str, str, int]:
        return box.session.user(), box.session.effective_user(), len(box.space.closed.select())

    app.procedure("read")(look)

    @app.procedure("read.async")
    async def read_async(box: Box) -> tuple[str, str, int]:
        for _ in range(3):
            look(box)
            await lines["line"].park(60, lambda: look(box))
        return look(box)

    @app.procedure("plain.async")
    async def plain_async(box: Box) -> object:
        return await lines["line"].park(60, lambda: look(box))

    @app.procedure("wait")
    def wait(box: Box) -> Waiter:
        return lines["line"].park(60, lambda: look(box))

    @app.procedure("park")
    def park(box: Box) -> Waiter:
        return lines["line"].park(60, lambda: look(box))

    @app.procedure("wake")
    def wake(box: Box) -> tuple[str, str, int]:
        lines["line"].wake()
        return look(box)

    @app.procedure("become")
    def become(box: Box) -> tuple[str, str]:
        box.session.su("guest")
        return box.session.user(), box.session.effective_user()

    @app.procedure("fail")
    def fail(box: Box) -> None:
        raise ZeroDivisionError

    return app


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerInProcess]:
    with ServerInProcess(tmp_path, [closed_application()]) as server:
        yield server


@pytest.fixture
def ann(server: ServerInProcess) -> Callable[[], IprotoClient]:
    def log_in() -> IprotoClient:
        client = server.connect()
        assert authenticate(client, "ann").ok
        return client

    return log_in


Connect = Callable[[], IprotoClient]
AS_OWNER = ["ann", "admin", 1]


def send(client: IprotoClient, name: str) -> int:
    return client.send(CALL, {FUNCTION_NAME: name, TUPLE: []})


def test_it_runs_as_its_owner_for_the_sessions_user(ann: Connect) -> None:
    assert ann().call("read").data == AS_OWNER


@pytest.mark.parametrize("name", ["read", "fail"])
def test_afterwards_the_caller_has_its_own_rights(ann: Connect, name: str) -> None:
    client = ann()
    client.call(name)
    assert client.request(SELECT, {SPACE_ID: 512, ITERATOR: 2, LIMIT: 9, KEY: []}).failure == DENIED


def test_who_may_not_execute_it_may_not_call_it(server: ServerInProcess, ann: Connect) -> None:
    server.run(_revoke(server))
    assert ann().call("read").failure == (
        42,
        "Execute access to function 'read' is denied for user 'ann'",
    )


async def _revoke(server: ServerInProcess) -> None:
    server.server.box.schema.user.revoke("ann", "execute", "function", "read")


def test_an_async_one_goes_on_as_its_owner(ann: Connect) -> None:
    client, other = ann(), ann()
    send(client, "read.async")
    for _ in range(3):
        assert client.request(SELECT, {SPACE_ID: 512, ITERATOR: 2, LIMIT: 9, KEY: []}).failure == DENIED
        assert other.call("wake").data == AS_OWNER
    assert client.receive().data == AS_OWNER


def test_who_waits_resumes_as_the_owner(ann: Connect) -> None:
    client, other = ann(), ann()
    send(client, "wait")
    assert other.call("wake").ok
    assert client.receive().data == AS_OWNER


@pytest.mark.parametrize("name", ["park", "plain.async"])
def test_who_waits_without_is_not_lent_the_rights_of_what_wakes_it(ann: Connect, name: str) -> None:
    client = ann()
    waiting = send(client, name)
    assert client.request(PING).ok  # by now the coroutine has begun
    waking = send(client, "wake")
    answers = {answer.sync: answer for answer in (client.receive(), client.receive())}
    assert answers[waiting].failure == DENIED
    assert answers[waking].data == AS_OWNER


def test_requests_that_go_on_in_a_stream_are_not_lent_them_either(ann: Connect) -> None:
    client = ann()
    selection = {SPACE_ID: 512, ITERATOR: 2, LIMIT: 9, KEY: []}
    client.send(CALL, {FUNCTION_NAME: "park", TUPLE: []}, {STREAM_ID: 1})
    selected = client.send(SELECT, selection, {STREAM_ID: 1})
    woken = send(client, "wake")
    answers = {answer.sync: answer for answer in (client.receive() for _ in range(3))}
    assert answers[selected].failure == DENIED
    assert answers[woken].data == AS_OWNER


def test_it_can_make_the_session_somebody_elses(ann: Connect) -> None:
    client = ann()
    assert client.call("become").data == ["guest", "guest"]
    assert client.call("read").data[0] == "guest"


def test_who_logs_in_anew_meanwhile_is_the_new_user(ann: Connect) -> None:
    client, other = ann(), ann()
    call = send(client, "read.async")
    assert client.request(AUTH, {USER_NAME: "guest", TUPLE: []}).ok
    for _ in range(3):
        other.call("wake")
    answer = client.receive()
    assert (answer.sync, answer.data) == (call, ["guest", "admin", 1])


def test_one_that_was_dropped_runs_as_its_caller(server: ServerInProcess) -> None:
    async def drop() -> None:
        server.server.box.schema.func.drop("read")

    guest = server.connect()
    assert guest.call("read").data == ["guest", "admin", 1]
    server.run(drop())
    assert guest.call("read").data == ["guest", "guest", 1]
