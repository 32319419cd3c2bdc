"""A data directory that our server and a real Tarantool use one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from tests.interchange.database.application import APPLICATION, LUA
from tests.interchange.database.contents import Contents, read_contents
from tests.interchange.database.statements import Statement
from tests.iproto_client import EVAL, EXPRESSION, TUPLE, Answer, IprotoClient
from tests.real_tarantool import RealTarantool
from tests.running_server import RunningServer

Option = str | int | Path
"""The value of an option of `box.cfg`; our server has the same options."""


class Server(StrEnum):
    """The kind of server."""

    OURS = "ours"
    TARANTOOL = "tarantool"

    @property
    def other(self) -> Server:
        """The other kind, which uses the directory next."""
        return Server.TARANTOOL if self is Server.OURS else Server.OURS


OURS, TARANTOOL = Server

DIRECTIONS: Final = (OURS, TARANTOOL)
"""The first server, in tests of both directions."""

_DEFAULTS: Final[dict[str, Option]] = {"wal_mode": "write", "checkpoint_interval": 0}
_TARANTOOLS_OWN: Final[dict[str, Option]] = {"memtx_memory": 64 * 1024**2}


class Inhabitant:
    """A running server and a client of it with all rights.

    Parameters:
        server: The process.
    """

    def __init__(self, server: RunningServer | RealTarantool) -> None:
        self.server = server
        self.process = server.process
        self.client = IprotoClient(server.host, server.port)

    def do(self, statements: Iterable[Statement]) -> None:
        """Send changes one after the other; each must succeed."""
        for statement in statements:
            answer = self.client.request(statement.kind, statement.body)
            assert answer.ok, f"{statement}: {answer.failure}"

    def evaluate(self, lua: str, *arguments: object) -> list[Any]:
        """Let a Tarantool evaluate some Lua, and return the result."""
        values: list[Any] = self.client.request(EVAL, {EXPRESSION: lua, TUPLE: list(arguments)}).data
        return values

    def call(self, procedure: str, *arguments: object) -> Answer:
        """CALL a procedure."""
        return self.client.call(procedure, *arguments)

    def contents(self) -> Contents:
        """Return all contents of the database."""
        return read_contents(self.client)

    def kill(self) -> None:
        """Kill the server."""
        self.client.close()
        self.server.process.kill()

    def stop(self) -> None:
        """Stop the server with SIGTERM, unless it was killed."""
        self.client.close()
        if self.process.running:
            self.server.stop()


class Home:
    """A data directory, empty at first.

    Parameters:
        directory: Its path.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @contextmanager
    def of(
        self,
        who: Server,
        *,
        applications: Iterable[str] = (),
        lua: str = "",
        wal_dir: str = ".",
        memtx_dir: str = ".",
        **options: Option,
    ) -> Iterator[Inhabitant]:
        """Run a server in the directory, and stop it at the end.

        Parameters:
            who: The kind of server.
            applications: Additional applications of our server.
            lua: Additional code for Tarantool.
            wal_dir: The directory of the logs.
            memtx_dir: The directory of the snapshots.
            options: Options of `box.cfg`.
        """
        for name in (wal_dir, memtx_dir):
            self.directory.joinpath(name).mkdir(exist_ok=True)
        options = {**_DEFAULTS, **options, "wal_dir": wal_dir, "memtx_dir": memtx_dir}
        with ExitStack() as living:
            server: RunningServer | RealTarantool
            if who is OURS:
                words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
                server = RunningServer(self.directory, [APPLICATION, *applications], words)
            else:
                own = {**_TARANTOOLS_OWN, **options}
                server = RealTarantool(self.directory, LUA + lua, {name: _lua(own[name]) for name in own})
            inhabitant = Inhabitant(server)
            living.callback(inhabitant.stop)
            yield inhabitant

    def logs(self) -> list[Path]:
        """The log files, oldest first."""
        return sorted(self.directory.rglob("*.xlog"))

    def snapshots(self) -> list[Path]:
        """The snapshots, oldest first."""
        return sorted(self.directory.rglob("*.snap"))

    def files(self) -> dict[str, bytes]:
        """Return logs and snapshots, finished or not, with their contents."""
        names = [path for kind in ("xlog", "snap") for path in self.directory.rglob(f"*.{kind}*")]
        return {str(path.relative_to(self.directory)): path.read_bytes() for path in sorted(names)}


def _lua(value: Option) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else f"'{value}'"
