"""Servers whose clients evaluate Lua code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.iproto_client import EVAL, EXPRESSION, PING, TUPLE, Answer, IprotoClient
from tests.running_server import RunningServer

APPLICATION = Path(__file__).with_name("application.lua")


class LuaClient:
    """Evaluates Lua code, each time on a connection of its own, and looks whether the server goes on.

    Args:
        server: The server.
    """

    def __init__(self, server: RunningServer) -> None:
        self.server = server

    def eval(self, text: str, *arguments: object) -> Answer:
        """Evaluate a text, and then send a PING on another connection."""
        with IprotoClient.at(self.server.address) as client:
            answer = client.request(EVAL, {EXPRESSION: text, TUPLE: list(arguments)})
        with IprotoClient.at(self.server.address) as client:
            assert client.request(PING).ok
        return answer


StartLua: TypeAlias = Callable[..., LuaClient]


@pytest.fixture(scope="module")
def start_lua(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartLua]:
    """A function that starts servers with options, of a Lua application or of another one."""
    with ExitStack() as running:

        def start(*options: str, application: str = str(APPLICATION)) -> LuaClient:
            server = RunningServer(tmp_path_factory.mktemp("lua"), [application], options)
            return LuaClient(running.enter_context(server))

        yield start


@pytest.fixture(scope="module")
def lua(start_lua: StartLua) -> LuaClient:
    """A server without limits."""
    return start_lua()
