"""The memory of the compiled engine: what it holds, and its limit.

Rows that a read view keeps are objects of the interpreter; `memory_outside` counts them.
"""

from __future__ import annotations

from iproto_server.native import twin


@twin
def set_memory_limit(limit: int | None, reserve: int) -> None:
    """Set the limit of the engine's memory. In pure Python, memory is not limited.

    Parameters:
        limit: bytes; None for no limit.
        reserve: bytes of it that are not for new rows.
    """


@twin
def memory_allows(old_size: int, size: int, entries: int, more: int, may_use_reserve: bool) -> bool:
    """Tell whether a row may be added, or take another one's place.

    Parameters:
        old_size: bytes of the row that is there; 0 for none.
        size: bytes of the new row.
        entries: number of entries that are added to indexes.
        more: bytes that the change needs beside the row and its entries.
        may_use_reserve: whether a new row may use the reserve.
    """
    return True


@twin
def memory_usage() -> tuple[int, int, int, int]:
    """Return the engine's memory in bytes: held for rows, used by rows, indexes, and what is kept outside."""
    return 0, 0, 0, 0


@twin
def memory_outside(change: int) -> None:
    """Count rows and keys that are kept outside of the engine.

    Parameters:
        change: bytes that were allocated or, if negative, freed.
    """


@twin
def release_free_memory() -> None:
    """Give free memory back to the operating system: building large indexes leaves some in malloc's heap."""
