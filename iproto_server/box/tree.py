"""The ordered map that TREE indexes are made of, and how a large one is made at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from BTrees.OOBTree import OOBTree, OOBucket

LEAF_ENTRIES: Final = 60
"""How many entries the leaves of a tree made at once have: most of those that fit in."""

CHILDREN: Final = 240
"""How many children the nodes above them have."""


class Tree(OOBTree):  # type: ignore[misc]  # BTrees has no type information
    """The ordered map. Larger leaves than the library's make it smaller and faster for short keys."""

    max_leaf_size = 64
    max_internal_size = 256

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
                parent = self if len(nodes) <= CHILDREN else Tree()
                children = _alternating(nodes[start:end], lows[start + 1 : end])
                parent.__setstate__((children, first_leaves[start]))
                parents.append(parent)
            if parents[0] is self:
                return
            nodes = parents
            lows, first_leaves = lows[::CHILDREN], first_leaves[::CHILDREN]


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
