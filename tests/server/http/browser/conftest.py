"""The server with a dashboard and the browser that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from tests.iproto_client import IprotoClient
from tests.running_server import RunningServer
from tests.server.http.browser.browser import Browser
from tests.server.http.browser.dashboard import TUBE
from tests.server.http.http_client import HTTP, http_port

TUBES = "queue_lua_compat.tubes:app"
USERS = "tests.server.http.dashboard_application:app"


@pytest.fixture(scope="module")
def applications() -> Sequence[str]:
    return [TUBES, USERS]


@pytest.fixture(scope="module")
def server_options() -> Sequence[str]:
    return HTTP


@pytest.fixture(scope="module")
def site(server: RunningServer) -> str:
    with IprotoClient.at(server.address) as client:
        assert client.call("queue.create_tube", TUBE, "fifottl").ok
    return f"http://127.0.0.1:{http_port(server)}/"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as browser:
        browser.resize(1280)
        yield browser


@pytest.fixture
def queue(server: RunningServer, site: str) -> Iterator[IprotoClient]:
    """A client of a server whose tube is empty."""
    with IprotoClient.at(server.address) as client:
        assert client.call(f"queue.tube.{TUBE}:truncate").ok
        yield client
