"""Nodes of the tree that represents a tuple during an update, and its encoding."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final, TypeAlias

from iproto_server.box.update.path_cursor import PathCursor

Doubles: TypeAlias = frozenset[tuple[int | str | None, ...]]
"""The places of fields of type `double`: a field number, then keys and indexes from 0 (None for all)."""

NO_DOUBLES: Final[Doubles] = frozenset()


class Node(ABC):
    """A part of the tuple that operations have touched."""

    __slots__ = ()

    @abstractmethod
    def opened(self, cursor: PathCursor) -> tuple[Node, Branch]:
        """Open this node for an operation that changes something inside.

        Returns:
            The node that replaces this one, and the branch inside it where the operation continues.

        Raises:
            BoxError: the operation cannot continue; nothing has changed.
        """

    @abstractmethod
    def parts(self, doubles: Doubles) -> list[tuple[Part, Doubles]]:
        """Return the parts of this node in order, each with the places of `double` fields in it."""


class Branch(Node):
    """A node at which the paths of operations branch."""

    __slots__ = ()

    def opened(self, cursor: PathCursor) -> tuple[Node, Branch]:
        return self, self

    @abstractmethod
    def advance(self, cursor: PathCursor) -> Branch | None:
        """Apply the operation here, or advance to the next branch.

        Returns:
            The branch inside this one where the operation continues; None if it is done.

        Raises:
            BoxError: the operation cannot be applied.
        """

    @abstractmethod
    def adopt(self, step: int | str, child: Node) -> None:
        """Replace the item or value that `step` leads to by a node."""


Part: TypeAlias = bytes | Node


def encode(root: Node, doubles: Doubles) -> bytes:
    """Encode the tree as the bytes of the new tuple."""
    written: list[bytes] = []
    # No recursion: the tree may be thousands of nodes deep.
    waiting: list[tuple[Part, Doubles]] = [(root, doubles)]
    while waiting:
        part, inside = waiting.pop()
        if isinstance(part, bytes):
            written.append(part)
        else:
            waiting.extend(reversed(part.parts(inside)))
    return b"".join(written)


def inside_step(doubles: Doubles, step: int | str) -> Doubles:
    if not doubles:
        return doubles
    return frozenset(place[1:] for place in doubles if place and place[0] in (step, None))
