"""The server, and its clients of 1.5's protocol, that the tests of requests share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.iproto_client import IprotoClient
from tests.protocol.tarantool15.box15_client import Client15
from tests.running_server import RunningServer
from tests.server.tarantool15.codes import Connect15, port_15


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    options = ["--listen-1-5", "127.0.0.1:0"]
    directory = tmp_path_factory.mktemp("server")
    with RunningServer(directory, ["tests.server.tarantool15.application15:app"], options) as server:
        yield server


@pytest.fixture
def connect(server: RunningServer) -> Iterator[Connect15]:
    port = port_15(server)
    with ExitStack() as clients:
        yield lambda: clients.enter_context(Client15("127.0.0.1", port))


@pytest.fixture
def client(connect: Connect15) -> Client15:
    return connect()


@pytest.fixture
def iproto(server: RunningServer) -> Iterator[IprotoClient]:
    with IprotoClient.at(server.address) as client:
        yield client


@pytest.fixture
def empty_spaces(iproto: IprotoClient) -> None:
    for name in ("typed", "plain", "pairs", "nullable"):
        assert iproto.call(f"box.space.{name}:truncate").ok
