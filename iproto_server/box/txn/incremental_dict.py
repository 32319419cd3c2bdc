"""A dict for any number of entries: it never moves all of them at once.

Python enlarges a dict of 700,000 entries in one piece, which takes 20 ms or more.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["IncrementalDict"]

Key = TypeVar("Key")
Value = TypeVar("Value")

if TYPE_CHECKING:

    class IncrementalDict(dict[Key, Value]):
        """A dict that begins empty, whose keys are in the order of their insertion.

        Each insertion and removal moves the entries of a few buckets at most.
        """

        def __init__(self) -> None: ...

        buckets: int
        """The number of buckets: at least that of the entries, unless memory was short."""

else:
    from iproto_server.native._native import IncrementalTable

    class IncrementalDict(IncrementalTable, MutableMapping):
        """As above: the table is compiled, and what is rarely called comes from `MutableMapping`."""

        __slots__ = ()

        def __repr__(self) -> str:
            return f"IncrementalDict({dict[Any, Any](self)!r})"
