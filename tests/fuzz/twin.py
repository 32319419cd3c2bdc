"""A second process in which inputs have outcomes, too: in pure Python if this one is compiled, or reversed.

`compared` makes a target of a function `outcome`, which gives anything whose representation says all that
must be the same in both.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import IO, Final

from iproto_server.native import IS_COMPILED, PURE_PYTHON
from tests.programs import REPOSITORY

Outcome = Callable[[bytes], object]

_SIZE: Final = struct.Struct(">I")


def compared(outcome: Outcome) -> Callable[[bytes], None]:
    """Make a target's check, which raises AssertionError if the outcomes in both processes differ.

    Parameters:
        outcome: The function `outcome` of a module of this package.
    """
    module = outcome.__module__

    def check(data: bytes) -> None:
        here = repr(outcome(data))
        there = _twin().outcome(module, data)
        assert here == there, f"here (compiled: {IS_COMPILED}) {here}\nthere {there}"

    return check


class Twin:
    """The other process; it ends with this one.

    Raises:
        EOFError: In `outcome`, if it has ended, which it only does by a crash.
    """

    def __init__(self) -> None:
        environment = {**os.environ, PURE_PYTHON: "1" if IS_COMPILED else ""}
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            cwd=REPOSITORY,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def outcome(self, module: str, data: bytes) -> str:
        """Return the representation of the outcome of an input.

        Parameters:
            module: The module with the function `outcome`.
            data: The input.
        """
        to, back = self._process.stdin, self._process.stdout
        assert to is not None
        assert back is not None
        _write(to, module.encode())
        _write(to, data)
        return _read(back).decode("utf-8", "surrogatepass")


@cache
def _twin() -> Twin:
    return Twin()


def _write(stream: IO[bytes], data: bytes) -> None:
    stream.write(_SIZE.pack(len(data)) + data)
    stream.flush()


def _read(stream: IO[bytes]) -> bytes:
    head = stream.read(_SIZE.size)
    if len(head) < _SIZE.size:
        raise EOFError("the other process has ended")
    (size,) = _SIZE.unpack(head)
    data = stream.read(size)
    if len(data) < size:
        raise EOFError("the other process has ended")
    return data


def _serve(requests: IO[bytes], results: IO[bytes]) -> None:
    """Run until there are no more inputs."""
    while True:
        try:
            module, data = _read(requests).decode(), _read(requests)
        except EOFError:
            return
        try:
            told = repr(import_module(module).outcome(data))
        except Exception as error:  # noqa: BLE001  # the outcome of the other process differs
            told = f"raised {type(error).__name__}: {error}"
        _write(results, told.encode("utf-8", "surrogatepass"))


if __name__ == "__main__":
    _serve(sys.stdin.buffer, os.fdopen(os.dup(1), "wb"))
