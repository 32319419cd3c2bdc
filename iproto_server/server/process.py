"""A process that is a server: it runs until it is told to stop by a signal."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Sequence

import uvloop

from iproto_server import native
from iproto_server.app import Application, ApplicationConflict
from iproto_server.config import Config, ConfigError
from iproto_server.importer import ImportAnew
from iproto_server.server.server import Server

logger = logging.getLogger("iproto_server.server")

LAST_GRACE = 0.5
"""Seconds that tasks get to end which still run when the server has stopped."""


def run(config: Config, applications: Sequence[Application], import_anew: ImportAnew | None = None) -> int:
    """Serve until SIGTERM or SIGINT; SIGHUP reloads the applications.

    Parameters:
        config: the configuration.
        applications: what to serve.
        import_anew: imports the applications for a reload.

    Returns: the exit status, 0.

    Raises:
        OSError: an address is in use, or files cannot be read or written.
        StorageError: the files of the database cannot be used as they are.
        ConfigError: applications that conflict, or access that is not configured.
    """
    try:
        server = Server(config, applications, import_anew=import_anew)
    except ApplicationConflict as error:
        raise ConfigError(str(error)) from error
    # They may make way for others; this name would keep them until the end.
    del applications
    # As long as there is nothing to reload, SIGHUP is no reason to die.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # Not asyncio.Runner: at its end it waits for ever for a task that does not let itself be cancelled.
    loop = uvloop.new_event_loop()
    try:
        server.open(loop)
        loop.run_until_complete(_serve(server))
    finally:
        loop.run_until_complete(_end_tasks())
        loop.close()
    return 0


async def _end_tasks() -> None:
    """Cancel what applications have started and left running, and do not wait long for it."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        _, pending = await asyncio.wait(tasks, timeout=LAST_GRACE)
        for task in pending:
            logger.error("%s does not end, and is left behind", task.get_coro())


async def _serve(server: Server) -> None:
    asked_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked_to_stop.set)
    await server.start()
    loop.add_signal_handler(signal.SIGHUP, server.reload_soon)
    logger.info("running %s", "compiled code" if native.IS_COMPILED else "in pure Python")
    logger.info("ready to accept requests%s", ", read-only" if server.config.read_only else "")
    await asked_to_stop.wait()
    logger.info("stopping")
    await server.stop()
    logger.info("stopped")
