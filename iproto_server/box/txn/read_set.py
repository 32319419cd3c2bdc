"""The reads of a transaction: keys and intervals of keys of indexes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iproto_server.box.index.index import Interval
from iproto_server.box.txn.statement import Statement
from iproto_server.box.txn.transactional_space import ReadableSpace

_INTERVALS_MAX: Final = 256
"""The greatest number of intervals of one index; more are merged into one that covers all."""

_KEYS_MAX: Final = 100_000
"""The greatest number of keys of one index; more become an interval, which bounds the memory."""


class _IndexReads:
    """The reads of one index."""

    __slots__ = ("intervals", "keys")

    def __init__(self) -> None:
        self.keys: set[bytes] = set()
        self.intervals: list[Interval] = []

    def add(self, low: bytes, high: bytes | None) -> None:
        intervals = self.intervals
        if intervals and intervals[-1] == (low, high):
            return
        intervals.append((low, high))
        if len(intervals) > _INTERVALS_MAX:
            bounds = [end for _, end in intervals if end is not None]
            is_bounded = len(bounds) == len(intervals)
            self.intervals = [(min(start for start, _ in intervals), max(bounds) if is_bounded else None)]

    def add_key(self, key: bytes) -> None:
        keys = self.keys
        keys.add(key)
        if len(keys) > _KEYS_MAX:
            self.add(min(keys), max(keys) + b"\x00")
            keys.clear()

    def has(self, key: bytes) -> bool:
        return key in self.keys or any(
            low <= key and (high is None or key < high) for low, high in self.intervals
        )


class ReadSet:
    """The reads of one transaction. Iteration yields the spaces."""

    __slots__ = ("_spaces",)

    def __init__(self) -> None:
        self._spaces: dict[ReadableSpace, dict[int, _IndexReads]] = {}

    def __iter__(self) -> Iterator[ReadableSpace]:
        return iter(self._spaces)

    def add_key(self, space: ReadableSpace, index_id: int, key: bytes) -> None:
        """Record a look-up by a whole encoded key, whether or not it found a row."""
        self._of(space, index_id).add_key(key)

    def add_interval(self, space: ReadableSpace, index_id: int, low: bytes, high: bytes | None) -> None:
        """Record a read of all encoded keys from `low` up to but not including `high`."""
        self._of(space, index_id).add(low, high)

    def _of(self, space: ReadableSpace, index_id: int) -> _IndexReads:
        indexes = self._spaces.setdefault(space, {})
        found = indexes.get(index_id)
        if found is None:
            found = indexes[index_id] = _IndexReads()
        return found

    def has_seen(self, statement: Statement) -> bool:
        """Whether a change affects something that was read."""
        space = statement.space
        for index_id, reads in self._spaces.get(space, {}).items():
            if index_id == 0:
                if reads.has(statement.key):
                    return True
                continue
            index = space.index(index_id)
            for row in (statement.old, statement.new):
                if row is not None and any(map(reads.has, space.keys_of(index, row))):
                    return True
        return False
