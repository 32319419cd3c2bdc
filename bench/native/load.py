"""The hot loop of the load generator (`load.c`), called through ctypes, which releases the GIL."""

from __future__ import annotations

import ctypes
import os
from array import array
from collections.abc import Sequence
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_size_t, c_uint64, c_void_p
from enum import IntEnum
from functools import cache
from typing import Any, Final

from bench.native import shared_library

_MALFORMED_END: Final = 2 ** (8 * ctypes.sizeof(c_size_t)) - 1


class Framing(IntEnum):
    """How the end of an answer is found; the numbers are those of `load.c`."""

    IPROTO = 0
    BEANSTALKD = 1
    REDIS = 2


class _Result(IntEnum):
    DONE = 0
    NO_ANSWER = 1
    CLOSED = 2
    MALFORMED = 3
    NO_MEMORY = 4
    FAILED = 5


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(shared_library("load")), use_errno=True)
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "count_answers": (c_uint64, [c_int, c_char_p, c_size_t, POINTER(c_size_t)]),
        "load_new": (c_void_p, [c_int, POINTER(c_int), c_int, c_uint64]),
        "load_free": (None, [c_void_p]),
        "load_run": (
            c_int,
            [
                c_void_p,
                POINTER(c_char_p),
                POINTER(c_void_p),
                POINTER(c_uint64),
                c_int,
                POINTER(c_double),
                POINTER(c_double),
                POINTER(c_uint64),
            ],
        ),
        "load_answers": (c_void_p, [c_void_p, c_int, POINTER(c_size_t)]),
        "load_latencies": (
            c_size_t,
            [c_void_p, POINTER(POINTER(c_double)), POINTER(POINTER(c_uint64))],
        ),
    }
    for name, (result, arguments) in signatures.items():
        function = library[name]
        function.restype, function.argtypes = result, arguments
        setattr(library, name, function)
    return library


def count_answers(framing: Framing, data: bytes) -> tuple[int, int]:
    """Count complete answers.

    Parameters:
        framing: how their ends are found.
        data: the received bytes.

    Returns:
        The number of answers, and the end of the last one.

    Raises:
        ValueError: The data is malformed.
    """
    end = c_size_t()
    count: int = _library().count_answers(framing, data, len(data), byref(end))
    if end.value == _MALFORMED_END:
        raise ValueError(f"a malformed answer in {data[:40]!r}")
    return count, end.value


class NativeLoad:
    """Connections on which prepared requests are sent.

    Parameters:
        framing: how the ends of answers are found.
        sockets: connected sockets' file descriptors, which the caller closes after `close`.
        in_flight: the maximum number of requests in flight of each.
    """

    def __init__(self, framing: Framing, sockets: Sequence[int], in_flight: int) -> None:
        self._library = _library()
        self._sockets = len(sockets)
        numbers = (c_int * self._sockets)(*sockets)
        self._load: int | None = self._library.load_new(framing, numbers, self._sockets, in_flight)
        if self._load is None:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def run(
        self, requests: Sequence[bytes], bounds: Sequence[Sequence[int]], timeout: float
    ) -> tuple[float, float]:
        """Send all requests and receive their answers.

        Parameters:
            requests: the bytes for each connection.
            bounds: for each connection, the offset of each request and the end of the last one.
            timeout: seconds of each wait for any answer.

        Returns:
            Seconds of the run, and seconds of CPU time of this thread.

        Raises:
            ConnectionError: The server has closed a connection.
            RuntimeError: The timeout is over.
            ValueError: The server sent more answers than requests, or malformed ones.
        """
        kept = [array("Q", each) for each in bounds]
        counts = [len(each) - 1 for each in kept]
        seconds, cpu_seconds, left = c_double(), c_double(), c_uint64()
        result = self._library.load_run(
            self._load,
            (c_char_p * self._sockets)(*requests),
            (c_void_p * self._sockets)(*(each.buffer_info()[0] for each in kept)),
            (c_uint64 * self._sockets)(*counts),
            int(timeout * 1000),
            byref(seconds),
            byref(cpu_seconds),
            byref(left),
        )
        match result:
            case _Result.DONE:
                return seconds.value, cpu_seconds.value
            case _Result.NO_ANSWER:
                raise RuntimeError(f"{left.value} of {sum(counts)} requests were not answered")
            case _Result.CLOSED:
                raise ConnectionError("the server has closed the connection")
            case _Result.MALFORMED:
                raise ValueError("the server sent a malformed answer, or more answers than requests")
            case _Result.NO_MEMORY:
                raise MemoryError
            case _:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def answers(self, number: int) -> bytes:
        """Return the answers of a connection since the beginning of the last run."""
        size = c_size_t()
        start = self._library.load_answers(self._load, number, byref(size))
        return ctypes.string_at(start, size.value) if size.value else b""

    def latencies(self) -> list[tuple[float, int]]:
        """Return the latencies of the last run: pairs of seconds and the number of answers that have them."""
        seconds, counts = POINTER(c_double)(), POINTER(c_uint64)()
        count = self._library.load_latencies(self._load, byref(seconds), byref(counts))
        return list(zip(seconds[:count], counts[:count], strict=True)) if count else []

    def close(self) -> None:
        """Free the memory."""
        if self._load is not None:
            self._library.load_free(self._load)
            self._load = None
