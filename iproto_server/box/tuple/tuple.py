"""Tuples, represented by their MessagePack bytes.

Bytes from a client go to the log and to other clients without repacking. Fields are decoded on first access.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from iproto_server.native._native import Tuple, TupleMap

__all__ = ["NIL", "Tuple", "TupleMap"]

# For `isinstance`: the compiled classes cannot inherit from Python's.
Sequence.register(Tuple)
Mapping.register(TupleMap)


class _Nil:
    """The type of `NIL`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NIL"


NIL: Final = _Nil()
"""Returned by a `before_replace` trigger to store nothing; None means to keep the change."""
