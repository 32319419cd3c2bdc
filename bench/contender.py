"""Who is compared: our server, and Debian's Tarantool with a queue in Lua. Both serve 127.0.0.1 only."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, Self, TypeVar

from bench.load import Connection
from bench.process import ServerProcess

REPOSITORY: Final = Path(__file__).resolve().parent.parent
DEFAULT_QUEUE: Final = REPOSITORY / "bench" / "peers" / "queue.lua"
MEMTX_MEMORY: Final = 2 * 1024**3
_NEVER: Final = 0
_Member = TypeVar("_Member")
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
-- The tutorial's queue asks for a module of its author's, of which it needs no more than this.
package.reload = {{count = 1}}
package.path = '{directory}/?.lua;' .. package.path
queue = require('{module}')
"""


class Contender(Protocol):
    """Somebody who can be compared.

    Attributes:
        name: as in the tables.
        begins: a pattern of the line that says that it begins to read its files.
        has_read: a pattern of the line that says that everything is read.
        serving: a pattern of the line that says that it accepts connections; its groups are host and port.
    """

    @property
    def name(self) -> str: ...
    @property
    def begins(self) -> str: ...
    @property
    def has_read(self) -> str: ...
    @property
    def serving(self) -> str: ...

    def launch(self, directory: Path, wal_mode: str, *, has_queue: bool) -> ServerProcess:
        """Start it, and wait for nothing.

        Parameters:
            directory: of its files.
            wal_mode: "none", "write" or "fsync".
            has_queue: whether it serves the queue, or only the database.
        """


@dataclass(frozen=True)
class Ours:
    """`iproto-server serve`, in the Python that runs this."""

    name = "ours"
    begins = r"recovering from"
    has_read = r"recovered from"
    serving = rf"listening on {_ADDRESS}"

    def launch(self, directory: Path, wal_mode: str, *, has_queue: bool) -> ServerProcess:
        """Start it."""
        command = [sys.executable, "-m", "iproto_server", "serve"]
        if has_queue:
            command.append("queue_lua_compat.tutorial:app")
        command += ["--listen", "127.0.0.1:0", "--work-dir", str(directory)]
        command += ["--wal-mode", wal_mode, "--checkpoint-interval", str(_NEVER)]
        return ServerProcess(command, directory, {**os.environ, "PYTHONPATH": str(REPOSITORY)})


@dataclass(frozen=True)
class Tarantool:
    """A real Tarantool.

    Attributes:
        program: its path.
        queue: the Lua file of its queue.
    """

    program: str
    queue: Path = DEFAULT_QUEUE

    name = "Tarantool"
    begins = r"recovery start"
    has_read = r"ready to accept requests"
    serving = rf"serving {_ADDRESS}"

    def launch(self, directory: Path, wal_mode: str, *, has_queue: bool) -> ServerProcess:
        """Start it."""
        queue = _QUEUE_SCRIPT.format(directory=self.queue.resolve().parent, module=self.queue.stem)
        script = directory.with_name(f"{directory.name}.lua")
        script.write_text(
            _TARANTOOL_SCRIPT.format(
                memory=MEMTX_MEMORY,
                wal_mode=wal_mode,
                interval=_NEVER,
                application=queue if has_queue else "",
            )
        )
        return ServerProcess([self.program, str(script)], directory)


class Server:
    """A contender that serves.

    Parameters:
        contender: who.
        directory: of its files; made where there is none.
        wal_mode: "none", "write" or "fsync".
        has_queue: whether it serves the queue, or only the database.

    Attributes:
        started_in: seconds until it had answered a ping and said how many tasks there are.
        started_cpu: seconds of CPU time that this took.
        tasks: how many there were then.
        recovered_in: seconds in which it read its files, as its log has it; 0 when there were none.
    """

    def __init__(
        self, contender: Contender, directory: Path, wal_mode: str = "write", *, has_queue: bool = True
    ) -> None:
        directory.mkdir(exist_ok=True)
        self.name = contender.name
        is_new = not any(directory.iterdir())
        self.process = contender.launch(directory, wal_mode, has_queue=has_queue)
        try:
            self.recovered_in = 0.0
            if not is_new:
                self.process.wait_for(contender.begins)
                begun = time.perf_counter()
                self.process.wait_for(contender.has_read)
                self.recovered_in = time.perf_counter() - begun
            host, port = self.process.wait_for(contender.serving).groups()
            self.address = (host, int(port))
            self.connection = Connection(self.address)
            self.connection.ping()
            self.tasks = self.count()
            self.started_in = time.perf_counter() - self.process.begun
            self.started_cpu = self.process.cpu_seconds()
        except BaseException:
            self.process.kill()
            raise

    def count(self) -> int:
        """How many tasks there are."""
        [count] = self.connection.call("box.space.queue:len")
        assert isinstance(count, int)
        return count

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.connection.close()
        self.process.stop()


def contenders(queue: Path) -> list[Contender]:
    """Those that are installed, ours first.

    Parameters:
        queue: the Lua file of Tarantool's queue.
    """
    program = shutil.which("tarantool")
    return [Ours()] if program is None else [Ours(), Tarantool(program, queue)]


def alternating(members: Sequence[_Member], round_number: int) -> Sequence[_Member]:
    """Who is measured when: in every other round the last is first."""
    return members if round_number % 2 == 0 else members[::-1]
