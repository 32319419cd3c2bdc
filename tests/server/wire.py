"""A connection's other end without a socket."""

from __future__ import annotations

import asyncio
from typing import Any


class Wire(asyncio.Transport):
    """A transport without a socket.

    Attributes:
        sent: what the server has sent.
        is_paused: whether the server does not want to be sent anything.
        is_shut: whether it has closed the connection.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sent = bytearray()
        self.is_shut = False
        self.is_paused = False

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        self.sent += data

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """There is always room."""

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def is_closing(self) -> bool:
        return self.is_shut

    def close(self) -> None:
        self.is_shut = True

    abort = close
