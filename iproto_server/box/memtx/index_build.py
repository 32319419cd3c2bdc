"""Building on rows that are there: a new index, another format."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from iproto_server.box.index.index import Index
from iproto_server.box.memtx.indexed_space import IndexedSpace
from iproto_server.box.tuple.format import Format
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode

MANY: Final = 20_000
"""Rows from which on an index is built by a thread of its own."""


def build_from_primary(indexes: Sequence[Index], primary: Index) -> list[Index]:
    """Fill empty secondary indexes at once from the primary index, two at a time: each takes memory to sort.

    Parameters:
        indexes: the secondary indexes.
        primary: the primary index. Nothing may change it meanwhile.

    Returns: those that cannot be filled so. They are still empty.
    """
    if len(indexes) < 2 or len(primary) < MANY:
        return [index for index in indexes if not index.build_from(primary)]
    with ThreadPoolExecutor(2) as executor:
        were_built = executor.map(lambda index: index.build_from(primary), indexes)
        return [index for index, was_built in zip(indexes, were_built, strict=True) if not was_built]


def fill_index(
    space: IndexedSpace, index: Index, new_format: Format | None = None, primary: Index | None = None
) -> None:
    """Put every row of the space into a new secondary index.

    Parameters:
        space: the space.
        index: the new index.
        new_format: what the rows must fit; None when they are known to.
        primary: the primary index whose keys it holds, when that is to become another.

    Raises:
        BoxError: of the first row that does not fit or has the key of another one in a unique index.
    """
    rows = primary or space.primary_index()
    if (new_format is None or _all_fit(space, rows, new_format)) and index.build_from(rows):
        return
    # A key is made in Python, or there is an error, which depends on the order of rows.
    keys: list[bytes] = []
    primary_keys: list[bytes] = []
    try:
        for key, row in rows.items():
            fields = codec.unpack(row)
            if new_format is not None:
                new_format.check(fields)
            made = index.all_keys_of(fields, key)
            keys += made
            primary_keys += [key] * len(made)
    except BoxError:
        if len(set(keys)) < len(keys):
            raise BoxError(ErrorCode.TUPLE_FOUND, index.name, space.name) from None
        raise
    if index.build(keys, primary_keys):
        raise BoxError(ErrorCode.TUPLE_FOUND, index.name, space.name)


def check_rows(space: IndexedSpace, new_format: Format) -> None:
    """Raise BoxError when a row of the space does not fit `new_format`."""
    rows = space.primary_index()
    if _all_fit(space, rows, new_format):
        return
    for row in space.rows():
        new_format.check(codec.unpack(row))


def _all_fit(space: IndexedSpace, rows: Index, new_format: Format) -> bool:
    """Tell whether all rows are known to fit a format; the present one may imply that."""
    return new_format.is_implied_by(space.format) or rows.rows_fit(new_format.check)
