"""The format that a space's rows must fit: its own fields with the requirements of its indexes."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, Final

from iproto_server.box.index.index import Index
from iproto_server.box.key.key_def import SHARED_MAX, KeyDef
from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.box.tuple.format import Format
from iproto_server.codec.msgpack import pack

_shared: Final[dict[tuple[bytes, int, tuple[KeyDef, ...]], Format]] = {}
"""The formats made last, by what they were made from."""


def format_with_indexes(
    space: MemtxSpace, indexes: Mapping[int, Index], collation_ids: Container[int]
) -> Format:
    """The format with the requirements of the indexes, the primary one first, the others in the given order.

    Parameters:
        space: the space, with its row of `_space`.
        indexes: its indexes by number.
        collation_ids: the numbers of all collations.

    Raises:
        BoxError: see `Format.with_index_parts`.
    """
    in_order = sorted(indexes.values(), key=lambda index: index.id != 0)
    return format_with_keys(space, [index.key_def for index in in_order], collation_ids)


def format_with_keys(space: MemtxSpace, keys: Sequence[KeyDef], collation_ids: Container[int]) -> Format:
    """The format with the requirements of keys, in their order; see `format_with_indexes`."""
    return shared_format(space.format_row, space.name, space.field_count, collation_ids, tuple(keys))


def shared_format(
    rows: Sequence[Any],
    space_name: str,
    exact_field_count: int,
    collation_ids: Container[int],
    keys: tuple[KeyDef, ...] = (),
) -> Format:
    """The format of a row of `_space` and keys, the same object for all spaces with these.

    Parameters:
        rows, space_name, exact_field_count, collation_ids: as for `Format.parse`.
        keys: the keys of the space's indexes, in their order.

    Raises:
        BoxError: see `Format.parse` and `Format.with_index_parts`.
    """
    key = (pack(rows), exact_field_count, keys)
    found = _shared.get(key)
    if found is not None:
        return found
    made = Format.parse(rows, space_name, exact_field_count, collation_ids=collation_ids)
    if keys:
        made = made.with_index_parts(keys)
    # A collation may be dropped: the check is repeated for each space.
    if all(each.collation_id is None for each in made.fields):
        if len(_shared) >= SHARED_MAX:
            _shared.pop(next(iter(_shared)))
        _shared[key] = made
    return made
