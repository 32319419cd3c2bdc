"""The ordered map that TREE indexes are made of: the compiled one, or else one on BTrees."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from iproto_server import native

if TYPE_CHECKING or not native.IS_COMPILED:
    from iproto_server.box.index.btrees_map import Tree
else:
    # BTrees is imported only if it is used, because that takes long: the package builds all of its families.
    Tree = native.module.compiled_class("Tree")

__all__ = ["Tree", "TreeView", "open_view"]


class TreeView(Protocol):
    """The values of a compiled map as they were when the view was opened, in the order of their keys.

    The map may change between two calls. What has changed ahead of the view is kept as it was. The view is
    closed after the last value.
    """

    @property
    def is_done(self) -> bool:
        """Whether there are no more values."""

    @property
    def kept(self) -> int:
        """The number of changed entries that are kept as they were."""

    def take(self, count: int, size: int) -> list[bytes]:
        """Return the next values. There may be none although more follow.

        Parameters:
            count: the greatest number of entries to look at, at least 1.
            size: bytes of values that are enough, at least 1.

        Raises:
            MemoryError: there is no memory; the view is closed.
        """

    def take_numbered(
        self, head: bytes, number: int, tail: bytes, count: int, size: int
    ) -> tuple[bytes, int]:
        """Return the next values in one piece, and how many there are.

        Parameters:
            head, tail: bytes in front of each value, before and after its number.
            number: the number of the first value; it is packed as msgpack.
            count, size: as for `take`.

        Raises:
            MemoryError: there is no memory; the view is closed.
        """

    def close(self) -> None:
        """Read no more, and drop what is kept; harmless if the view is closed."""


open_view: Final[Callable[[Any], TreeView] | None] = (
    native.module.compiled_class("TreeView") if native.IS_COMPILED else None
)
"""Open a view of a map that is not one of references to another's rows; None in pure Python."""
