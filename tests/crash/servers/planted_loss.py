"""The crash test's application in a server with a fault: in mode `write`, it answers before it writes."""

from __future__ import annotations

import asyncio
from typing import Final

from iproto_server.storage.wal import WriteAheadLog
from tests.crash.servers.application import app

__all__ = ["app"]

DELAY: Final = 0.002
"""Seconds between a response and its write."""

_write = WriteAheadLog.write


def _write_later(self: WriteAheadLog) -> None:
    asyncio.get_running_loop().call_later(DELAY, _write, self)


WriteAheadLog.write = _write_later  # type: ignore[method-assign]
