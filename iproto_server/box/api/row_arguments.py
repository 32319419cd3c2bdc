"""Keys, rows and iterators as arguments of procedures' calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.box.tuple.tuple import Tuple
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.iterator_type import IteratorType

NO_LIMIT: Final = 2**32 - 1
_PLAIN_TYPES: Final = frozenset({int, str, float, bool, type(None), bytes})


def as_key(key: object) -> list[Any]:
    """A key as a list of parts. A single part needs no list; None is the empty key."""
    if key is None:
        return []
    if isinstance(key, list):
        return key
    if isinstance(key, tuple | Tuple):
        return list(key)
    return [key]


def iterator_number(iterator: str | int | None, key: Sequence[Any]) -> int:
    """The number of an iterator type given by name or number; the default is EQ, or ALL for an empty key.

    Raises:
        BoxError: ITERATOR_TYPE (72) for an unknown name, or for a value that is neither name nor number.
    """
    if iterator is None:
        return IteratorType.EQ if key else IteratorType.ALL
    if isinstance(iterator, str):
        try:
            return IteratorType[iterator.upper()]
        except KeyError:
            raise BoxError(ErrorCode.ITERATOR_TYPE, iterator) from None
    if not isinstance(iterator, int):
        raise BoxError(ErrorCode.ITERATOR_TYPE, iterator)
    return iterator


def as_row(values: Sequence[Any], core: MemtxSpace) -> Tuple:
    """A row as the space stores it, with its decoded fields if these are known."""
    if isinstance(values, Tuple):
        return Tuple(values.raw, core.format)
    if not isinstance(values, list | tuple):
        raise BoxError(ErrorCode.TUPLE_NOT_ARRAY)
    fields = list(values)
    raw = codec.pack(fields)
    # Fields of other classes are decoded again: an enumeration is packed as another type, and the caller may
    # change a list or a dict later.
    return Tuple(raw, core.format, fields if _PLAIN_TYPES.issuperset(map(type, fields)) else None)
