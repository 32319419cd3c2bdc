"""A database whose log is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from iproto_server.box.api.box import Box
from iproto_server.box.clock import ManualClock
from iproto_server.storage.directory import find_logs
from iproto_server.storage.vclock import VClock
from iproto_server.storage.wal import WalMode, WriteAheadLog
from iproto_server.storage.xlog import Row, XlogReader
from tests.server.faults.faulty_disk import FaultyDisk
from tests.storage.databases import write_waiting
from tests.storage.files import INSTANCE

NOW = 1700000000.5


class Database:
    """A box whose journal is a log in a directory."""

    def __init__(self, directory: Path, mode: WalMode = WalMode.WRITE, **options: Any) -> None:
        self.directory = directory
        self.disk = FaultyDisk()
        self.box = Box(None, ManualClock())
        self.box.schema.create_space("tasks").create_index("primary")
        vclock = options.pop("vclock", VClock())
        self.log = WriteAheadLog(
            directory,
            mode,
            INSTANCE,
            1,
            vclock,
            server_version="2.11.0",
            clock=lambda: NOW,
            open_file=self.disk.open,
            sync_file=self.disk.sync,
            **options,
        )
        self.box.transactions.journal = self.log
        self.tasks = self.box.space.tasks

    def do(self, function: Callable[..., object], *arguments: object) -> object:
        """Call a function as one transaction."""
        return self.box.run(self.box.session.background, function, *arguments)

    def write(self) -> None:
        """Write the log as the server does at the end of an iteration, undoing what cannot be written."""
        write_waiting(self.box, self.log)

    def read(self) -> list[list[Row]]:
        """The transactions in the logs, all files after one another."""
        found = []
        for file in find_logs(self.directory, VClock()).logs:
            with XlogReader.open(file.path) as reader:
                found += list(reader.transactions())
        return found

    def logs(self) -> list[str]:
        return sorted(path.name for path in self.directory.iterdir())


def lsns(transactions: list[list[Row]]) -> list[int]:
    return [row.lsn for rows in transactions for row in rows]
