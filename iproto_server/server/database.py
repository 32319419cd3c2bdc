"""The database of a server: recovered from its files, and open to clients within its limits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from iproto_server.box import Box
from iproto_server.box.access.access_control import GUEST
from iproto_server.box.memtx.memory_budget import budget
from iproto_server.config.config import Config, ConfigError
from iproto_server.descriptors import spare
from iproto_server.logging.log_setup import event
from iproto_server.server.checkpoints.checkpointer import Checkpointer
from iproto_server.server.connection.busy_poll import BusyPoll, usual_microseconds
from iproto_server.server.connection.group_commit import Batch
from iproto_server.server.connection.server_state import ServerState
from iproto_server.server.loop_clock import LoopClock
from iproto_server.server.service_manager import RecoveryStatus, ServiceManager
from iproto_server.storage.directory import make_directory
from iproto_server.storage.recovery.recovery_progress import ProgressOfAll, progress_on
from iproto_server.storage.storage import Storage, StorageOptions
from iproto_server.storage.wal import WalMode

VERSION = "2.11.0"
"""Version of the protocol, for files and `box.info`; the greeting may announce another one."""

logger = logging.getLogger("iproto_server.server")


class ServedDatabase:
    """The database of a server.

    Parameters:
        config: the configuration.
        open_storage: opens the files of the database.
        manager: the service manager, which is told about the recovery.

    Attributes:
        box: the database; set by `open`, as the next two.
        storage: its files.
        state: the state that connections share.
    """

    def __init__(self, config: Config, open_storage: Callable[..., Storage], manager: ServiceManager) -> None:
        self._initial_config = config
        self._open_storage = open_storage
        self._manager = manager
        self._made: list[Path] = []

    @property
    def config(self) -> Config:
        """The current configuration."""
        return self.state.config

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        """Recover the database. This may take long; ending the process meanwhile loses nothing.

        Parameters:
            loop: the event loop that the server will run in.

        Raises:
            StorageError: the files cannot be used as they are, or another process uses them.
            OSError: a file cannot be read or written.
        """
        config = self._initial_config
        for directory in (config.work_dir, config.log_directory, config.snapshot_directory):
            self._made += make_directory(directory)
        version = f"{VERSION}-0-iproto"
        self._clock = LoopClock(loop)
        self.box = Box(None, self._clock, version, config.instance_uuid)
        options = StorageOptions(
            log_directory=config.log_directory,
            snapshot_directory=config.snapshot_directory,
            wal_mode=WalMode(config.wal_mode),
            wal_max_size=config.wal_max_size,
            force_recovery=config.force_recovery,
            instance_uuid=config.instance_uuid,
            server_version=version,
        )
        self.box.access.auth_type = config.auth_type
        self._disk = ThreadPoolExecutor(1, "disk")
        progress = progress_on()
        if self._manager.is_present:
            progress = ProgressOfAll(progress, RecoveryStatus(self._manager))
        self.storage = self._open_storage(self.box, options, self._disk.submit, progress)
        log = self.storage.log
        microseconds = usual_microseconds() if config.busy_poll is None else config.busy_poll
        batch = Batch(self.box.transactions, log, self._disk, BusyPoll(microseconds))
        spare.hold()
        self.state = ServerState(config, self.box, self._clock, loop, batch)
        self._checkpointer = Checkpointer(self.box, log, batch, config, self.storage.recovered.checkpoint)

    def configure_guest(self) -> None:
        """Give guest all rights if the option `guest` says so, or only this machine can reach the server."""
        access = self.box.access
        if self.config.is_open_to_guest:
            access.open_to_guest()
        elif not access.has_passwords:
            if not self.config.all_local:
                raise ConfigError(
                    "other machines can reach the server, but no user has a password: create one in the"
                    " application's setup, listen on loopback or a unix socket only, or give --allow-guest"
                )
            if access.is_unauthenticated(access.by_id(GUEST)):
                logger.warning("no client can log in: guest has no rights, and no user has a password")

    def limit_memory(self) -> None:
        """Limit the memory of rows and indexes. What was recovered or set up may exceed the limit."""
        log = self.state.rate_limited_log
        budget.begin(
            self.config.memtx_memory,
            lambda space: log.event(logging.WARNING, "refused a row: memtx_memory is used up", space=space),
        )
        limit, held = budget.limit, budget.held()
        if limit is not None and held > limit:
            event(
                logger,
                logging.WARNING,
                "the data exceeds memtx_memory: new rows are refused",
                size=held,
                memtx_memory=limit,
            )

    def undo_start(self) -> None:
        """Remove the new database and directories of a refused start, after the loop has ended.

        An existing database stays unchanged.
        """
        storage: Storage | None = getattr(self, "storage", None)
        if storage is not None and storage.is_new:
            self._disk.submit(lambda: None).result()  # after a write in progress
            storage.discard()
            self._disk.shutdown()
        for directory in reversed(self._made):
            # A directory stays if an application has put something there.
            with suppress(OSError):
                directory.rmdir()
