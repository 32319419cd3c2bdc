"""A hash table whose parts can be looked at one by one.

A large dict now and then moves all of its entries (25 ms for a million of them), and cannot be walked through
while it changes, except after a copy of all keys. Here neither concerns more than one part of the entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iproto_server.box.index.engine_memory import memory_outside

PARTS: Final = 64
_MASK: Final = PARTS - 1
_SHIFT: Final = 24
"""The dicts themselves begin with the lowest bits of a hash, which therefore must differ within a part."""

ENTRY_SIZE: Final = 120
"""Bytes that an entry takes beside its key and its value: two objects' heads, and a place in a dict."""


class HashTable:
    """Byte strings by byte strings, in `PARTS` dicts.

    Attributes:
        parts: the dicts. A key is always in the same one: `part_of` tells its number.
        size: bytes of the entries, about.
    """

    __slots__ = ("parts", "size")

    def __init__(self) -> None:
        self.parts: list[dict[bytes, bytes]] = [{} for _ in range(PARTS)]
        self.size = 0

    def __del__(self) -> None:
        memory_outside(-self.size)

    @staticmethod
    def part_of(key: bytes) -> int:
        """The number of the part that a key belongs to."""
        return hash(key) >> _SHIFT & _MASK

    def get(self, key: bytes) -> bytes | None:
        """The value of a key, or None."""
        return self.parts[hash(key) >> _SHIFT & _MASK].get(key)

    def set(self, key: bytes, value: bytes) -> None:
        """Add or overwrite an entry."""
        part = self.parts[hash(key) >> _SHIFT & _MASK]
        old = part.get(key)
        part[key] = value
        self._count(len(value) - len(old) if old is not None else ENTRY_SIZE + len(key) + len(value))

    def remove(self, key: bytes) -> None:
        """Remove an entry that is there. Raises KeyError when it is not."""
        value = self.parts[hash(key) >> _SHIFT & _MASK].pop(key)
        self._count(-ENTRY_SIZE - len(key) - len(value))

    def clear(self) -> None:
        """Remove every entry."""
        for part in self.parts:
            part.clear()
        self._count(-self.size)

    def _count(self, change: int) -> None:
        if change:
            self.size += change
            memory_outside(change)

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __contains__(self, key: bytes) -> bool:
        return key in self.parts[hash(key) >> _SHIFT & _MASK]

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Walk through the entries. The table must not change meanwhile."""
        for part in self.parts:
            yield from part.items()

    def keys_after(self, key: bytes) -> Iterator[bytes]:
        """Walk through the keys behind one, or through all where it is empty; none when it is not there.

        The table may change meanwhile.
        """
        first = 0
        if key:
            if key not in self:
                return
            first = self.part_of(key)
            keys = iter(list(self.parts[first]))
            for each in keys:
                if each == key:
                    break
            yield from keys
            first += 1
        for part in self.parts[first:]:
            yield from list(part)
