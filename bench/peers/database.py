"""Our server, and Debian's Tarantool with a queue in Lua."""

from __future__ import annotations

import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from bench.lib.process import Address, ServerProcess
from bench.peers.contender import REPOSITORY, Contender, Server, server_environment
from bench.peers.iproto import IPROTO, IprotoConnection

DEFAULT_QUEUE: Final = REPOSITORY / "bench" / "peers" / "queue.lua"
MEMTX_MEMORY: Final = 2 * 1024**3
_NEVER: Final = 0
_ADDRESS: Final = r"(127\.0\.0\.1):(\d+)"

_TARANTOOL_SCRIPT: Final = """\
io.stdout:setvbuf('line')
box.cfg{{memtx_memory = {memory}, wal_mode = '{wal_mode}', checkpoint_interval = {interval}}}
box.schema.user.grant('guest', 'super', nil, nil, {{if_not_exists = true}})
{application}
box.cfg{{listen = '127.0.0.1:0'}}
print('serving ' .. box.info.listen)
"""

_QUEUE_SCRIPT: Final = """\
-- The tutorial's queue requires a module of its author; it needs only this much of it.
package.reload = {{count = 1}}
package.path = '{directory}/?.lua;' .. package.path
local application = require('{module}')
if type(application) == 'table' then
    queue = application
end
"""


class Database(Contender, Protocol):
    """A contender that speaks IPROTO and recovers from Tarantool's files.

    Attributes:
        begins: a pattern of the log line at the beginning of recovery.
        has_read: a pattern of the log line at the end of recovery.
        serving: a pattern of the log line that gives host and port in its groups.
    """

    @property
    def begins(self) -> str: ...
    @property
    def has_read(self) -> str: ...
    @property
    def serving(self) -> str: ...


class _Serving:
    """The common part of both databases."""

    dialect = IPROTO
    has_snapshots = True
    has_delays = True
    serving: str

    def await_service(self, process: ServerProcess) -> Address:
        """Wait for the log line with the address."""
        host, port = process.wait_for(self.serving).groups()
        return host, int(port)

    def snapshot(self, address: Address) -> None:
        """`box.snapshot`."""
        with IprotoConnection(address) as connection:
            connection.call("box.snapshot")


@dataclass(frozen=True)
class Ours(_Serving):
    """`iproto-server serve`, in this Python.

    Attributes:
        options: additional command-line options.
    """

    options: tuple[str, ...] = ()

    name = "ours"
    begins = r"recovering from"
    has_read = r"recovered \d+ rows"
    serving = rf"listening on {_ADDRESS}"

    def launch(self, directory: Path, wal_mode: str, *, has_queue: bool) -> ServerProcess:
        """Start the server."""
        command = [sys.executable, "-m", "iproto_server", "serve"]
        if has_queue:
            command.append("queue_lua_compat.tutorial:app")
        command += ["--listen", "127.0.0.1:0", "--work-dir", str(directory)]
        command += ["--wal-mode", wal_mode, "--checkpoint-interval", str(_NEVER), *self.options]
        return ServerProcess(command, directory, server_environment())


@dataclass(frozen=True)
class Tarantool(_Serving):
    """A real Tarantool.

    Attributes:
        program: its path.
        queue: the Lua file of the queue.
        memory: bytes for tuples and indexes.
    """

    program: str
    queue: Path = DEFAULT_QUEUE
    memory: int = MEMTX_MEMORY

    name = "Tarantool"
    begins = r"recovery start"
    has_read = r"ready to accept requests"
    serving = rf"serving {_ADDRESS}"

    def _command(self, script: Path) -> list[str]:
        return [self.program, str(script)]

    def launch(self, directory: Path, wal_mode: str, *, has_queue: bool) -> ServerProcess:
        """Start the server."""
        queue = _QUEUE_SCRIPT.format(directory=self.queue.resolve().parent, module=self.queue.stem)
        script = directory.with_name(f"{directory.name}.lua")
        script.write_text(
            _TARANTOOL_SCRIPT.format(
                memory=self.memory,
                wal_mode=wal_mode,
                interval=_NEVER,
                application=queue if has_queue else "",
            )
        )
        return ServerProcess(self._command(script), directory, server_environment())


@dataclass(frozen=True)
class OursWithLua(Tarantool):
    """`iproto-server serve` with the same queue in Lua."""

    program: str = sys.executable

    name = "ours with Lua"
    begins = Ours.begins
    has_read = Ours.has_read

    def _command(self, script: Path) -> list[str]:
        return [self.program, "-m", "iproto_server", "serve", str(script)]


class DatabaseServer(Server):
    """A running database.

    Parameters:
        database: the contender.
        directory: the directory for its files; created if it does not exist.
        wal_mode: "none", "write" or "fsync".
        has_queue: whether to serve the queue, or only the database.

    Attributes:
        connection: a connection for everything that is not measured.
        started_in: seconds until it had answered a ping and returned the number of tasks.
        started_cpu: seconds of CPU time of that.
        tasks: the number of tasks after the start.
        recovered_in: seconds of recovery according to its log; 0 if there were no files.
    """

    def __init__(
        self, database: Database, directory: Path, wal_mode: str = "write", *, has_queue: bool = True
    ) -> None:
        self._database = database
        self._is_new = not directory.exists() or not any(directory.iterdir())
        super().__init__(database, directory, wal_mode, has_queue=has_queue)

    def count(self) -> int:
        """Return the number of tasks."""
        [count] = self.connection.call("box.space.queue:len")
        assert isinstance(count, int)
        return count

    def stop(self) -> None:
        """Stop the server with SIGTERM."""
        self.connection.close()
        super().stop()

    def _begin(self) -> Address:
        self.recovered_in = 0.0
        if not self._is_new:
            self.process.wait_for(self._database.begins)
            begun = time.perf_counter()
            self.process.wait_for(self._database.has_read)
            self.recovered_in = time.perf_counter() - begun
        address = super()._begin()
        self.connection = IprotoConnection(address)
        self.connection.ping()
        self.tasks = self.count()
        self.started_in = time.perf_counter() - self.process.begun
        self.started_cpu = self.process.cpu_seconds()
        return address


def databases(queue: Path = DEFAULT_QUEUE, memory: int = MEMTX_MEMORY) -> list[Database]:
    """Return the installed databases, ours first.

    Parameters:
        queue: the Lua file of Tarantool's queue.
        memory: bytes for Tarantool's tuples and indexes.
    """
    program = shutil.which(Tarantool.name.lower())
    return [Ours()] if program is None else [Ours(), Tarantool(program, queue, memory)]
