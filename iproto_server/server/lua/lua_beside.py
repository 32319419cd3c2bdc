"""Lua beside applications of Python: clients evaluate Lua code, which finds a `box` that is configured."""

from __future__ import annotations

import asyncio

from iproto_server.config.config import Config
from iproto_server.lua.fibers import FiberRuntime, run
from iproto_server.lua.server_functions import server_functions
from iproto_server.server.lua.lua_server import LuaServer, limits_of
from iproto_server.server.requests.call import Calls
from iproto_server.server.server import Server


class LuaBeside:
    """A LuaJIT for a server that it does not start.

    Parameters:
        config: the server's configuration.
    """

    def __init__(self, config: Config) -> None:
        self._limits = limits_of(config)

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the LuaJIT. Raises LuaIsMissing: it is not installed."""
        self._runtime = FiberRuntime(loop, server_functions(lambda: self._server), self._limits)
        self._server = LuaServer(loop, self._runtime)
        self._runtime.require("internal.box.load")

    def serve(self, calls: Calls) -> None:
        """Let clients call functions of Lua, and evaluate texts."""
        self._server.serve(calls)

    async def attach(self, server: Server) -> None:
        """Let Lua code use a server's box.

        Parameters:
            server: the server, whose box is recovered, and which has not started yet.
        """
        self._server.adopt(server)
        await self.configure()

    async def configure(self) -> None:
        """Let `box.cfg` have the server's present values."""
        await run(self._runtime, self._runtime.load(b"box.cfg{}", b"=box.cfg"))
