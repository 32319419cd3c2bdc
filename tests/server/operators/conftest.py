"""The server and the clients that the tests of operators' procedures share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.running_server import QUEUE_APPLICATION, RunningServer
from tests.server.operators.calling import OPERATORS, Connect


@pytest.fixture
def server(start_server: StartServer) -> RunningServer:
    return start_server([QUEUE_APPLICATION, OPERATORS], ["--log-format", "json", "--guest", "all"])


@pytest.fixture
def connect(server: RunningServer) -> Iterator[Connect]:
    clients: list[IprotoClient] = []

    def connect() -> IprotoClient:
        clients.append(IprotoClient.at(server.address))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()


@pytest.fixture
def client(connect: Connect) -> IprotoClient:
    return connect()
