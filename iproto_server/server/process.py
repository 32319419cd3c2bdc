"""The server's process: signals, start and stop."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import signal
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import uvloop

from iproto_server import native
from iproto_server.app import Application, ApplicationConflict
from iproto_server.config.config import Config, ConfigError
from iproto_server.importer import ImportAnew
from iproto_server.logging.log_setup import event
from iproto_server.program_version import PROGRAM_VERSION
from iproto_server.server.server import Server
from iproto_server.server.service_manager import ServiceManager
from iproto_server.server.watchdog import END_GRACE, STOP_SIGNALS, Watchdog

if TYPE_CHECKING:
    from iproto_server.server.lua.lua_beside import LuaBeside

logger = logging.getLogger("iproto_server.server")

REPORT_GRACE = 2.0
"""Seconds that the watchdog has for its report and the end of the process, before systemd ends it."""

LAST_GRACE = 0.5
"""Seconds for tasks that still run after the server has stopped."""


def run(
    config: Config,
    applications: Sequence[Application],
    import_anew: ImportAnew | None = None,
    manager: ServiceManager | None = None,
) -> int:
    """Serve until SIGTERM or SIGINT; SIGHUP reloads the applications, SIGUSR1 takes a snapshot.

    Parameters:
        config: the configuration.
        applications: the applications to serve.
        import_anew: imports the applications for a reload.
        manager: the service manager that is told about start, reload and stop; None: there is none.

    Returns: the exit status, 0.

    Raises:
        OSError: an address is in use, or files cannot be read or written.
        StorageError: the files of the database cannot be used as they are.
        ConfigError: two applications conflict, or access is not configured.
        LuaIsMissing: the option `lua` is set, and LuaJIT is not installed.
    """
    manager = manager or ServiceManager()
    lua: LuaBeside | None = None
    if config.lua:
        from iproto_server.server.lua.lua_beside import LuaBeside

        lua = LuaBeside(config)
    try:
        server = Server(
            config,
            applications,
            import_anew=import_anew,
            manager=manager,
            lua=None if lua is None else lua.serve,
        )
    except ApplicationConflict as error:
        raise ConfigError(str(error)) from error
    has_application = bool(applications)
    # A reload may replace them, so no local name may keep them alive.
    del applications
    # Before there is anything to reload, SIGHUP is ignored.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    snapshots_asked_for: list[int] = []
    signal.signal(signal.SIGUSR1, lambda number, frame: snapshots_asked_for.append(number))
    # Not asyncio.Runner: it waits forever for a task that suppresses its cancellation.
    loop = uvloop.new_event_loop()
    try:
        if lua is not None:
            lua.open(loop)
        server.open(loop)
        loop.run_until_complete(
            _serve(server, manager, lambda: bool(snapshots_asked_for), lua, has_application=has_application)
        )
    finally:
        loop.run_until_complete(_end_tasks())
        loop.close()
        if not server.has_started:
            server.undo_start()
    return 0


async def _end_tasks() -> None:
    """Cancel the tasks that applications have left running, and wait for them briefly."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        _, pending = await asyncio.wait(tasks, timeout=LAST_GRACE)
        for task in pending:
            logger.error("%s does not end after its cancellation", task.get_coro())


def _log_start(server: Server) -> None:
    """Log what runs, with its limits."""
    config = server.config
    event(
        logger,
        logging.INFO,
        "started",
        version=PROGRAM_VERSION,
        pid=os.getpid(),
        python=platform.python_version(),
        max_connections=server.state.admission.limit,
        net_msg_max=config.net_msg_max,
        memtx_memory=config.memtx_memory or "unlimited",
        wal_mode=config.wal_mode,
    )
    native.module.warn_if_stale(logger)


async def _serve(
    server: Server,
    manager: ServiceManager,
    is_snapshot_due: Callable[[], bool],
    lua: LuaBeside | None,
    *,
    has_application: bool,
) -> None:
    asked_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if asked_to_stop.is_set():
            logger.warning("second stop signal: stopping without waiting")
            server.stop_waiting()
        asked_to_stop.set()

    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop)
    watchdog = Watchdog(
        lambda: server.config.stop_timeout,
        lambda: server.config.too_long_threshold,
        server.describe_running,
        has_lua=lua is not None,
    )
    watchdog.start()
    if lua is not None:
        await lua.attach(server)
    await server.start()
    if lua is not None:
        await lua.configure()
    loop.add_signal_handler(signal.SIGHUP, server.reload_soon)
    loop.add_signal_handler(signal.SIGUSR1, server.snapshot_soon)
    _log_start(server)
    logger.info("ready to accept requests%s", ", read-only" if server.config.read_only else "")
    if not has_application and lua is None:
        logger.warning(
            "no application is given (MODULE:APP): there are no queues and no other procedures; clients can "
            "only use box and its spaces"
        )
    manager.ready(server.describe)
    if is_snapshot_due():
        server.snapshot_soon()
    await asked_to_stop.wait()
    logger.info("stopping")
    manager.stopping(server.config.stop_timeout + END_GRACE + REPORT_GRACE)
    await server.stop()
    logger.info("stopped")
