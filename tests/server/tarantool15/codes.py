"""Numbers of errors of Tarantool 1.5."""

from __future__ import annotations

from collections.abc import Callable

from tests.protocol.tarantool15.box15_client import (
    Client15,
    u32,
    u64,
)
from tests.running_server import RunningServer

Connect15 = Callable[[], Client15]
ROW = [u32(1), b"one", u32(10), u64(100)]
ILLEGAL_PARAMS, SECONDARY, KEY_FIELD_TYPE, FIELD_TYPE, PROC_RET = 2, 3, 38, 40, 48
NO_SUCH_PROC, PROC_LUA, NO_SUCH_INDEX, NO_SUCH_FIELD, NO_SUCH_SPACE = 50, 51, 53, 54, 57


def port_15(server: RunningServer) -> int:
    """Where the server listens for these clients."""
    return int(server.process.wait_for(r"listening on 127.0.0.1:(\d+), protocol of Tarantool 1.5")[1])
