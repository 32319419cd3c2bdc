"""Functions that run with their owner's rights, for callers without any, on both servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.differential.both import Both
from tests.differential.login import PASSWORD, authenticate
from tests.iproto_client import IprotoClient
from tests.real_tarantool import RealTarantool
from tests.running_server import RunningServer

USER = "producer"
QUEUE = ("put", "take", "ack", "release", "stats")
SETUID = (*(f"queue.{name}" for name in QUEUE), "box.space.queue:len", "box.session.effective_user")
WITHOUT = ("box.space.queue:select", "box.session.user")

LogIn = Callable[[], Both]


@pytest.fixture
def log_in(queue_servers: tuple[RunningServer, RealTarantool], both_queues: Both) -> Iterator[LogIn]:
    """Connect to both queues as a user who may only call the queue's functions."""
    both_queues.prepare("box.schema.user.create", USER, {"password": PASSWORD})
    for name in SETUID:
        both_queues.prepare("box.schema.func.create", name, {"setuid": True})
    for name in WITHOUT:
        both_queues.prepare("box.schema.func.create", name)
    for name in (*SETUID, *WITHOUT):
        both_queues.prepare("box.schema.user.grant", USER, "execute", "function", name)
    opened: list[IprotoClient] = []

    def connect() -> Both:
        clients = [IprotoClient(server.host, server.port) for server in queue_servers]
        opened.extend(clients)
        for client in clients:
            assert authenticate(client, USER).ok
        return Both(*clients)

    yield connect
    for client in opened:
        client.close()
    both_queues.call("box.space.queue:truncate")
    for name in (*SETUID, *WITHOUT):
        both_queues.prepare("box.schema.func.drop", name)
    both_queues.prepare("box.schema.user.drop", USER)


def test_the_queue_works_for_who_may_only_call_its_functions(log_in: LogIn) -> None:
    user = log_in()
    for client in (user.ours, user.theirs):
        assert client.call("queue.put", "data").ok
        task = client.call("queue.take", 0).data[0]
        assert client.call("queue.release", task["id"]).ok
        task = client.call("queue.take", 0).data[0]
        assert client.call("queue.ack", task["id"]).ok
    user.call("queue.stats")


def test_its_space_stays_closed_to_them(log_in: LogIn) -> None:
    user = log_in()
    for name in (*SETUID[-2:], *WITHOUT, "box.space.queue:delete", "queue.unknown"):
        user.call(name)
    user.call("box.space.queue:select")
    user.call("box.session.user")


def test_who_waits_gets_a_task_with_the_owners_rights(log_in: LogIn) -> None:
    waiting, other = log_in(), log_in()
    for client, producer in ((waiting.ours, other.ours), (waiting.theirs, other.theirs)):
        client.send(10, {0x22: "queue.take", 0x21: [20]})
        put = producer.call("queue.put", "data").data[0]
        taken = client.receive()
        assert taken.data[0]["id"] == put["id"]
        assert client.call("box.space.queue:select").failure == (
            42,
            f"Read access to space 'queue' is denied for user '{USER}'",
        )


def test_guests_calls_are_made_as_the_owner_too(both_queues: Both, log_in: LogIn) -> None:
    both_queues.call("box.session.effective_user")
    both_queues.call("box.session.su", USER)
    both_queues.call("box.session.user")
    both_queues.call("box.session.effective_user")
    both_queues.call("box.session.su", "admin")
