"""Our server with the tests' applications, and clients without a library in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import pytest

from tests.iproto_client import IprotoClient
from tests.running_server import RunningServer

Connect = Callable[[], IprotoClient]
ACCOUNTS = "tests.server.accounts:app"
APPLICATION = "tests.server.application:app"
EVENTS = "tests.server.events_application:app"


@pytest.fixture(scope="module")
def applications() -> Sequence[str]:
    """What the server of a module's tests serves; a module whose tests ask for something else has its own."""
    return [APPLICATION, ACCOUNTS]


@pytest.fixture(scope="module")
def server_options() -> Sequence[str]:
    """Its options; a module that needs some has its own."""
    return ()


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, applications: Sequence[str], server_options: Sequence[str]
) -> Iterator[RunningServer]:
    """The server of all tests of a module: leave it as you have found it, or start one of your own."""
    with RunningServer(tmp_path_factory.mktemp("server"), applications, server_options) as server:
        yield server


@pytest.fixture
def connect(server: RunningServer) -> Iterator[Connect]:
    with ExitStack() as clients:
        yield lambda: clients.enter_context(IprotoClient.at(server.address))


@pytest.fixture
def client(connect: Connect) -> IprotoClient:
    return connect()


@pytest.fixture
def space_id(client: IprotoClient) -> Iterator[int]:
    """The number of "t", a space without rows."""
    number: int = client.call("box.schema.create_space", "t").data[0]["id"]
    client.call("box.space.t:create_index", "pk")
    yield number
    client.call("box.space.t:drop")
