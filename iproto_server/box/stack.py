"""Stack space: endless recursion must not interrupt a change or its rollback.

A RecursionError may occur at any call. Code that makes several changes that belong together therefore ensures
stack space before the first one (`ensure_stack` of the compiled module), and code that undoes changes gets
more stack than other code.
"""

from __future__ import annotations

import sys
from typing import Final

_EXTRA: Final = 250
"""Nested calls beyond the usual limit that are allowed during a rollback."""


class _MoreStack:
    """A block that must not run out of stack; the caller has called `ensure_stack` before.

    Only the outermost block raises the limit, because inner ones may be part of a recursion.
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
"""The context manager, used as `with more_stack:`."""
