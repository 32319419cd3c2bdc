"""Memory in use: `box.slab.info`, `box.runtime.info`, and the values of `box.info.memory`.

The engine counts the memory of rows and indexes, of all boxes of the process together.

Source: Tarantool reference, "Submodule box.slab".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from iproto_server.box.memtx.memory_budget import budget
from iproto_server.native._native import memory_usage

if TYPE_CHECKING:
    from iproto_server.box.catalog.catalog import Catalog


class Memory:
    """The memory in use, in bytes.

    Parameters:
        catalog: the spaces.

    Attributes:
        used: returns the process's memory; set by the server.
        virtual: returns the size of the process's address space.
        limit: returns the greatest memory that the process may use.
        network: returns the number of bytes waiting to be sent to clients.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.used: Callable[[], int] = lambda: 0
        self.virtual: Callable[[], int] = lambda: 0
        self.limit: Callable[[], int] = lambda: 0
        self.network: Callable[[], int] = lambda: 0

    def data(self) -> int:
        """All rows of all spaces, with those that a snapshot keeps."""
        _, rows, _, outside = memory_usage()
        return rows + outside

    def data_held(self) -> int:
        """The same, with the free blocks between them."""
        held, _, _, outside = memory_usage()
        return held + outside

    def indexes(self) -> int:
        """All indexes."""
        return memory_usage()[2]

    def arena(self) -> int:
        """Rows and indexes with free blocks, which count against the quota."""
        return self.data_held() + self.indexes()

    def quota(self) -> int:
        """The option `memtx_memory`, or the greatest memory that the process may use."""
        return self.limit() if budget.limit is None else budget.limit


class Slab:
    """`box.slab`.

    Parameters:
        memory: the memory in use.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def info(self) -> dict[str, int | str]:
        """Rows (`items`), rows and indexes (`arena`), and their share of the limit (`quota`), in bytes."""
        memory = self._memory
        rows, held, arena, quota = memory.data(), memory.data_held(), memory.arena(), memory.quota()
        arena_used = rows + memory.indexes()
        return {
            "items_size": held,
            "items_used": rows,
            "items_used_ratio": _ratio(rows, held, 2),
            "arena_size": arena,
            "arena_used": arena_used,
            "arena_used_ratio": _ratio(arena_used, arena, 1),
            "quota_size": quota,
            "quota_used": arena,
            "quota_used_ratio": _ratio(arena, quota, 2),
        }


class Runtime:
    """`box.runtime`.

    Parameters:
        memory: the memory in use.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def info(self) -> dict[str, int]:
        """The process's memory (`used`), the part that is not rows (`lua`), and the limit (`maxalloc`)."""
        used = self._memory.used()
        return {
            "lua": max(used - self._memory.data(), 0),
            "maxalloc": self._memory.limit(),
            "used": used,
        }


def _ratio(part: int, whole: int, digits: int) -> str:
    """A share in percent, written as Tarantool writes it."""
    return f"{100 * part / whole if whole else 0:.{digits}f}%"
