"""Notifies readers of an index before an entry changes."""

from __future__ import annotations

from collections.abc import Callable

from iproto_server.box.index.index import Index


class IndexWatch:
    """Notifies the readers of an index of each key before its entry changes.

    Only pure Python needs it: the compiled engine keeps what views of its trees need.
    Indexes that share their entries share one watch, which exists while there are readers.

    Parameters:
        index: the first of those indexes.
    """

    __slots__ = ("_indexes", "_insert", "_readers", "_remove", "_set")

    def __init__(self, index: Index) -> None:
        self._readers: list[Callable[[bytes], None]] = []
        self._indexes: list[Index] = []
        self._set, self._insert, self._remove = index.set, index.insert, index.remove
        self.join(index)

    def join(self, index: Index) -> None:
        """Watch another index with the same entries."""
        self._indexes.append(index)
        index.watch = self
        index.set, index.insert, index.remove = self.set, self.insert, self.remove

    def set(self, key: bytes, value: bytes) -> None:
        """Add or overwrite an entry."""
        for keep in self._readers:
            keep(key)
        self._set(key, value)

    def insert(self, key: bytes, value: bytes) -> None:
        """Add an entry."""
        for keep in self._readers:
            keep(key)
        self._insert(key, value)

    def remove(self, key: bytes) -> None:
        """Remove an entry."""
        for keep in self._readers:
            keep(key)
        self._remove(key)

    def enter(self, keep: Callable[[bytes], None]) -> None:
        """Add a reader: `keep` is called with each key before its entry changes."""
        self._readers.append(keep)

    def leave(self, keep: Callable[[bytes], None]) -> None:
        """Remove a reader. After the last one, the indexes get their own functions back."""
        self._readers.remove(keep)
        if not self._readers:
            for index in self._indexes:
                index.watch = None
                index.set, index.insert, index.remove = self._set, self._insert, self._remove
