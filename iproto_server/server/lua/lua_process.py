"""The process of a Lua application: runs its files, and serves until it is asked to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import uvloop

from iproto_server.app import Application
from iproto_server.config.config import Config
from iproto_server.lua.fibers import FiberRuntime, run
from iproto_server.lua.server_functions import server_functions
from iproto_server.server.lua.lua_server import LuaServer, limits_of
from iproto_server.server.service_manager import ServiceManager
from iproto_server.server.watchdog import END_GRACE, STOP_SIGNALS, Watchdog

logger = logging.getLogger("iproto_server.lua")


def run_lua(
    scripts: Sequence[str],
    config: Config,
    configured: Callable[[Config], Config],
    applications: Sequence[Application],
    manager: ServiceManager,
) -> int:
    """Run files of Lua, and serve until SIGTERM or SIGINT.

    Parameters:
        scripts: the paths of the files, which run one after the other.
        config: the configuration without the options of `box.cfg`.
        configured: see `LuaServer`.
        applications: applications of Python to serve beside them.
        manager: the service manager.

    Returns:
        The exit status: 1 if a file has ended with an error.

    Raises:
        LuaIsMissing: LuaJIT is not installed.
        OSError: a file cannot be read.
    """
    texts = [(path, Path(path).read_bytes()) for path in scripts]
    loop = uvloop.new_event_loop()
    try:
        return loop.run_until_complete(LuaProcess(loop, config, configured, applications, manager).run(texts))
    finally:
        loop.close()


class LuaProcess:
    """A process that runs files of Lua, and serves until it is asked to stop.

    Parameters:
        loop: the event loop.
        config, configured, applications, manager: see `run_lua`.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        config: Config,
        configured: Callable[[Config], Config],
        applications: Sequence[Application],
        manager: ServiceManager,
    ) -> None:
        self._loop = loop
        self._config = config
        self._manager = manager
        self._ended: asyncio.Future[int] = loop.create_future()
        self._is_asked_to_stop = False
        functions: dict[str, Callable[..., Any]] = {
            **server_functions(lambda: self._server),
            "program_end": self._end,
            "program_end_at_once": lambda status: os._exit(int(status) & 0xFF),
            "program_is_terminal": os.isatty,
        }
        self._runtime = FiberRuntime(loop, functions, limits_of(config))
        self._server = LuaServer(loop, self._runtime, configured, applications)
        self._runtime.require("internal.box.load")
        shutdown = self._runtime.require("internal.program.shutdown")
        self._begin_shutdown: Callable[..., object] = shutdown[b"begin"]

    def _end(self, status: float) -> None:
        """End the process: after the hooks of a stop, or because Lua code has called `os.exit`."""
        if not self._ended.done():
            self._ended.set_result(int(status) & 0xFF)

    def _stop(self) -> None:
        """Begin to stop; a second signal does not wait."""
        if self._is_asked_to_stop:
            logger.warning("second stop signal: stopping without waiting")
            self._server.stop_waiting()
            self._end(0)
        self._is_asked_to_stop = True
        self._runtime.call(self._begin_shutdown, 0)

    async def run(self, texts: Sequence[tuple[str, bytes]]) -> int:
        """Run the files, and serve.

        Parameters:
            texts: their paths and contents.

        Returns:
            The exit status.
        """
        for number in STOP_SIGNALS:
            self._loop.add_signal_handler(number, self._stop)
        self._watch()
        self._search_beside(path for path, _ in texts)
        for path, text in texts:
            why = await self._run_file(path, text)
            if why is not None:
                print(f"LuajitError: {why}\nfatal error, exiting the event loop", file=sys.stderr)
                self._end(1)
        if not self._ended.done():
            await self._serve()
        status = await self._ended
        logger.info("stopping")
        if self._server.server is not None:
            self._manager.stopping(self._server.server.config.stop_timeout + END_GRACE)
        await self._server.stop()
        return status

    def _watch(self) -> None:
        """Report what keeps the event loop busy."""

        def current() -> Config:
            return self._config if self._server.server is None else self._server.server.config

        def describe(frame: FrameType) -> Mapping[str, object]:
            return {} if self._server.server is None else self._server.server.describe_running(frame)

        watchdog = Watchdog(
            lambda: current().stop_timeout, lambda: current().too_long_threshold, describe, has_lua=True
        )
        watchdog.start()

    def _search_beside(self, paths: Iterable[str]) -> None:
        """Let `require` find modules in the folders of files, the first one first."""
        served = self._runtime.require("internal.program.served")
        for folder in reversed([Path(path).absolute().parent for path in paths]):
            self._runtime.call(served[b"search_in"], os.fsencode(folder))

    async def _run_file(self, path: str, text: bytes) -> str | None:
        """Run a file to its end, or to that of the process. Returns the text of its error."""
        if self._ended.done():
            return None
        try:
            chunk = self._runtime.load(_without_shebang(text), b"@" + path.encode())
        except SyntaxError as error:
            return str(error)
        script = self._loop.create_task(run(self._runtime, chunk))
        await asyncio.wait((script, self._ended), return_when=asyncio.FIRST_COMPLETED)
        if not script.done():
            script.cancel()
            return None
        failure = script.exception()
        return None if failure is None else str(failure)

    async def _serve(self) -> None:
        """Say that the server is ready; without a call of `box.cfg` it is started first."""
        if self._server.server is None:
            await self._server.start({})
        assert self._server.server is not None
        self._manager.ready(self._server.server.describe)
        logger.info("ready to accept requests")


def _without_shebang(text: bytes) -> bytes:
    """The text without its first line if that begins with `#`; the numbers of the lines stay."""
    return b"--" + text if text.startswith(b"#") else text
