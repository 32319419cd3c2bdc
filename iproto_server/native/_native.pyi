"""The compiled module's functions and types; `module.c` lists them."""

from typing import Any, final

from iproto_server.box.key.key_def import KeyLayout

INTERFACE: int
FINGERPRINT: str

def take_over(name: str, python: object, /) -> Any: ...
def take_over_method(owner: type, name: str, /) -> Any: ...

# The stack

def ensure_stack() -> None:
    """Ensure that there is stack to change a row and to undo that; 100 nested calls are kept.

    Raises:
        RecursionError: There is less.
    """

# The engine's memory, of all boxes of the process together

def set_memory_limit(limit: int | None, reserve: int, /) -> None:
    """Set the limit of the engine's memory.

    Parameters:
        limit: Bytes; None for no limit.
        reserve: Bytes of it that are not for new rows.

    Raises:
        ValueError: The reserve is larger than the limit.
    """

def memory_allows(old_size: int, size: int, entries: int, more: int, may_use_reserve: bool, /) -> bool:
    """Tell whether a row may be added, or take another one's place.

    Parameters:
        old_size: Bytes of the row that is there; 0 for none.
        size: Bytes of the new row.
        entries: Number of entries that are added to indexes.
        more: Bytes that the change needs beside the row and its entries.
        may_use_reserve: Whether a new row may use the reserve.
    """

def memory_usage() -> tuple[int, int, int, int]:
    """Return the engine's memory in bytes: held for rows, used by rows, indexes, and what is kept outside."""

def memory_outside(change: int, /) -> None:
    """Count rows and keys that are kept outside of the engine.

    Parameters:
        change: Bytes that were allocated or, if negative, freed.

    Raises:
        ValueError: More is freed than was allocated.
    """

def release_free_memory() -> None:
    """Give free memory back to the operating system: building large indexes leaves some in malloc's heap."""

# Ordered maps

@final
class Tree:
    """The ordered map of a TREE index, from keys to values, all of them byte strings.

    Parameters:
        layout: How a key is made from a row, if the values are rows or the rows' primary keys.
        primary: The map of the rows, if the values are their primary keys.
    """

    def __init__(self, layout: KeyLayout | None = None, primary: Tree | None = None) -> None: ...
    def __len__(self) -> int: ...
    def __contains__(self, key: object, /) -> bool: ...
    def __getitem__(self, key: bytes, /) -> bytes: ...
    def __setitem__(self, key: bytes, value: bytes, /) -> None: ...
    def __delitem__(self, key: bytes, /) -> None: ...
    def __sizeof__(self) -> int:
        """Return the bytes that the tree takes, without its rows."""

    def get(self, key: bytes, default: bytes | None = None, /) -> bytes | None:
        """Return the value of a key, or the default."""

    def insert(self, key: bytes, value: bytes, /) -> int:
        """Add an entry, unless there is one with its key; return the number of added entries."""

    def keeps(self, key: bytes, row: bytes, /) -> bool:
        """Tell whether an entry stays as it is if its row becomes another one with the same key."""

    def first(self, low: bytes, /) -> tuple[bytes, bytes] | None:
        """Return the first entry whose key is not below `low`."""

    def first_value(self, prefix: bytes, /) -> bytes | None:
        """Return the value of the first key that starts with `prefix`."""

    def last(self, high: bytes | None, /) -> tuple[bytes, bytes] | None:
        """Return the last entry whose key is below `high`, which is not empty; None for no bound."""

    def count(self, low: bytes | None, high: bytes | None, /) -> int:
        """Count the entries whose keys are from `low` on and below `high`; None for no bound."""

    def range_values(
        self, low: bytes | None, high: bytes | None, offset: int, limit: int, is_descending: bool, /
    ) -> list[bytes]:
        """Return the values of the keys from `low` on and below `high`.

        Parameters:
            low, high: None for no bound.
            offset: Number of values to skip.
            limit: Greatest number of values.
            is_descending: Whether the last one comes first.
        """

    def after(self, key: bytes, count: int, /) -> tuple[list[bytes], list[bytes]]:
        """Return the keys and the values of the first `count` entries behind a key."""

    def load(self, keys: list[bytes], values: list[bytes], /) -> None:
        """Fill an empty tree at once; the keys are in strictly ascending order."""

    def append(self, keys: list[bytes], values: list[bytes], /) -> bool:
        """Add entries behind all others.

        Returns:
            Whether that was done. If not, nothing has changed: the keys are not in strictly ascending order
            and above all others.
        """

    def build_from(self, primary: Tree, /) -> bool:
        """Fill an empty tree from the rows of the primary index.

        Returns:
            Whether that was done. If not, nothing has changed: the tree does not refer to these rows, two
            rows have the same key, or the engine cannot make a key.
        """

    def rows_fit(self, check: object, /) -> bool:
        """Tell whether all rows are known to fit a format's check; if not, a closer look is needed."""

    def values_size(self) -> int:
        """Return the bytes of all values."""

    def clear(self) -> None:
        """Remove every entry."""

@final
class TreeView:
    """The values of a map as they were when the view was opened, in the order of their keys.

    The map may change between two calls; what has changed ahead of the view is kept as it was. The view is
    closed after the last value.

    Parameters:
        tree: A map that does not refer to another one's rows.
    """

    def __init__(self, tree: Tree) -> None: ...
    @property
    def is_done(self) -> bool:
        """Whether there are no more values."""

    @property
    def kept(self) -> int:
        """The number of changed entries that are kept as they were."""

    def take(self, count: int, size: int, /) -> list[bytes]:
        """Return the next values. There may be none although more follow.

        Parameters:
            count: The greatest number of entries to look at, at least 1.
            size: Bytes of values that are enough, at least 1.

        Raises:
            MemoryError: There is no memory; the view is closed.
        """

    def take_numbered(
        self, head: bytes, number: int, tail: bytes, count: int, size: int, /
    ) -> tuple[bytes, int]:
        """Return the next values in one piece, and how many there are.

        Parameters:
            head, tail: Bytes in front of each value, before and after its number.
            number: The number of the first value; it is packed as MessagePack.
            count, size: As for `take`.

        Raises:
            MemoryError: There is no memory; the view is closed.
        """

    def close(self) -> None:
        """Read no more, and drop what is kept; harmless if the view is closed."""
