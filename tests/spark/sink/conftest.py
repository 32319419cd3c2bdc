"""Servers to write to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import StartServer, StartTarantool
from tests.iproto_client import IprotoClient
from tests.real_tarantool import GUEST_IS_SUPER
from tests.spark.sink.application import LUA


@pytest.fixture(params=["ours", pytest.param("tarantool", marks=pytest.mark.real_tarantool)])
def target(
    request: pytest.FixtureRequest, start_server: StartServer, real_tarantool: StartTarantool
) -> Iterator[IprotoClient]:
    """A client of a server with `tests.spark.sink.application`: ours, then a real Tarantool."""
    server = (
        start_server(["tests.spark.sink.application:app"])
        if request.param == "ours"
        else real_tarantool(GUEST_IS_SUPER + LUA)
    )
    with IprotoClient(server.host, server.port) as client:
        yield client
