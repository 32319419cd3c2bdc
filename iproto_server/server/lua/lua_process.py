"""The process of a Lua application: runs its files, and serves until it is asked to stop."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import uvloop

from iproto_server.app import Application
from iproto_server.config.config import Config
from iproto_server.lua.fibers import FiberRuntime, run
from iproto_server.lua.server_functions import server_functions
from iproto_server.server.lua.lua_server import LuaServer
from iproto_server.server.service_manager import ServiceManager
from iproto_server.server.watchdog import END_GRACE, STOP_SIGNALS

logger = logging.getLogger("iproto_server.lua")


def run_lua(
    scripts: Sequence[str],
    configured: Callable[[Config], Config],
    applications: Sequence[Application],
    manager: ServiceManager,
) -> int:
    """Run files of Lua, and serve until SIGTERM or SIGINT.

    Parameters:
        scripts: the paths of the files, which run one after the other.
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
        runtime = FiberRuntime(loop, server_functions(lambda: server))
        server = LuaServer(loop, runtime, configured, applications)
        runtime.require("internal.box.load")
        return loop.run_until_complete(_serve(server, runtime, texts, manager))
    finally:
        loop.close()


async def _serve(
    server: LuaServer, runtime: FiberRuntime, texts: Sequence[tuple[str, bytes]], manager: ServiceManager
) -> int:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stopped.set)
    waiting = loop.create_task(stopped.wait())
    status = 0
    for path, text in texts:
        try:
            chunk = runtime.load(_without_shebang(text), b"@" + path.encode())
            script = loop.create_task(run(runtime, chunk))
        except SyntaxError as error:
            print(f"LuajitError: {error}", file=sys.stderr)
            status = 1
            break
        await asyncio.wait((script, waiting), return_when=asyncio.FIRST_COMPLETED)
        if stopped.is_set():
            break
        failure = script.exception()
        if failure is not None:
            print(f"LuajitError: {failure}\nfatal error, exiting the event loop", file=sys.stderr)
            status = 1
            break
    if not status and not stopped.is_set():
        if server.server is None:
            await server.start({})
        assert server.server is not None
        manager.ready(server.server.describe)
        logger.info("ready to accept requests")
        await stopped.wait()
    logger.info("stopping")
    if server.server is not None:
        manager.stopping(server.server.config.stop_timeout + END_GRACE)
    await server.stop()
    waiting.cancel()
    return status


def _without_shebang(text: bytes) -> bytes:
    """The text without its first line if that begins with `#`; the numbers of the lines stay."""
    return b"--" + text if text.startswith(b"#") else text
