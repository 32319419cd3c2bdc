"""Unchanged fields that paths lead into: arrays and maps, split into items once per request.

Only keys of maps are decoded. Results are cached, because an UPSERT may have thousands of operations that
enter the same large field (and fail there).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

from iproto_server.box.update.packed_values import is_array, is_map, string_content
from iproto_server.codec import msgpack as codec


class MapView(NamedTuple):
    """A packed map.

    Attributes:
        pairs: packed keys and values, in order.
        places: the positions of the pairs with each key; only strings and integers can be in a path.
    """

    pairs: list[tuple[bytes, bytes]]
    places: dict[str | int, list[int]]


class Child(NamedTuple):
    """A value inside an array or a map.

    Attributes:
        place: the position of the item or pair.
        start: the offset of its bytes within the parent.
        raw: its bytes.
        key: the bytes of its key; empty in arrays.
    """

    place: int
    start: int
    raw: bytes
    key: bytes


class Documents:
    """Values split into items, cached during one request."""

    __slots__ = ("_arrays", "_maps", "_starts")

    def __init__(self) -> None:
        self._arrays: dict[bytes, list[bytes]] = {}
        self._maps: dict[bytes, MapView] = {}
        self._starts: dict[bytes, list[int]] = {}

    def array(self, raw: bytes) -> list[bytes]:
        """Return the items of a packed array. The list is shared: do not change it."""
        items = self._arrays.get(raw)
        if items is None:
            items = self._arrays[raw] = codec.split_array(raw)
        return items

    def map(self, raw: bytes) -> MapView:
        """Return the pairs of a packed map. The view is shared: do not change it."""
        view = self._maps.get(raw)
        if view is None:
            pairs = codec.split_map(raw)
            places: dict[str | int, list[int]] = {}
            for place, (key, _) in enumerate(pairs):
                name = _key_in_paths(key)
                if name is not None:
                    places.setdefault(name, []).append(place)
            view = self._maps[raw] = MapView(pairs, places)
        return view

    def child(self, raw: bytes, target: int | str) -> Child | None:
        """Take one step of a path.

        Args:
            raw: the packed value to start from.
            target: an index from 0 or a key. In a map, an index stands for the integer key one larger.

        Returns:
            The value there, or None.
        """
        if is_array(raw):
            items = self.array(raw)
            if isinstance(target, str) or target >= len(items):
                return None
            return Child(target, self._start(raw, target, map(len, items)), items[target], b"")
        if not is_map(raw):
            return None
        pairs, places = self.map(raw)
        found = places.get(target if isinstance(target, str) else target + 1)
        if found is None:
            return None
        place = found[0]
        key, value = pairs[place]
        start = self._start(raw, place, (len(one) + len(other) for one, other in pairs))
        return Child(place, start + len(key), value, key)

    def _start(self, raw: bytes, place: int, sizes: Iterable[int]) -> int:
        """Return the offset of an item or pair; `sizes` are those of all items."""
        starts = self._starts.get(raw)
        if starts is None:
            ends = list(accumulate(sizes))
            header = len(raw) - ends[-1]
            starts = self._starts[raw] = [header, *(header + end for end in ends)]
        return starts[place]


def _key_in_paths(key: bytes) -> str | int | None:
    content = string_content(key)
    if content is not None:
        return content.decode("utf-8", "surrogateescape")
    # Integers that a path can name; booleans, which are integers in Python, are excluded by their first byte.
    first = key[0]
    if first < 0x80 or 0xCC <= first <= 0xCF or 0xD0 <= first <= 0xD3:
        number = codec.unpack(key)
        return number if isinstance(number, int) else None
    return None
