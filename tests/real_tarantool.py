"""A real Tarantool, for the tests that ask it how things are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from iproto_server.testing.logged_process import LoggedProcess
from tests.programs import REPOSITORY, require_program

GUEST_IS_SUPER = "box.schema.user.grant('guest', 'super', nil, nil, {if_not_exists = true})\n"

# The port is opened when the application is loaded: a client that came earlier would not find its procedures.
SCRIPT = """\
box.cfg{{{options}}}
{application}
box.cfg{{listen = '127.0.0.1:0'}}
io.stdout:setvbuf('line')
print('tests: ready on ' .. box.info.listen)
"""

DEFAULT_OPTIONS: Mapping[str, str] = {
    "memtx_memory": "64 * 1024 * 1024",
    "wal_mode": "'none'",
    "checkpoint_interval": "0",
}

READY_TIMEOUT = 90.0
"""Seconds until it listens: some applications write snapshots before, which a busy machine takes long for."""


QUEUES = (
    *(folder / "shared" / "seeds" / "queue.lua" for folder in REPOSITORY.parents[:2]),
    REPOSITORY / "bench" / "peers" / "queue.lua",
)
"""The tutorial's queue.lua, where it lies near the repository; else one of the same contract."""


class RealTarantool:
    """A Tarantool process with a directory of its own, on a port of its own of the loopback interface.

    Args:
        directory: An empty directory for its files.
        application: Lua that runs between `box.cfg` and listening.
        options: More options of `box.cfg`: name to Lua expression.
    """

    def __init__(
        self, directory: Path, application: str = "", options: Mapping[str, str] | None = None
    ) -> None:
        program = require_program("tarantool", "tarantool")
        settings = ", ".join(
            f"{name} = {value}" for name, value in {**DEFAULT_OPTIONS, **(options or {})}.items()
        )
        script = directory / "tests.init.lua"
        script.write_text(SCRIPT.format(options=settings, application=application))
        self.process = LoggedProcess([program, script], cwd=directory)
        try:
            ready = self.process.wait_for(r"tests: ready on (\S+):(\d+)", timeout=READY_TIMEOUT)
        except AssertionError:
            self.process.kill()
            raise
        self.host = ready[1]
        self.port = int(ready[2])

    @property
    def address(self) -> str:
        """`HOST:PORT`."""
        return f"{self.host}:{self.port}"

    def stop(self) -> None:
        """End it with SIGTERM."""
        if self.process.running:
            self.process.terminate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


def queue_application() -> str:
    """The Lua that makes a Tarantool the tutorial's queue, as its init.lua does.

    Returns:
        An application for `RealTarantool`.
    """
    queue_lua = next(filter(Path.is_file, QUEUES))
    return (
        # init.lua requires a module of the author's own; all that queue.lua wants of it is a generation
        "package.reload = {count = 1}\n"
        f"package.path = '{queue_lua.parent}/?.lua;' .. package.path\n"
        f"{GUEST_IS_SUPER}"
        f"queue = require '{queue_lua.stem}'"
    )
