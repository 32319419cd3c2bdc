"""Our server with the tests' application, and clients without a library in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.running_server import RunningServer

Connect = Callable[[], IprotoClient]
APPLICATION = "tests.server.application:app"


@pytest.fixture
def server(start_server: StartServer) -> RunningServer:
    return start_server([APPLICATION, "tests.server.accounts:app"])


@pytest.fixture
def connect(server: RunningServer) -> Iterator[Connect]:
    with ExitStack() as clients:
        yield lambda: clients.enter_context(IprotoClient.at(server.address))


@pytest.fixture
def client(connect: Connect) -> IprotoClient:
    return connect()
