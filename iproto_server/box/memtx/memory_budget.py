"""The memory budget of rows and indexes: `memtx_memory`.

There is one budget for the process, as there is one allocator in the compiled engine. Each change of a row
asks for memory before anything is changed. What is undone, removed, recovered or built is never refused.
Neither are changes that are exempt (`MemoryBudget.exempt`), such as those of a task's state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from iproto_server.box.memtx.space_def import SpaceDefinition
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native._native import memory_usage, set_memory_limit

RESERVED_SHARE: Final = 16
RESERVE_MAX: Final = 4 * 1024**2
"""The last sixteenth of the budget, 4 MiB at the most, is for existing rows and temporary spaces."""

_HEADER: Final = 8
"""Bytes in front of each row."""
_ALWAYS: Final = frozenset((330,))
"""Spaces whose rows are never refused: `_truncate`, because a row of it frees memory."""


class MemoryBudget:
    """The budget of the process.

    Attributes:
        limit: bytes; None for no limit.
        refused: number of refused changes.
        on_refusal: called with the name of the space at each refusal.
    """

    __slots__ = ("_is_exempt", "limit", "on_refusal", "refused")

    def __init__(self) -> None:
        self._is_exempt = False
        self.limit: int | None = None
        self.refused = 0
        self.on_refusal: Callable[[str], object] = _ignore

    def begin(self, limit: int | None, on_refusal: Callable[[str], object]) -> None:
        """Set the limit, and count refusals from 0.

        Parameters:
            limit: bytes; None for no limit.
            on_refusal: as the attribute.

        Raises:
            RuntimeError: as `set_limit`.
        """
        self.set_limit(limit)
        self.on_refusal = on_refusal
        self.refused = 0

    def end(self) -> None:
        """Limit nothing any more."""
        self.set_limit(None)
        self.on_refusal = _ignore

    def set_limit(self, limit: int | None) -> None:
        """Set the limit.

        Parameters:
            limit: bytes; None for no limit.
        """
        set_memory_limit(limit, 0 if limit is None else min(limit // RESERVED_SHARE, RESERVE_MAX))
        self.limit = limit

    def held(self) -> int:
        """Return the bytes that count against the limit."""
        rows, _, indexes, outside = memory_usage()
        return rows + indexes + outside

    @contextmanager
    def exempt(self) -> Iterator[None]:
        """Refuse nothing during the block, which must not await."""
        before = self._is_exempt
        self._is_exempt = True
        try:
            yield
        finally:
            self._is_exempt = before

    def refuse(self, space: SpaceDefinition, size: int) -> None:
        """Refuse a change that exceeds the limit, unless it is exempt.

        Parameters:
            space: the space.
            size: bytes of the new row.

        Raises:
            BoxError: MEMORY_ISSUE (2).
        """
        if space.id in _ALWAYS or self._is_exempt:
            return
        self.refused += 1
        self.on_refusal(space.name)
        raise BoxError(ErrorCode.MEMORY_ISSUE, size + _HEADER, "slab allocator", "memtx_tuple")


def _ignore(space_name: str) -> None:
    """Do nothing."""


budget: Final = MemoryBudget()
"""The budget of this process."""
