"""Room on Python's stack: code that recurses without end must not interrupt a change or its undoing.

A RecursionError may come at any call. So code that changes several things that belong together asks for room
first, while nothing has changed yet; and code that undoes changes gets more room than other code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

from iproto_server.native import twin

_ROOM: Final = 8
"""Nested calls that a change of a row, and the beginning of its undoing, need at the most. The compiled twin
of `ensure_stack` asks for more, which costs it nothing."""

_EXTRA: Final = 250
"""Nested calls that are allowed on top of the usual limit while something is undone."""


def _chain(length: int) -> Callable[[], None]:
    """A function that makes so many nested calls."""

    def last() -> None:
        return None

    def calling(function: Callable[[], None]) -> Callable[[], None]:
        return lambda: function()

    chain: Callable[[], None] = last
    for _ in range(length - 1):
        chain = calling(chain)
    return chain


_need = _chain(_ROOM)


@twin
def ensure_stack() -> None:
    """Raise RecursionError now, unless there is room to change a row and to undo that."""
    _need()


class _MoreStack:
    """A block that must not fail for want of stack. The caller has made sure of `ensure_stack`'s room.

    The limit is raised once: a block within another one, which may be part of a recursion, gets no more.
    """

    __slots__ = ("_depth", "_limit")

    def __init__(self) -> None:
        self._depth = 0
        self._limit = 0

    def __enter__(self) -> None:
        if self._depth == 0:
            self._limit = sys.getrecursionlimit()
            sys.setrecursionlimit(self._limit + _EXTRA)
        self._depth += 1

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            sys.setrecursionlimit(self._limit)


more_stack: Final = _MoreStack()
"""Enter it by `with more_stack:`."""
