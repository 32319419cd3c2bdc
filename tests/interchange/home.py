"""A database's directory, in which our server and a real Tarantool live one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from tests.interchange.application import APPLICATION, LUA
from tests.interchange.contents import Contents, read_contents
from tests.interchange.statements import Statement
from tests.iproto_client import EVAL, EXPRESSION, TUPLE, Answer, IprotoClient
from tests.real_tarantool import RealTarantool
from tests.running_server import RunningServer

Option = str | int | Path
"""What an option of `box.cfg` may be; ours has the same options by the same names."""


class Server(StrEnum):
    """Who lives there."""

    OURS = "ours"
    TARANTOOL = "tarantool"

    @property
    def other(self) -> Server:
        """The one who moves in afterwards."""
        return Server.TARANTOOL if self is Server.OURS else Server.OURS


OURS, TARANTOOL = Server

DIRECTIONS: Final = (OURS, TARANTOOL)
"""Who lives there first, where a test is about both ways."""

_DEFAULTS: Final[dict[str, Option]] = {"wal_mode": "write", "checkpoint_interval": 0}
_TARANTOOLS_OWN: Final[dict[str, Option]] = {"memtx_memory": 64 * 1024**2}


class Inhabitant:
    """A running server and a client of it, who may do everything.

    Parameters:
        server: The process.
    """

    def __init__(self, server: RunningServer | RealTarantool) -> None:
        self.server = server
        self.process = server.process
        self.client = IprotoClient(server.host, server.port)

    def do(self, statements: Iterable[Statement]) -> None:
        """Ask for changes, one after the other, each of which must succeed."""
        for statement in statements:
            answer = self.client.request(statement.kind, statement.body)
            assert answer.ok, f"{statement}: {answer.failure}"

    def evaluate(self, lua: str, *arguments: object) -> list[Any]:
        """Have a Tarantool run some Lua, and answer what it returns."""
        values: list[Any] = self.client.request(EVAL, {EXPRESSION: lua, TUPLE: list(arguments)}).data
        return values

    def call(self, procedure: str, *arguments: object) -> Answer:
        """CALL a procedure."""
        return self.client.call(procedure, *arguments)

    def contents(self) -> Contents:
        """Everything that is in the database now."""
        return read_contents(self.client)

    def kill(self) -> None:
        """End it as `kill -9` does."""
        self.client.close()
        self.server.process.kill()

    def stop(self) -> None:
        """End it with SIGTERM, unless it has been killed."""
        self.client.close()
        if self.process.running:
            self.server.stop()


class Home:
    """A directory, empty at first.

    Parameters:
        directory: Where it is.
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
        """Let somebody live there, who stops properly in the end.

        Parameters:
            who: Who.
            applications: More than what every one of ours has.
            lua: More than what every Tarantool has.
            wal_dir: Where the logs are.
            memtx_dir: Where the snapshots are.
            options: Of `box.cfg`.
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
        """Logs and snapshots, finished or not, and what is in them."""
        names = [path for kind in ("xlog", "snap") for path in self.directory.rglob(f"*.{kind}*")]
        return {str(path.relative_to(self.directory)): path.read_bytes() for path in sorted(names)}


def _lua(value: Option) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else f"'{value}'"
