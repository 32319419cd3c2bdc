"""The format that a space's rows must fit: its own fields with the requirements of its indexes."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from iproto_server.box.index.index import Index
from iproto_server.box.key.key_def import KeyDef
from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.box.tuple.format import Format


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
    plain = Format.parse(space.format_row, space.name, space.field_count, collation_ids=collation_ids)
    return plain.with_index_parts(keys)
