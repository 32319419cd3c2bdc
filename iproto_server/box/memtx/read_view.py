"""A consistent view of all rows at one moment, walked in small steps while the box goes on changing.

Nothing is copied when a view is opened. From then on, whoever changes a row that the walk has not come to yet
first puts the row as it was aside; the walk takes it from there and drops it. So a view costs memory only for
rows that are changed ahead of the walk, and time only while it is open.

The compiled engine does so itself (`iproto_server/engine/core/view.h`): changes stay in C while a view is
open, and rows are read in C, many at a time. In pure Python, an `IndexWatch` takes the places of the index's
own `set`, `insert` and `remove` while a view is open.

DDL needs no special care. A space that is truncated, dropped or given another primary key gets other indexes,
or none, and the view walks through those that it knows. An index that takes over another's entries
(`Index.adopt`) takes over its views and its watch, too.

A child process that has all rows as they were (fork) takes half of the memory again, and stops the loop
longer; a list of all rows that is made first stops it for 38 ms with a million tasks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import accumulate
from types import TracebackType
from typing import Final, Self

from iproto_server.box.index.engine_memory import memory_outside
from iproto_server.box.index.index import Index
from iproto_server.box.index.index_watch import IndexWatch
from iproto_server.box.index.sorted_map import TreeView
from iproto_server.box.index.tree_index import TreeIndex
from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.box.memtx.sequence_data_space import SequenceDataSpace

Rows = tuple[int, int, list[bytes]]
"""Rows of one space: its id, its group (1 for a local space), and the rows in the primary index's order."""

SLICE_ROWS: Final = 1024
SLICE_SIZE: Final = 256 * 1024


_ENTRY_SIZE: Final = 120
"""Bytes that an entry takes beside its key and its row: two objects' headers, and a place in a dict."""


class Reader(ABC):
    """The walk through one space.

    Parameters:
        space: the space.

    Attributes:
        space_id: the id of the space.
        group_id: 1 for a local space, otherwise 0.
    """

    __slots__ = ("group_id", "space_id")

    def __init__(self, space: MemtxSpace) -> None:
        self.space_id = space.id
        self.group_id: int = space.flags.get("group_id", 0)

    @property
    @abstractmethod
    def is_done(self) -> bool:
        """Whether there are no more rows."""

    @property
    @abstractmethod
    def kept(self) -> int:
        """The number of changed entries that are kept as they were."""

    @abstractmethod
    def take(self, count: int, size: int) -> list[bytes]:
        """Return the next rows. There may be none although more follow.

        Parameters:
            count: the greatest number of entries to look at.
            size: bytes of rows that are enough.
        """

    def take_numbered(
        self, head: bytes, number: int, tail: bytes, count: int, size: int
    ) -> tuple[bytes, int] | None:
        """Return the next rows in one piece and their number, without making an object of each.

        Parameters:
            head, tail: bytes in front of each row, before and after its number.
            number: the number of the first row; it is packed as msgpack.
            count, size: as for `take`.

        Returns:
            None if only `take` can read these rows.
        """
        return None

    @abstractmethod
    def close(self) -> None:
        """Read no more; harmless if that was so before."""


class _EngineReader(Reader):
    """The walk through a tree of the compiled engine."""

    __slots__ = ("_view",)

    def __init__(self, space: MemtxSpace, view: TreeView) -> None:
        super().__init__(space)
        self._view = view

    @property
    def is_done(self) -> bool:
        return self._view.is_done

    @property
    def kept(self) -> int:
        return self._view.kept

    def take(self, count: int, size: int) -> list[bytes]:
        return self._view.take(count, size)

    def take_numbered(
        self, head: bytes, number: int, tail: bytes, count: int, size: int
    ) -> tuple[bytes, int] | None:
        return self._view.take_numbered(head, number, tail, count, size)

    def close(self) -> None:
        self._view.close()


class _TreeReader(Reader):
    """The walk through a tree in pure Python, in the order of its keys.

    It is told of each key before its entry changes.

    Parameters:
        space: the space.
        index: its primary index.
    """

    __slots__ = (
        "_before",
        "_before_keys",
        "_entries_after",
        "_get",
        "_is_done",
        "_kept_size",
        "_position",
        "_watch",
    )

    def __init__(self, space: MemtxSpace, index: TreeIndex) -> None:
        super().__init__(space)
        self._is_done = False
        self._kept_size = 0
        self._get = index.get
        self._entries_after = index.entries_after
        # The last key that was walked over: no key is empty, so this is before all of them.
        self._position = b""
        # Entries behind the position as they were, where they have changed; None where there was none.
        self._before: dict[bytes, bytes | None] = {}
        # Their keys, as a heap.
        self._before_keys: list[bytes] = []
        self._watch = IndexWatch(index) if index.watch is None else index.watch
        self._watch.enter(self._keep)

    @property
    def is_done(self) -> bool:
        return self._is_done

    @property
    def kept(self) -> int:
        return len(self._before)

    def _keep(self, key: bytes) -> None:
        """Put an entry aside that is about to change, unless the walk is past it."""
        if key > self._position and key not in self._before:
            row = self._before[key] = self._get(key)
            heappush(self._before_keys, key)
            self._count(_size(key, row))

    def take(self, count: int, size: int) -> list[bytes]:
        before = self._before
        keys, rows = self._entries_after(self._position, count)
        end = keys[-1] if len(keys) == count else None
        kept: list[bytes] = []
        if before:
            others = self._before_keys
            while others and len(kept) < count and (end is None or others[0] <= end):
                kept.append(heappop(others))
            if len(kept) == count:
                end = kept[-1]
            entries: dict[bytes, bytes | None] = dict(zip(keys, rows, strict=True))
            for key in kept:
                entries[key] = before[key]
            keys = sorted(entries)
            if len(keys) > count:
                keys = keys[:count]
                end = keys[-1]
            rows = [row for key in keys if (row := entries[key]) is not None]
            keys = [key for key in keys if entries[key] is not None]
        if sum(map(len, rows)) > size:
            rows = rows[: _count_for(rows, size)]
            end = keys[len(rows) - 1]
        if end is None:
            self.close()
            return rows
        self._position = end
        for key in kept:
            if key <= end:
                self._count(-_size(key, before.pop(key)))
            else:
                heappush(self._before_keys, key)
        return rows

    def close(self) -> None:
        if not self._is_done:
            self._is_done = True
            self._watch.leave(self._keep)
            self._before.clear()
            self._before_keys.clear()
            self._count(-self._kept_size)

    def _count(self, change: int) -> None:
        """Count the memory of entries that are put aside or dropped; `change` is a number of bytes."""
        self._kept_size += change
        memory_outside(change)


class _ValuesReader(Reader):
    """The values of the sequences when the view was opened: there are few of them."""

    __slots__ = ("_rows",)

    def __init__(self, space: SequenceDataSpace) -> None:
        super().__init__(space)
        self._rows = space.catch_up()

    @property
    def is_done(self) -> bool:
        return not self._rows

    @property
    def kept(self) -> int:
        return len(self._rows)

    def take(self, count: int, size: int) -> list[bytes]:
        rows = self._rows[:count]
        del self._rows[:count]
        return rows

    def close(self) -> None:
        self._rows.clear()


def _size(key: bytes, row: bytes | None) -> int:
    """The bytes that an entry takes, about."""
    return _ENTRY_SIZE + len(key) + (0 if row is None else len(row))


def _count_for(rows: list[bytes], size: int) -> int:
    """How many of the first rows have at least `size` bytes together."""
    return next(number for number, total in enumerate(accumulate(map(len, rows)), 1) if total >= size)


def _reader_of(space: MemtxSpace, index: Index) -> Reader:
    if isinstance(space, SequenceDataSpace):
        return _ValuesReader(space)
    assert isinstance(index, TreeIndex)
    view = index.view()
    return _TreeReader(space, index) if view is None else _EngineReader(space, view)


class ReadView:
    """All rows of some spaces as they are now. Use it as a context manager, or close it.

    No transaction may be running, because what it changed might be undone.

    Parameters:
        spaces: spaces with rows; those without a primary index have none.
    """

    def __init__(self, spaces: Iterable[MemtxSpace]) -> None:
        self._readers: list[Reader] = [
            _reader_of(space, space.primary)
            for space in sorted(spaces, key=lambda space: space.id)
            if space.primary is not None
        ]

    @classmethod
    def of_kept(cls, spaces: Iterable[MemtxSpace]) -> Self:
        """A view of the spaces whose rows are kept on disk: not of temporary ones and views.

        Parameters:
            spaces: all spaces.
        """
        return cls(space for space in spaces if space.engine == "memtx" and not space.is_temporary)

    def parts(self) -> Iterator[Reader]:
        """Walk through the spaces in the order of their ids.

        The box may change between two steps.

        Yields: what is to be read next, again and again until it is done.
        """
        for reader in self._readers:
            while not reader.is_done:
                yield reader

    def slices(self, count: int = SLICE_ROWS, size: int = SLICE_SIZE) -> Iterator[Rows]:
        """Walk through the rows, space by space in the order of their ids.

        The box may change between two steps.

        Parameters:
            count: how many rows a step may have.
            size: how many bytes of rows are enough for a step; the last row of it may exceed that.

        Yields: rows of one space; now and then none, where many rows were added since the view was opened.
        """
        for reader in self.parts():
            yield reader.space_id, reader.group_id, reader.take(count, size)

    def close(self) -> None:
        """Let go of the rows that were kept; harmless when that was so before."""
        for reader in self._readers:
            reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
