"""What is done in the processes in which Spark runs tasks."""

from __future__ import annotations

import gc
import os
import socket
import sys
from contextlib import suppress
from functools import cache
from typing import Any, Final

_WORKERS: Final = "pyspark.daemon"
"""The program that such a process runs."""

_DESCRIPTORS: Final = "/proc/self/fd"
"""Where Linux tells which files and sockets a process has."""


class WorkerSetup:
    """What tasks are made of, which Spark pickles and sends: when it arrives, its process makes ready.

    What is loaded is left out of the garbage collection. After each task such a process collects garbage,
    and looks for it among all that numpy, Arrow and Spark have loaded: that takes 30 ms, as long as to read
    60,000 rows of a snapshot.

    And what has come is acknowledged at once. Spark sends in two pieces what a task is to do, and what it is
    to do it with; by TCP's rules the second one is kept until the first is acknowledged (RFC 896), and that
    is put off for 40 ms, because it could be part of an answer (RFC 1122, 4.2.3.2).
    """

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the attributes that were pickled."""
        self.__dict__.update(state)
        spec = getattr(sys.modules["__main__"], "__spec__", None)
        if spec is not None and spec.name == _WORKERS:
            _freeze_once()
            _acknowledge()


@cache
def _freeze_once() -> None:
    """Do it once: what is garbage at that time stays for good."""
    gc.freeze()


def _acknowledge() -> None:
    """Acknowledge what has come over TCP, on Linux; elsewhere that takes its time."""
    if not hasattr(socket, "TCP_QUICKACK") or not os.path.isdir(_DESCRIPTORS):
        return
    for descriptor in os.listdir(_DESCRIPTORS):
        # Most are no sockets; and all this is only about speed.
        with suppress(OSError):
            _acknowledge_on(int(descriptor))


def _acknowledge_on(descriptor: int) -> None:
    sock = socket.socket(fileno=descriptor)
    try:
        if sock.family in (socket.AF_INET, socket.AF_INET6) and sock.type == socket.SOCK_STREAM:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
    finally:
        sock.detach()
