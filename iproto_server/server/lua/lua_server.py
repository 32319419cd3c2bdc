"""A server that Lua code starts with `box.cfg`."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from iproto_server.app import Application
from iproto_server.codec import msgpack as codec
from iproto_server.config.config import Config
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.lua.fibers import FiberRuntime
from iproto_server.lua.limits import LuaLimits
from iproto_server.server.lua.box_cfg import with_box_cfg
from iproto_server.server.lua.lua_host import LuaHost
from iproto_server.server.lua.queue_applications import queue_applications
from iproto_server.server.requests.call import Calls
from iproto_server.server.server import Server

logger = logging.getLogger("iproto_server.lua")

Answer = Callable[..., object]


def limits_of(config: Config) -> LuaLimits:
    """Return the limits of Lua code that a configuration has."""
    return LuaLimits(config.lua_memory, config.lua_jit == "on", config.lua_time_limit)


class LuaServer:
    """The server that Lua code starts.

    Parameters:
        loop: the event loop.
        runtime: the LuaJIT, whose code starts it.
        configured: returns the configuration, from the one with the options of `box.cfg`: what the command
            line says comes first.
        applications: applications of Python to serve beside the Lua code.

    Attributes:
        server: the server; None before `box.cfg`.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        runtime: FiberRuntime,
        configured: Callable[[Config], Config] = lambda config: config,
        applications: Sequence[Application] = (),
    ) -> None:
        self._loop = loop
        self._host = LuaHost(runtime)
        self._configured = configured
        self._applications = applications
        self._tasks: set[asyncio.Task[None]] = set()
        self.server: Server | None = None

    # -- functions of Lua's modules, of which the first argument answers the fiber that waits --

    def start_box(self, answer: Answer, packed: bytes) -> None:
        """Start the server with the packed options of `box.cfg`."""
        self._answer_after(answer, self.start(codec.unpack(packed)))

    def listen(self, answer: Answer, packed: bytes) -> None:
        """Listen on other addresses: the packed option `listen` of `box.cfg`."""
        self._answer_after(answer, self._listen_on(codec.unpack(packed)))

    def wait_for_box(self, answer: Answer, name: bytes) -> None:
        """Call a function of the box that waits, such as `box.snapshot`."""
        self._host.wait_for_box(answer, name)

    async def _listen_on(self, given: object) -> None:
        config = with_box_cfg(Config(listen=()), {"listen": given})
        assert self.server is not None
        await self.server.listen_on(config.listen)

    def _answer_after(self, answer: Answer, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(self._answered(answer, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answered(self, answer: Answer, work: Coroutine[Any, Any, None]) -> None:
        """Do some work, and answer Lua's fiber."""
        try:
            await work
        except BoxError as error:
            logger.debug("box.cfg failed", exc_info=error)
            answer(True, False, error.code, error.message.encode("utf-8", "surrogateescape"))
        except Exception as error:  # Lua code handles it, or ends with it
            logger.debug("box.cfg failed", exc_info=error)
            answer(True, False, int(ErrorCode.SYSTEM), str(error).encode("utf-8", "surrogateescape"))
        else:
            answer(True, True)

    async def start(self, options: Mapping[str, Any]) -> None:
        """Start the server, unless it runs.

        Parameters:
            options: the options of `box.cfg`.

        Raises:
            BoxError: an option is wrong, or the start has failed.
            ConfigError: the configuration is refused.
            StorageError: the files cannot be used as they are.
            OSError: a file or an address cannot be used.
        """
        if self.server is not None:
            return
        config = self._configured(with_box_cfg(Config(listen=(), guest="none"), options or {}))
        if str(config.work_dir) != ".":
            # As in Tarantool, Lua code finds its files there.
            config = dataclasses.replace(config, work_dir=config.work_dir.absolute())
            config.work_dir.mkdir(parents=True, exist_ok=True)
            os.chdir(config.work_dir)
        applications = [*self._applications, *queue_applications()]
        server = Server(config, applications, lua=self.serve, configures_guest=False)
        server.open(self._loop)
        self._host.attach(server.box)
        try:
            await server.start()
        except BaseException:
            self._host.detach()
            server.undo_start()
            raise
        self.server = server

    def stop_waiting(self) -> None:
        """Let the current or next stop wait for nothing."""
        if self.server is not None:
            self.server.stop_waiting()

    def adopt(self, server: Server) -> None:
        """Use a server that Lua code has not started."""
        self._host.attach(server.box)
        self.server = server

    def serve(self, calls: Calls) -> None:
        """Let clients call functions of Lua, and evaluate texts."""
        self._host.serve(calls)

    async def stop(self) -> None:
        """Stop the server, if it runs."""
        if self.server is not None:
            await self.server.stop()
            self._host.detach()
