"""Listening sockets that close at the moment at which a connection opens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from iproto_server import Application, Box
from iproto_server.protocol.constants import RequestType
from tests.server.in_process import ServerInProcess


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_connection_outlives_the_socket_that_it_came_from(
    tmp_path: Path, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    application = Application("closing")
    servers: list[ServerInProcess] = []

    @application.setup
    def setup(box: Box) -> None:
        box.session.on_connect(lambda: servers[0].server.listeners.close())

    with ServerInProcess(tmp_path, [application], loop=new_loop()) as server:
        servers.append(server)
        client = server.connect()
        assert client.request(RequestType.PING, {}).ok
        assert client.request(RequestType.PING, {}).ok
