"""Servers to read from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import StartServer, StartTarantool
from tests.iproto_client import IprotoClient
from tests.real_tarantool import GUEST_IS_SUPER
from tests.spark.source.remote.application import LUA

APPLICATION = "tests.spark.source.remote.application:app"


@pytest.fixture(params=["ours", pytest.param("tarantool", marks=pytest.mark.real_tarantool)])
def server(
    request: pytest.FixtureRequest, start_server: StartServer, real_tarantool: StartTarantool
) -> Iterator[IprotoClient]:
    """A client of a server with the spaces of `application`: ours, then a real Tarantool."""
    running = start_server([APPLICATION]) if request.param == "ours" else real_tarantool(GUEST_IS_SUPER + LUA)
    with IprotoClient(running.host, running.port) as client:
        yield client


@pytest.fixture
def ours(start_server: StartServer) -> Iterator[IprotoClient]:
    """A client of our server with the spaces of `application`."""
    running = start_server([APPLICATION])
    with IprotoClient(running.host, running.port) as client:
        yield client
