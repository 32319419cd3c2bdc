"""A consistent view of all rows at one moment, walked in small steps while the box goes on changing.

Nothing is copied when a view is opened. From then on, whoever changes a row that the walk has not come to yet
first puts the row as it was aside; the walk takes it from there and drops it. So a view costs memory only for
rows that are changed ahead of the walk, and time only while it is open.

The engine does so itself (`iproto_server/engine/core/tree/view.h`): changes stay in C while a view is open,
and rows are read in C, many at a time.

DDL needs no special care. A space that is truncated, dropped or given another primary key gets other indexes,
or none, and the view walks through those that it knows. An index that takes over another's entries
(`Index.adopt`) takes over its views, too.

A child process that has all rows as they were (fork) takes half of the memory again, and stops the loop
longer; a list of all rows that is made first stops it for 38 ms with a million tasks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Final, Self

from iproto_server.box.index.index import Index
from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.box.memtx.sequence_data_space import SequenceDataSpace
from iproto_server.native._native import TreeView

Rows = tuple[int, int, list[bytes]]
"""Rows of one space: its id, its group (1 for a local space), and the rows in the primary index's order."""

SLICE_ROWS: Final = 1024
SLICE_SIZE: Final = 256 * 1024


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
    """The walk through a tree of the engine."""

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


def _reader_of(space: MemtxSpace, index: Index) -> Reader:
    if isinstance(space, SequenceDataSpace):
        return _ValuesReader(space)
    return _EngineReader(space, TreeView(index))


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
