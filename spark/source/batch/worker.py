"""Set-up of the worker processes in which Spark runs tasks."""

from __future__ import annotations

import gc
import os
import socket
import sys
from contextlib import suppress
from functools import cache
from typing import Any, Final

_WORKERS: Final = "pyspark.daemon"
"""The main module of a worker process."""

_DESCRIPTORS: Final = "/proc/self/fd"
"""Lists the file descriptors of the process, on Linux."""


class WorkerSetup:
    """Base class of pickled readers; unpickling one in a worker process sets up the process.

    Loaded modules are excluded from garbage collection. A worker collects garbage after each task, and
    traversing all objects of numpy, Arrow and Spark takes 30 ms, as long as reading 60,000 rows of a
    snapshot.

    Received data is acknowledged immediately. Spark sends a task in two pieces; TCP holds back the second
    one until the first is acknowledged (RFC 896), which is delayed by 40 ms (RFC 1122, 4.2.3.2).
    """

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the pickled attributes."""
        self.__dict__.update(state)
        spec = getattr(sys.modules["__main__"], "__spec__", None)
        if spec is not None and spec.name == _WORKERS:
            _freeze_once()
            _acknowledge()


@cache
def _freeze_once() -> None:
    """Freeze objects once: present garbage is never collected."""
    gc.freeze()


def _acknowledge() -> None:
    """Acknowledge received TCP data, on Linux only."""
    if not hasattr(socket, "TCP_QUICKACK") or not os.path.isdir(_DESCRIPTORS):
        return
    for descriptor in os.listdir(_DESCRIPTORS):
        # Most are not sockets; failures only cost time.
        with suppress(OSError):
            _acknowledge_on(int(descriptor))


def _acknowledge_on(descriptor: int) -> None:
    sock = socket.socket(fileno=descriptor)
    try:
        if sock.family in (socket.AF_INET, socket.AF_INET6) and sock.type == socket.SOCK_STREAM:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
    finally:
        sock.detach()
