"""Memory in use: `box.slab.info`, `box.runtime.info`, and the values of `box.info.memory`.

There is no slab allocator: rows are objects of the interpreter. Values that describe Tarantool's arena
describe the process here.

Source: Tarantool reference, "Submodule box.slab".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iproto_server.box.catalog.catalog import Catalog


class Memory:
    """The memory in use, in bytes.

    Parameters:
        catalog: the spaces.

    Attributes:
        used: returns the process's memory; set by the server.
        limit: returns the greatest memory that the process may use.
        network: returns the number of bytes waiting to be sent to clients.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.used: Callable[[], int] = lambda: 0
        self.limit: Callable[[], int] = lambda: 0
        self.network: Callable[[], int] = lambda: 0

    def data(self) -> int:
        """All rows of all spaces."""
        return sum(space.bsize for space in self._catalog)


class Slab:
    """`box.slab`.

    Parameters:
        memory: the memory in use.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def info(self) -> dict[str, int | str]:
        """Rows (`items`), the process's memory (`arena`), and its share of the limit (`quota`)."""
        items, used, limit = self._memory.data(), self._memory.used(), self._memory.limit()
        return {
            "items_size": items,
            "items_used": items,
            "items_used_ratio": _ratio(items, items, 2),
            "arena_size": used,
            "arena_used": used,
            "arena_used_ratio": _ratio(used, used, 1),
            "quota_size": limit,
            "quota_used": used,
            "quota_used_ratio": _ratio(used, limit, 2),
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
