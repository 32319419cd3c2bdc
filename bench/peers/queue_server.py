"""Servers of queues: ours with an application, and Debian's Tarantool with the queue module.

Both listen on 127.0.0.1 only and use `wal_mode = write`.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, Self

from bench.lib.process import ServerProcess
from bench.peers.contender import server_environment
from bench.peers.database import MEMTX_MEMORY
from bench.peers.iproto import IprotoConnection

CHECKOUT: Final = "TARANTOOL_QUEUE_CHECKOUT"
"""The environment variable that names a checkout of github.com/tarantool/queue."""

_ADDRESS: Final = r"(127\.0\.0\.1):(\d+)"

_BATCH: Final = 1000

_MODULE_SCRIPT: Final = """\
io.stdout:setvbuf('line')
box.cfg{{memtx_memory = {memory}, checkpoint_interval = 0}}
box.schema.user.grant('guest', 'super', nil, nil, {{if_not_exists = true}})
package.path = '{checkout}/?.lua;{checkout}/?/init.lua;' .. package.path
queue = require('queue')
function create_tube(...)
    queue.create_tube(...)
end
function put_tasks(tube, utube, tasks)
    for _ = 1, tasks do
        queue.tube[tube]:put('test data', {{utube = utube}})
    end
end
box.cfg{{listen = '127.0.0.1:0'}}
print('listening on ' .. box.info.listen)
"""


class QueueContender(Protocol):
    """A server program of queues.

    Attributes:
        name: the name in the tables.
    """

    @property
    def name(self) -> str: ...

    def launch(self, directory: Path) -> ServerProcess:
        """Start a server, without waiting for it.

        Parameters:
            directory: the directory for its files.
        """

    def create_tube(
        self, connection: IprotoConnection, tube: str, driver: str, options: dict[str, object]
    ) -> None:
        """Create a tube.

        Parameters:
            connection: a connection to the server.
            tube: the tube's name.
            driver: the tube's type.
            options: the tube's options.
        """

    def fill(self, connection: IprotoConnection, tube: str, utube: str, tasks: int) -> None:
        """Put tasks into a sub-queue.

        Parameters:
            connection: a connection to the server.
            tube: the tube's name.
            utube: the name of the sub-queue.
            tasks: the number of tasks.
        """


@dataclass(frozen=True)
class OurQueue:
    """`iproto-server serve`, in this Python.

    Attributes:
        application: the module and name of the application.
    """

    application: str = "queue_lua_compat.tubes:app"

    name = "ours"

    def launch(self, directory: Path) -> ServerProcess:
        """Start the server."""
        command = [sys.executable, "-m", "iproto_server", "serve", self.application]
        command += ["--listen", "127.0.0.1:0", "--work-dir", str(directory), "--checkpoint-interval", "0"]
        return ServerProcess(command, directory, server_environment())

    def create_tube(
        self, connection: IprotoConnection, tube: str, driver: str, options: dict[str, object]
    ) -> None:
        """Create a tube."""
        connection.call("queue.create_tube", tube, driver, options)

    def fill(self, connection: IprotoConnection, tube: str, utube: str, tasks: int) -> None:
        """Put tasks with `put_many`."""
        batch = [["test data", {"utube": utube}]] * _BATCH
        for begin in range(0, tasks, _BATCH):
            connection.call(f"queue.tube.{tube}:put_many", batch[: tasks - begin])


@dataclass(frozen=True)
class ModuleQueue:
    """The queue module on Tarantool.

    Attributes:
        program: Tarantool's path.
        checkout: the path of a checkout of the module's repository.
    """

    program: str
    checkout: Path

    name = "the module"

    def launch(self, directory: Path) -> ServerProcess:
        """Start the server."""
        script = directory.with_name(f"{directory.name}.lua")
        script.write_text(_MODULE_SCRIPT.format(memory=MEMTX_MEMORY, checkout=self.checkout.resolve()))
        return ServerProcess(self._command(script), directory, server_environment())

    def _command(self, script: Path) -> list[str]:
        return [self.program, str(script)]

    def create_tube(
        self, connection: IprotoConnection, tube: str, driver: str, options: dict[str, object]
    ) -> None:
        """Create a tube."""
        connection.call("create_tube", tube, driver, options)

    def fill(self, connection: IprotoConnection, tube: str, utube: str, tasks: int) -> None:
        """Put tasks with a Lua function."""
        for begin in range(0, tasks, _BATCH):
            connection.call("put_tasks", tube, utube, min(_BATCH, tasks - begin))


@dataclass(frozen=True)
class OurModuleQueue(ModuleQueue):
    """The queue module on `iproto-server serve`, in this Python."""

    name = "the module on ours"

    def _command(self, script: Path) -> list[str]:
        return [self.program, "-m", "iproto_server", "serve", str(script)]


def module() -> ModuleQueue | None:
    """Return the queue module if Tarantool is installed and the environment variable names a checkout."""
    program, checkout = shutil.which("tarantool"), os.environ.get(CHECKOUT)
    return ModuleQueue(program, Path(checkout)) if program and checkout else None


class QueueServer:
    """A running server of queues.

    Parameters:
        contender: the contender.
        directory: the directory for its files; created here.

    Attributes:
        contender: the contender.
        address: its host and port.
        connection: a connection for everything that is not measured.
        process: its process.
    """

    def __init__(self, contender: QueueContender, directory: Path) -> None:
        directory.mkdir()
        self.contender = contender
        self.process = contender.launch(directory)
        try:
            host, port = self.process.wait_for(rf"listening on {_ADDRESS}").groups()
            self.address = (host, int(port))
            self.connection = IprotoConnection(self.address)
        except BaseException:
            self.process.kill()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.connection.close()
        self.process.stop()
