"""What the tree of a tuple that is being updated is made of, and how its bytes are joined."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final, TypeAlias

from iproto_server.box.update.path_cursor import PathCursor

Doubles: TypeAlias = frozenset[tuple[int | str | None, ...]]
"""Where fields of type `double` are: a field's number, then keys, and indexes from 0 (None for all)."""

NO_DOUBLES: Final[Doubles] = frozenset()


class Node(ABC):
    """A part of the tuple that operations have touched."""

    __slots__ = ()

    @abstractmethod
    def opened(self, cursor: PathCursor) -> tuple[Node, Branch]:
        """Let an operation in that is to change something inside.

        Returns:
            What takes this node's place from now on, and the branch inside it where the operation goes on.

        Raises:
            BoxError: the operation cannot go on; nothing is changed then.
        """

    @abstractmethod
    def parts(self, doubles: Doubles) -> list[tuple[Part, Doubles]]:
        """Return what this node consists of, in order, each with the places of `double` fields in it."""


class Branch(Node):
    """A node in which the ways of operations part."""

    __slots__ = ()

    def opened(self, cursor: PathCursor) -> tuple[Node, Branch]:
        return self, self

    @abstractmethod
    def advance(self, cursor: PathCursor) -> Branch | None:
        """Apply the operation here, or take it on to the next branch.

        Returns:
            The branch inside this one where the operation goes on; None when it is done.

        Raises:
            BoxError: the operation cannot be applied.
        """

    @abstractmethod
    def adopt(self, step: int | str, child: Node) -> None:
        """Put a node in the place of the item or value that `step` leads to."""


Part: TypeAlias = bytes | Node


def encode(root: Node, doubles: Doubles) -> bytes:
    """Join everything into the bytes of the new tuple."""
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
