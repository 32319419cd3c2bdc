"""What is killed: our server, or a real Tarantool with the same load."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple, Protocol

from iproto_server.testing.logged_process import LoggedProcess
from tests.command_line import run_process
from tests.programs import REPOSITORY, require_program
from tests.real_tarantool import GUEST_IS_SUPER, SCRIPT
from tests.running_server import QUEUE_APPLICATION

NEVER = 10**18
"""A threshold that nothing reaches."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of one life; named as in `box.cfg`.

    Attributes:
        wal_mode: "write" or "fsync".
        wal_max_size: Bytes of a log.
        checkpoint_count: How many snapshots are kept.
        checkpoint_wal_threshold: Bytes of logs after which there is a snapshot.
        snap_io_rate_limit: MiB per second that a snapshot may write; 0 for any.
    """

    wal_mode: str = "write"
    wal_max_size: int = 256 * 1024**2
    checkpoint_count: int = 2
    checkpoint_wal_threshold: int = NEVER
    snap_io_rate_limit: float = 0.0

    def __str__(self) -> str:
        changed = (
            f"{field.name}={getattr(self, field.name)}"
            for field in fields(self)
            if field.name == "wal_mode" or getattr(self, field.name) != field.default
        )
        return " ".join(changed)


class Subject(Protocol):
    """A server that can be started again and again on a directory.

    Attributes:
        has_queue: Whether it serves the tutorial's queue.
        has_streams: Whether it knows streams and their transactions.
        survives_bootstrap: Whether it starts again when it was killed while it made its first files.
        builder_window: How many changes of definitions may be in flight on one connection.
        writes_whole_rows: Whether its logs say what rows are after a change, so that they can be replayed by
            somebody who knows nothing else.
        begins: A pattern of the line in which it says that it begins to read its files, or makes new ones.
        ready: A pattern of the line in which it says that it serves; its groups are host and port.
        trouble: A pattern of lines in which it complains of itself.
    """

    has_queue: bool
    has_streams: bool
    survives_bootstrap: bool
    builder_window: int
    writes_whole_rows: bool
    begins: str
    ready: str
    trouble: str

    def launch(self, directory: Path, settings: Settings) -> LoggedProcess:
        """Start it, and wait for nothing."""

    def verify(self, directory: Path) -> str:
        """Ask its own tool whether the files are all right.

        Returns:
            What is wrong; empty if nothing is, or if there is no such tool.
        """


class Server(NamedTuple):
    """A server that serves.

    Args:
        subject: What it is.
        process: Its process.
        host: Its address.
        port: Its port.
        directory: Its directory.
        settings: Its options.
    """

    subject: Subject
    process: LoggedProcess
    host: str
    port: int
    directory: Path
    settings: Settings


class OurServer:
    """`iproto-server serve` with the queue and the crash test's application."""

    has_queue = True
    has_streams = True
    survives_bootstrap = True
    builder_window = 4
    writes_whole_rows = True
    begins = r"recovering from|a new database"
    ready = r"listening.*?(\d+\.\d+\.\d+\.\d+):([1-9]\d*)"
    # a snapshot that is being written when the server stops is given up, which it says as an error
    trouble = r" (error|critical) (?!no snapshot: it was given up)|Traceback|Error\b"

    def launch(self, directory: Path, settings: Settings) -> LoggedProcess:
        """Start it, and wait for nothing."""
        command = [sys.executable, "-m", "iproto_server", "serve", QUEUE_APPLICATION]
        command += ["tests.crash.application:app", "--listen", "127.0.0.1:0", "--work-dir", str(directory)]
        for field in fields(settings):
            value = getattr(settings, field.name)
            if value:
                command += [f"--{field.name.replace('_', '-')}", str(value)]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        return LoggedProcess(command, cwd=directory, env=environment)

    def verify(self, directory: Path) -> str:
        """Run `iproto-server check`."""
        done = run_process("check", directory)
        return "" if done.returncode == 0 else f"iproto-server check: {done.stdout}{done.stderr}"


class Tarantool:
    """A real Tarantool. It has no queue: what it loses of rows is enough to be seen."""

    has_queue = False
    has_streams = False  # 2.6; since 2.10 there are streams
    survives_bootstrap = False  # the rest of its first snapshot is in its way
    builder_window = 1  # it lets nobody else find a new space before that is in the log
    writes_whole_rows = False
    begins = r"recovery start|initializing an empty data directory"
    ready = r"tests: ready on (\S+):(\d+)"
    trouble = r" [EF]> "

    def launch(self, directory: Path, settings: Settings) -> LoggedProcess:
        """Start it, and wait for nothing."""
        options = [
            "memtx_memory = 256 * 1024 * 1024",
            "checkpoint_interval = 0",
            f"wal_mode = '{settings.wal_mode}'",
            f"wal_max_size = {settings.wal_max_size}",
            f"checkpoint_count = {settings.checkpoint_count}",
            f"checkpoint_wal_threshold = {settings.checkpoint_wal_threshold}",
        ]
        if settings.snap_io_rate_limit:
            options.append(f"snap_io_rate_limit = {settings.snap_io_rate_limit}")
        application = GUEST_IS_SUPER + Path(__file__).with_name("application.lua").read_text("utf-8")
        script = directory.with_name(f"{directory.name}.lua")
        script.write_text(SCRIPT.format(options=", ".join(options), application=application), "utf-8")
        return LoggedProcess([require_program("tarantool", "tarantool"), script], cwd=directory)

    def verify(self, directory: Path) -> str:
        """It has no such tool."""
        return ""


SUBJECTS: dict[str, type[Subject]] = {"iproto-server": OurServer, "tarantool": Tarantool}
