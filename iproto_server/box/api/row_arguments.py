"""Iterators as arguments of procedures' calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from iproto_server.errors import BoxError, ErrorCode
from iproto_server.iterator_type import IteratorType

NO_LIMIT: Final = 2**32 - 1


def iterator_number(iterator: str | int | None, key: Sequence[Any] = ()) -> int:
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
