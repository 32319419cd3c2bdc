"""Set-up and end of the worker processes in which Spark runs tasks."""

from __future__ import annotations

import gc
import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, wraps
from typing import Any, Final, TypeVar

from pyspark.sql.datasource import InputPartition

_Reader = TypeVar("_Reader")
_Rows = TypeVar("_Rows")

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
        if _is_worker():
            _freeze_once()
            _acknowledge()


def ends_quietly(
    read: Callable[[_Reader, InputPartition], Iterator[_Rows]],
) -> Callable[[_Reader, InputPartition], Iterator[_Rows]]:
    """Decorate a reader's method `read`: a worker whose rows are no longer needed exits without a traceback.

    When a query needs no more rows, such as one with LIMIT, Spark closes the connection and kills the worker.
    The worker may notice the closed connection first; then PySpark prints a traceback of `BrokenPipeError`.
    It still does if the worker has just sent its last row.
    """

    @wraps(read)
    def reading(self: _Reader, partition: InputPartition) -> Iterator[_Rows]:
        try:
            yield from read(self, partition)
        except GeneratorExit as stopped:
            if _is_worker() and _has_lost_connection(stopped):
                os._exit(0)
            raise

    return reading


def _is_worker() -> bool:
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and spec.name == _WORKERS


def _has_lost_connection(stopped: BaseException) -> bool:
    """Whether rows are no longer read because they could not be sent."""
    cause: BaseException | None = stopped
    while cause is not None and not isinstance(cause, ConnectionError):
        cause = cause.__context__
    return cause is not None


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
