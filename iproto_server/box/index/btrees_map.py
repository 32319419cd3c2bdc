"""The ordered map of TREE indexes in Python, on BTrees: for a server of which nothing was compiled."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

from BTrees.OOBTree import OOBTree, OOBucket

from iproto_server.box.key.key_def import KeyLayout
from iproto_server.box.key.key_encoding import just_below

LEAF_ENTRIES: Final = 60
"""How many entries the leaves of a tree made at once have: most of those that fit in."""

CHILDREN: Final = 240
"""How many children the nodes above them have."""

_DESCEND_LIMIT: Final = 256
"""How many values are found faster by stepping down than by counting those of the whole interval first."""
_SKIP_LIMIT: Final = 10_000
"""How many values are passed over faster one by one than by asking the leaves how many they hold."""


class Tree(OOBTree):  # type: ignore[misc]  # BTrees has no type information
    """The ordered map from keys to values, all of them byte strings.

    It has what maps have to change an entry: `insert` adds one whose key is not there. Larger leaves than the
    library's make it smaller and faster for short keys.
    """

    max_leaf_size = 64
    max_internal_size = 256

    def keeps(self, key: bytes, row: bytes) -> bool:
        """Tell whether an entry stays as it is if its row changes: it has a key and a value of its own."""
        return True

    def __init__(self, layout: KeyLayout | None = None, primary: Tree | None = None) -> None:
        """Make an empty map.

        Parameters:
            layout: how a key is made from a row, if the values are rows or the rows' primary keys.
            primary: the map of the rows, if the values are their primary keys.
        """
        super().__init__()

    def first(self, low: bytes) -> tuple[bytes, bytes] | None:
        """The first entry whose key is not below `low`."""
        # Starting a walk and leaving it is one descent; minKey() and then get() are two.
        entry: tuple[bytes, bytes] | None = next(self.iteritems(low), None)
        return entry

    def first_value(self, prefix: bytes) -> bytes | None:
        """The value of the first key that starts with `prefix`."""
        entry = next(self.iteritems(prefix), None)
        return entry[1] if entry is not None and entry[0].startswith(prefix) else None

    def last(self, high: bytes | None) -> tuple[bytes, bytes] | None:
        """The last entry whose key, which must not be empty, is below `high`; None for no bound."""
        try:
            if high is None:
                key = self.maxKey()
            else:
                key = self.maxKey(high)
                if key == high:
                    key = self.maxKey(just_below(key))
        except ValueError:
            # How the library says that there is no such key.
            return None
        return key, self[key]

    def count(self, low: bytes | None, high: bytes | None) -> int:
        """How many entries have keys from `low` on and below `high`."""
        # Without an upper bound, "without the bound" would mean "without the last one" to the library.
        return len(self.keys(low, high, False, high is not None))

    def range_values(
        self, low: bytes | None, high: bytes | None, offset: int, limit: int, is_descending: bool
    ) -> list[bytes]:
        """Values of the keys from `low` on and below `high`.

        Parameters:
            low, high: None for no bound.
            offset: how many to pass over.
            limit: how many to answer at the most.
            is_descending: whether the last one comes first.
        """
        values = self.values(low, high, False, high is not None)
        if not is_descending:
            if offset > _SKIP_LIMIT:
                return list(islice(values[offset:], limit))
            return list(islice(values, offset, offset + limit))
        found: list[bytes] = []
        if offset + limit <= _DESCEND_LIMIT:
            for _ in range(offset + limit):
                entry = self.last(high)
                if entry is None or (low is not None and entry[0] < low):
                    break
                high = entry[0]
                found.append(entry[1])
            return found[offset:]
        end = len(values) - offset
        if end > 0:
            found = list(values[max(end - limit, 0) : end])
            found.reverse()
        return found

    def after(self, key: bytes, count: int) -> tuple[list[bytes], list[bytes]]:
        """The keys and the values of the first `count` entries behind a key."""
        # No pairs: a thousand tuples that live at once are work for the garbage collector.
        keys = list(islice(self.iterkeys(key, None, True), count))
        return keys, list(self.itervalues(key, keys[-1], True)) if keys else []

    def load(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        """Fill an empty tree at once.

        Parameters:
            keys: the keys in strictly ascending order.
            values: their values.
        """
        if not keys:
            return
        nodes = _leaves(keys, values)
        # The least key below each node, and the first leaf there.
        lows: Sequence[bytes] = keys[::LEAF_ENTRIES]
        first_leaves = nodes
        while True:
            parents = []
            for start in range(0, len(nodes), CHILDREN):
                end = start + CHILDREN
                parent = self if len(nodes) <= CHILDREN else type(self)()
                children = _alternating(nodes[start:end], lows[start + 1 : end])
                parent.__setstate__((children, first_leaves[start]))
                parents.append(parent)
            if parents[0] is self:
                return
            nodes = parents
            lows, first_leaves = lows[::CHILDREN], first_leaves[::CHILDREN]

    def append(self, keys: Sequence[bytes], values: Sequence[bytes]) -> bool:
        """Add entries behind all others, if that is possible at once.

        Parameters:
            keys: their keys.
            values: their values.

        Returns:
            Whether they were added. If not, nothing has changed: the keys are not in strictly ascending order
            and above all others, or the library can only add one after the other.
        """
        return False

    def build_from(self, primary: Tree) -> bool:
        """Fill an empty tree from the rows of the primary index, if that is possible at once.

        Parameters:
            primary: the map of the rows.

        Returns:
            Whether that was done. If not, nothing has changed: the tree does not refer to these rows, two
            rows have the same key, or a key cannot be made in C.
        """
        return False

    def values_size(self) -> int:
        """The bytes of all values."""
        return sum(map(len, self.values()))


def _leaves(keys: Sequence[bytes], values: Sequence[bytes]) -> list[Any]:
    """The leaves of a tree, each of which knows the next one."""
    leaves = []
    state: tuple[Any, ...] = ()
    for start in reversed(range(0, len(keys), LEAF_ENTRIES)):
        end = start + LEAF_ENTRIES
        leaf = OOBucket()
        leaf.__setstate__((_alternating(keys[start:end], values[start:end]), *state))
        leaves.append(leaf)
        state = (leaf,)
    leaves.reverse()
    return leaves


def _alternating(first: Sequence[Any], second: Sequence[Any]) -> tuple[Any, ...]:
    """The items of two sequences in turns; the first may have one more."""
    items: list[Any] = [None] * (len(first) + len(second))
    items[::2] = first
    items[1::2] = second
    return tuple(items)
