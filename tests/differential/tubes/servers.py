"""The servers of tubes that are compared, each in a data directory that another one may have had before."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Final, assert_never

from tests.queue_lua_compat.real_tubes import tubes_application
from tests.real_tarantool import RealTarantool
from tests.running_server import RunningServer

TUBES_APPLICATION: Final = "queue_lua_compat.tubes:app"
SUPER_GUEST: Final = "tests.differential.super_guest:app"

_OPTIONS: Final = {"memtx_memory": "128 * 1024 * 1024"}


class Kind(StrEnum):
    """What serves the tubes.

    Attributes:
        PYTHON: Our tubes, `queue_lua_compat.tubes`.
        LUA: The queue module in our Lua.
        TARANTOOL: The queue module in a real Tarantool.
    """

    PYTHON = "python"
    LUA = "lua"
    TARANTOOL = "tarantool"


Server = RunningServer | RealTarantool


def start(kind: Kind, directory: Path, *, is_logged: bool = False) -> Server:
    """Start a server.

    Parameters:
        kind: What serves the tubes.
        directory: The data directory.
        is_logged: Whether it writes a log, without which it leaves nothing to the next server.

    Returns:
        The server, which accepts connections.
    """
    mode = "write" if is_logged else "none"
    match kind:
        case Kind.PYTHON:
            applications = [TUBES_APPLICATION, SUPER_GUEST]
            return RunningServer(directory, applications, ["--wal-mode", mode])
        case Kind.LUA:
            script = directory / "tubes.lua"
            script.write_text(f"box.cfg{{}}\n{tubes_application()}\n")
            return RunningServer(directory, [str(script)], ["--wal-mode", mode])
        case Kind.TARANTOOL:
            return RealTarantool(directory, tubes_application(), {**_OPTIONS, "wal_mode": f"'{mode}'"})
    assert_never(kind)
