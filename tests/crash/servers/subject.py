"""The servers under test: ours, or a real Tarantool with the same load."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple, Protocol

from iproto_server.testing.logged_process import LoggedProcess
from tests.crash.servers.forked import Forks
from tests.programs import REPOSITORY, require_program
from tests.real_tarantool import GUEST_IS_SUPER, SCRIPT
from tests.running_server import QUEUE_APPLICATION

MODULES = (
    "iproto_server.server",
    "iproto_server.storage.errors",
    "iproto_server.tools.files.file_commands",
    "iproto_server.tools.files.check",
    "ctypes",
)
"""The modules that are imported before a fork, beside the applications: all that a start needs."""

APPLICATION = "tests.crash.servers.application:app"

LUA_APPLICATION = str(Path(__file__).with_name("init.lua"))
"""The same in Lua, with a queue of its own."""

LUA_MODULES = ("iproto_server.server.lua.lua_server", "iproto_server.lua.fibers", "lupa.luajit21")
"""The modules that a start with Lua needs as well."""

NEW_EVERY = 500
"""One of so many commands runs in a new process, and then the process that forks is replaced."""

CHECK_TIMEOUT = 60.0
"""Seconds that a check may take."""

NEVER = 10**18
"""A threshold that nothing reaches."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of a run; named as in `box.cfg`.

    Attributes:
        wal_mode: "write" or "fsync".
        wal_max_size: Bytes of a log.
        checkpoint_count: The number of snapshots to keep.
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
    """A server that can be restarted on a directory many times.

    Attributes:
        has_queue: Whether it serves the tutorial's queue.
        has_dead_letters: Whether that queue has unique keys, limits of releases and dead letters.
        has_streams: Whether it supports streams and their transactions.
        survives_bootstrap: Whether it starts again after a kill during its first start.
        builder_window: The maximum number of DDL requests in flight on one connection.
        writes_whole_rows: Whether its logs say what rows are after a change, so that they can be replayed by
            somebody who knows nothing else.
        begins: A pattern of the log line at the beginning of recovery or bootstrap.
        ready: A pattern of the log line that gives host and port in its groups.
        trouble: A pattern of log lines that report an internal error.
        cuts_torn_writes: Whether it starts with a torn write at the end of its last log.
    """

    has_queue: bool
    has_dead_letters: bool
    has_streams: bool
    survives_bootstrap: bool
    builder_window: int
    writes_whole_rows: bool
    begins: str
    ready: str
    trouble: str
    cuts_torn_writes: bool

    def launch(self, directory: Path, settings: Settings) -> LoggedProcess:
        """Start it, without waiting."""

    def verify(self, directory: Path) -> str:
        """Check the files with the server's own tool.

        Returns:
            The problems found; empty if there are none, or no such tool.
        """

    def close(self) -> None:
        """End what helps to start it."""


class Server(NamedTuple):
    """A running server.

    Parameters:
        subject: The kind of server.
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
    """`iproto-server serve` with a queue and the crash test's application.

    Parameters:
        application: The crash test's application, beside the tutorial's queue; a file of Lua has its own.
    """

    has_queue = True
    has_streams = True
    survives_bootstrap = True
    builder_window = 4
    writes_whole_rows = True
    begins = r"recovering from|a new database"
    ready = r"listening.*?(\d+\.\d+\.\d+\.\d+):([1-9]\d*)"
    # A snapshot in progress is abandoned when the server stops, which is logged as an error.
    trouble = r" (error|critical) (?!snapshot cancelled)|Traceback|Error\b"
    cuts_torn_writes = True

    def __init__(self, application: str = APPLICATION) -> None:
        self._is_lua = application.endswith(".lua")
        self._applications = (application,) if self._is_lua else (QUEUE_APPLICATION, application)
        self.has_dead_letters = not self._is_lua

    def launch(self, directory: Path, settings: Settings) -> LoggedProcess:
        """Start it, without waiting."""
        return self._run(self._serve(directory, settings), directory)

    def verify(self, directory: Path) -> str:
        """Run `iproto-server check`."""
        process = self._run(["check", str(directory)], directory)
        status = process.wait(timeout=CHECK_TIMEOUT)
        return "" if status == 0 else f"iproto-server check: status {status}: {process.output}"

    def close(self) -> None:
        """Nothing helps to start it."""

    def _run(self, arguments: Sequence[str], directory: Path) -> LoggedProcess:
        """Run a command in a new process."""
        return LoggedProcess(
            [sys.executable, "-m", "iproto_server", *arguments], cwd=directory, env=_environment()
        )

    def _serve(self, directory: Path, settings: Settings) -> list[str]:
        """Return the arguments of a command."""
        arguments = ["serve", *self._applications, "--listen", "127.0.0.1:0", "--work-dir", str(directory)]
        if self._is_lua:
            arguments += ["--guest", "all"]
        for field in fields(settings):
            value = getattr(settings, field.name)
            if value:
                arguments += [f"--{field.name.replace('_', '-')}", str(value)]
        return arguments


class ForkedServer(OurServer):
    """The same, forked from a process that has imported all that it needs; a few are new processes.

    Parameters:
        application: The crash test's application.
    """

    def __init__(self, application: str = APPLICATION) -> None:
        super().__init__(application)
        self._forks = self._new_forks()
        self._commands = 0

    def close(self) -> None:
        """End the process that forks."""
        self._forks.close()

    def _run(self, arguments: Sequence[str], directory: Path) -> LoggedProcess:
        """Fork a command, or run it in a new process."""
        self._commands += 1
        if self._commands % NEW_EVERY:
            return self._forks.launch(arguments, directory)
        # All children of a process hash texts in the same way.
        self._forks.close()
        self._forks = self._new_forks()
        return super()._run(arguments, directory)

    def _new_forks(self) -> Forks:
        if self._is_lua:
            return Forks([*MODULES, *LUA_MODULES], _environment())
        modules = [target.partition(":")[0] for target in self._applications]
        return Forks([*modules, *MODULES], _environment())


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(REPOSITORY)}


class Tarantool:
    """A real Tarantool without the queue: losing rows is detected without it."""

    has_queue = False
    has_dead_letters = False
    has_streams = False  # 2.6; since 2.10 there are streams
    survives_bootstrap = False  # the unfinished first snapshot prevents a start
    builder_window = 1  # a new space is invisible to other requests until it is in the log
    writes_whole_rows = False
    begins = r"recovery start|initializing an empty data directory"
    ready = r"tests: ready on (\S+):(\d+)"
    trouble = r" [EF]> "
    cuts_torn_writes = False

    def launch(self, directory: Path, settings: Settings) -> LoggedProcess:
        """Start it, without waiting."""
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
        """Tarantool has no such tool."""
        return ""

    def close(self) -> None:
        """Nothing helps to start it."""
